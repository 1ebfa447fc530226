"""A coordinator among sites that are slow, gone, broken or hostile."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato import Bounds, Budget, InputError, PrivateSIR, PrivateSparseSIR
from sfumato.cli.app import app
from sfumato.federated import SitesLostError, simulate
from sfumato.federated.coordinator import describe_outcome, fit_remote, summarise_outcome, write_json
from sfumato.federated.remote import spending_from
from sfumato.federated.store import Journal
from sfumato.privacy.ledger import FileLedger
from sfumato.simulate import he

SITES = ("h0", "h1", "h2")


def spending(consortium):
    return {name: FileLedger(consortium.ledger(name)).spent() for name in SITES}


def on_line(line, fault):
    """A fault that strikes on one line alone."""

    def strike(request, answer):
        return fault(answer) if json.loads(request).get("line") == line else answer()

    return strike


def altered(change):
    def fault(answer):
        head, values = answer()
        return head, change(np.frombuffer(values, dtype="<f8").copy()).astype("<f8").tobytes()

    return fault


def _set(values, value):
    values[0] = value
    return values


@pytest.mark.parametrize("method", ["descent", "one-shot"])
def test_over_the_wire_and_in_simulation_the_same_seed_gives_the_same_fit(consortium, estimator, method):
    estimator.set_params(method=method)
    remote = fit_remote(estimator, consortium, SITES)
    here = simulate(PrivateSIR(**estimator.get_params() | {"random_state": consortium.seed}), consortium.parts)
    np.testing.assert_array_equal(remote.directions_, here.directions_)
    assert all(told["epsilon"] == pytest.approx(1.0, rel=1e-6) for told in remote.spending_.values())
    assert remote.ledger_.spent() == pytest.approx(1.0, rel=1e-6)
    assert "seeded" in remote.ledger_.guarantee  # the coordinator does not promise what rehearsing sites cannot
    assert not remote.left_out_


def test_an_outcome_notes_the_heads_of_the_sites_ledgers_and_a_cut_one_is_noticed(consortium, estimator, tmp_path):
    write_json(describe_outcome(fit_remote(estimator, consortium, SITES)), tmp_path)
    path = consortium.ledger("h1")
    check = ["ledger", "verify", str(path), "--outcome", str(tmp_path / "outcome.json")]
    assert "1 noted head(s)" in CliRunner().invoke(app, check).stdout
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    done = CliRunner().invoke(app, check)
    assert done.exit_code == 3 and "cut or rewritten" in done.stderr
    FileLedger(tmp_path / "other.jsonl", Budget.approximate(1, 1e-6))
    done = CliRunner().invoke(app, [*check[:2], str(tmp_path / "other.jsonl"), *check[3:]])
    assert done.exit_code == 2 and "notes no head of this ledger" in done.stderr


def test_a_coordinator_that_was_killed_goes_on_with_its_run_at_no_further_cost(consortium, estimator):
    def die(answer):
        raise KeyboardInterrupt

    consortium.faults["h1"] = on_line("step 2", die)
    with pytest.raises(KeyboardInterrupt):
        fit_remote(estimator, consortium, SITES, run="12" * 8)
    consortium.faults.clear()
    resumed = fit_remote(estimator, consortium, SITES, run="12" * 8)
    whole = simulate(PrivateSIR(**estimator.get_params() | {"random_state": consortium.seed}), consortium.parts)
    np.testing.assert_array_equal(resumed.directions_, whole.directions_)
    assert all(spent == pytest.approx(1.0, rel=1e-6) for spent in spending(consortium).values())


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (altered(lambda values: _set(values, np.nan)), "not finite"),
        (altered(lambda values: _set(values, np.inf)), "not finite"),
        (altered(lambda values: _set(values, 1e9)), "larger than its records can add up to"),
        (altered(lambda values: values[:-1]), "wrong length"),
        (altered(lambda values: np.append(values, 0.0)), "wrong length"),
        (lambda answer: (answer()[0].replace('"shape"', '"form"'), answer()[1]), "wrong shape"),
        (lambda answer: ("not json", b""), "unreadable"),
        (lambda answer: ("[1]", b""), "unreadable"),
        (lambda answer: ('{"refused":"I am closed."}', b""), "I am closed"),
    ],
)
def test_a_bad_upload_is_left_out_and_named_and_the_others_finish(consortium, estimator, fault, reason):
    consortium.faults["h2"] = on_line("shape", fault)
    fitted = fit_remote(estimator, consortium, SITES, minimum=2)
    assert list(fitted.left_out_) == ["h2"]
    assert fitted.left_out_["h2"].startswith("shape:") and reason in fitted.left_out_["h2"]
    asked = [json.loads(request).get("line") for name, request in consortium.sent if name == "h2"]
    assert asked.count("shape") == 1 and "step 1" not in asked
    assert np.isfinite(fitted.directions_).all()


def test_a_slow_site_is_missed_in_one_round_and_heard_in_the_next(consortium, estimator):
    consortium.faults["h1"] = on_line("step 1", lambda answer: answer() and None)
    fitted = fit_remote(estimator, consortium, SITES, minimum=2)
    assert not fitted.left_out_
    heard = [transfer.line for transfer in fitted.transfers_ if transfer.site == "h1"]
    assert "step 1" not in heard and "step 3" in heard
    # it did compute, and it was charged
    assert spending(consortium)["h1"] == pytest.approx(1.0, rel=1e-6)


def test_a_site_that_died_is_given_up_after_two_rounds_and_the_others_finish(consortium, estimator):
    def dead(request, answer):
        return None if json.loads(request).get("line", "") in ("step 1", "residual 2", "step 2") else answer()

    consortium.faults["h1"] = dead
    fitted = fit_remote(estimator, consortium, SITES, minimum=2)
    assert "did not answer 2 rounds in a row" in fitted.left_out_["h1"]
    assert list(fitted.spending_) == ["h0", "h2"]


def test_a_dead_site_ends_the_run_in_one_sentence_if_all_are_needed(consortium, estimator):
    consortium.faults["h1"] = on_line("radius", lambda answer: None)
    with pytest.raises(SitesLostError, match="only 2 of 3 sites answered 'radius', 3 are needed"):
        fit_remote(estimator, consortium, SITES)
    assert all(0.0 < spent < 1.0 for spent in spending(consortium).values())  # the rest was given back


def test_a_site_that_refuses_the_plan_does_not_take_part(consortium, estimator):
    for _ in range(4):
        fit_remote(estimator.set_params(epsilon=0.9), consortium, ("h0",))
        if FileLedger(consortium.ledger("h0")).spent() > 1.2:
            break
    fitted = fit_remote(estimator.set_params(epsilon=1.9), consortium, SITES, minimum=2)
    assert fitted.left_out_["h0"] == "plan: the site's account does not allow this."
    assert list(fitted.sites_) == ["h1", "h2"]


def test_the_site_with_other_columns_is_named_and_the_others_go_on(consortium, estimator):
    consortium.parts["h1"] = (consortium.parts["h1"][0][:, :4], consortium.parts["h1"][1])
    fitted = fit_remote(estimator, consortium, SITES, minimum=2)
    assert fitted.left_out_ == {"h1": "differs from the other sites in the number of features."}
    assert spending(consortium)["h1"] == 0.0 and list(fitted.spending_) == ["h0", "h2"]
    with pytest.raises(InputError, match="'h0' and 'h1' differ in the number of features"):
        fit_remote(estimator, consortium, SITES)


SPENT = {"epsilon": 0.5, "delta": 1e-6, "releases": 3, "cap": "c", "guarantee": "g", "ledger": "ab", "head": "cd"}


@pytest.mark.parametrize(
    "lie",
    [
        *({"epsilon": 10**400}, {"epsilon": float("nan")}, {"epsilon": True}, {"delta": -1.0}),
        *({"cap": ["x"]}, {"head": "x" * 10**6}),
    ],
)
def test_spending_that_makes_no_sense_is_not_believed(lie):
    assert spending_from({**SPENT, "more": "ignored"}) == SPENT
    assert spending_from(SPENT | lie) is None
    assert spending_from({name: value for name, value in SPENT.items() if name not in lie}) is None


def test_a_site_that_lies_about_its_spending_does_not_spoil_the_outcome(consortium, estimator, tmp_path):
    def lies(request, answer):
        head, values = answer()
        asked = json.loads(request)["ask"]
        return (json.dumps(json.loads(head) | {"epsilon": 10**400}), values) if asked == "close" else (head, values)

    consortium.faults["h2"] = lies
    fitted = fit_remote(estimator, consortium, SITES)
    assert list(fitted.spending_) == ["h0", "h1"]
    write_json(found := describe_outcome(fitted), tmp_path)
    assert "h1: epsilon 1 spent in all runs" in summarise_outcome(found)


def test_what_sites_say_cannot_drive_the_coordinators_terminal_or_make_up_lines():
    found = {"directions": [[1.0]], "sites": {"a\x1b[2J": 5}, "disagreeing": {"c\u202e": "the response"}}
    found |= {"spending": {"a\x1b[2J": {"epsilon": 1.0, "cap": "\x1b]0;x\x07"}}}
    found |= {"left_out": {"b": "no\n  d: epsilon 0"}}
    lines = summarise_outcome(found).split("\n")
    assert len(lines) == 4 and all(line.isprintable() for line in lines)


def reserved(consortium):
    """Runs for which something is set aside at each site."""
    return {name: [run for run in FileLedger(consortium.ledger(name)).runs() if run.unspent] for name in SITES}


def test_whoever_is_left_out_gives_back_what_was_set_aside_and_tells_what_was_spent(consortium, estimator):
    consortium.faults["h2"] = on_line("shape", lambda answer: ("not json", b""))
    fitted = fit_remote(estimator, consortium, SITES, minimum=2)
    assert list(fitted.left_out_) == ["h2"] and set(fitted.spending_) == set(SITES)
    assert 0.0 < fitted.spending_["h2"]["epsilon"] < 1.0 and not any(reserved(consortium).values())


def test_a_run_that_too_few_accept_sets_nothing_aside(consortium, estimator):
    consortium.faults["h1"] = lambda request, answer: (
        ('{"refused":"no."}', b"") if json.loads(request)["ask"] == "accept" else answer()
    )
    with pytest.raises(SitesLostError, match="only 2 sites take part, 3 are needed"):
        fit_remote(estimator, consortium, SITES)
    assert set(spending(consortium).values()) == {0.0} and not any(reserved(consortium).values())


@pytest.mark.parametrize("anew", [True, False])
def test_a_run_that_nobody_goes_on_with_gives_back_what_it_had_set_aside(tmp_path, consortium, estimator, anew):
    path = tmp_path / "run.json"
    consortium.faults["h1"] = on_line("shape", lambda answer: None)
    with pytest.raises(SitesLostError):
        fit_remote(estimator, consortium, SITES, run=Journal.resume(path, {"epsilon": 1}))
    first = spending(consortium)
    assert all(spent == pytest.approx(1.0, rel=1e-6) for spent in first.values())  # set aside, for the run to go on
    consortium.faults.clear()
    journal = Journal.resume(path, {"epsilon": 1 if anew else 2}, anew=anew)
    assert len(journal.abandoned) == 1
    fit_remote(estimator.set_params(epsilon=0.5), consortium, SITES, run=journal)
    assert not journal.abandoned and not any(reserved(consortium).values())
    assert all(spent < 1.0 for spent in spending(consortium).values())


def test_a_site_that_claims_another_size_is_found_out_by_its_own_counts(consortium, estimator):
    consortium.faults["h2"] = lambda request, answer: (
        (answer()[0].replace('"n_records":2000', '"n_records":9000'), b"") if "facts" in request else answer()
    )
    fitted = fit_remote(estimator, consortium, SITES, minimum=2)
    assert "counts another number of records than the site says" in fitted.left_out_["h2"]


def test_facts_that_cannot_be_are_refused(consortium, estimator):
    consortium.faults["h0"] = lambda request, answer: (
        (answer()[0].replace('"n_records":2000', '"n_records":-5'), b"") if "facts" in request else answer()
    )
    fitted = fit_remote(estimator, consortium, SITES, minimum=2)
    assert "not a count" in fitted.left_out_["h0"]


def test_a_coordinator_cannot_seed_the_noise(consortium, estimator):
    with pytest.raises(InputError, match="belong to the sites"):
        fit_remote(estimator.set_params(random_state=1), consortium, SITES)


def test_the_one_shot_round_stays_within_its_promised_bytes(consortium, estimator):
    fitted = fit_remote(estimator.set_params(method="one-shot"), consortium, SITES)
    p, slices = 10, 10
    promised = 8 * (p * (p + 1) // 2 + p * (slices + 1) + slices)
    uploads = [transfer.received for transfer in fitted.transfers_ if transfer.line == "slices"]
    assert len(uploads) == 3 and max(uploads) <= 1.05 * promised


def wide(tmp_path, consortium):
    sample = he("V", n=3_000, p=40, sparse=4, random_state=1)
    parts = {name: (sample.x[i::3].copy(), sample.y[i::3].copy()) for i, name in enumerate(SITES)}
    return type(consortium)(tmp_path / "wide", parts), PrivateSparseSIR(1.0, 1e-5, 2, Bounds(-6, 6))


def test_sites_vote_over_the_wire_as_in_simulation(tmp_path, consortium):
    sites, sparse = wide(tmp_path, consortium)
    remote = fit_remote(sparse, sites, SITES)
    here = simulate(PrivateSparseSIR(**sparse.get_params() | {"random_state": sites.seed}), sites.parts)
    np.testing.assert_array_equal(remote.support_, here.support_)
    np.testing.assert_allclose(remote.directions_, here.directions_, rtol=0, atol=1e-12)
    assert all(told["epsilon"] <= 1.0 for told in remote.spending_.values())
    assert remote.ledger_.spent() <= 1.0


def test_sites_take_turns_and_hold_to_the_plan_that_was_proposed_when_one_refuses(tmp_path, consortium):
    """Ten sites are asked three times, in four turns; nine would have been asked four times."""
    sample = he("V", n=3_000, p=40, sparse=4, random_state=1)
    names = tuple(f"h{i}" for i in range(10))
    parts = {name: (sample.x[i::10].copy(), sample.y[i::10].copy()) for i, name in enumerate(names)}
    sites = type(consortium)(tmp_path / "ten", parts)
    sites.faults["h4"] = lambda request, answer: None if json.loads(request)["ask"] == "accept" else answer()
    fitted = fit_remote(PrivateSparseSIR(1.0, 1e-5, 2, Bounds(-6, 6)), sites, names, minimum=9)
    asked = [(name, json.loads(request).get("line", "")) for name, request in sites.sent]
    votes = [(name, line) for name, line in asked if line.startswith("picks")]
    assert sorted(votes) == sorted((name, f"picks {t}") for name in names if name != "h4" for t in range(1, 4))
    assert [name for name, line in votes if line == "picks 1"] == ["h0", "h5", "h9", "h1", "h6", "h2", "h7", "h3", "h8"]
    assert list(fitted.left_out_) == ["h4"]
    purposes = [entry.purpose for entry in fitted.ledger_.entries]
    assert len(set(purposes)) == len(purposes) and fitted.ledger_.spent() <= 1.0


def in_own_units(consortium):
    for i, (x, _) in enumerate(consortium.parts.values()):
        x *= 1.0 + i
        x += 5.0 * i
    return PrivateSIR(epsilon=1.0, delta=1e-5, n_directions=2)


def test_sites_find_units_of_their_own_over_the_wire_as_in_simulation(consortium):
    estimator = in_own_units(consortium)
    remote = fit_remote(estimator, consortium, SITES, own_units=True)
    seeded = PrivateSIR(**estimator.get_params() | {"random_state": consortium.seed})
    here = simulate(seeded, consortium.parts, own_units=True)
    np.testing.assert_array_equal(remote.directions_, here.directions_)
    assert remote.local_ == here.local_ and remote.disagreeing_ == {}
    assert all(told["epsilon"] == pytest.approx(1.0, rel=1e-6) for told in remote.spending_.values())


def test_a_site_that_is_missed_while_units_are_found_takes_no_further_part(consortium):
    estimator = in_own_units(consortium)
    consortium.faults["h1"] = on_line("zoom 1", lambda answer: None)
    fitted = fit_remote(estimator, consortium, SITES, minimum=2, own_units=True)
    assert "units of its own" in fitted.left_out_["h1"] and set(fitted.local_) == {"h0", "h2"}
    with pytest.raises(SitesLostError, match="only 2 sites found units of their own, 3 are needed"):
        fit_remote(estimator, consortium, SITES, own_units=True)
    with pytest.raises(InputError, match="bounds=None"):
        fit_remote(estimator.set_params(bounds=Bounds(-6, 6)), consortium, SITES, own_units=True)


def test_a_site_that_disagrees_is_left_out_over_the_wire_as_in_simulation(consortium, estimator):
    consortium.parts["h2"][0][:] += 3.0
    remote = fit_remote(estimator, consortium, SITES, minimum=2, leave_out=True)
    seeded = PrivateSIR(**estimator.get_params() | {"random_state": consortium.seed})
    here = simulate(seeded, consortium.parts, leave_out=True)
    np.testing.assert_array_equal(remote.directions_, here.directions_)
    assert list(remote.disagreeing_) == list(here.disagreeing_) == ["h2"]


@pytest.mark.parametrize(
    ("picks", "reason"),
    [
        ([np.nan], "not whole numbers"),
        ([0.5], "not whole numbers"),
        ([40.0], "not there"),
        ([-1.0], "not there"),
        ([3.0, 1.0], "wrong shape"),
    ],
)
def test_picks_that_cannot_be_are_left_out_and_named(tmp_path, consortium, picks, reason):
    sites, sparse = wide(tmp_path, consortium)
    sites.faults["h2"] = on_line("picks 1", altered(lambda values: np.array(picks)))
    fitted = fit_remote(sparse, sites, SITES, minimum=2)
    assert fitted.left_out_["h2"].startswith("picks 1:") and reason in fitted.left_out_["h2"]


def test_an_upload_twice_over_is_refused(consortium, estimator):
    consortium.faults["h2"] = on_line("shape", altered(lambda values: np.concatenate([values, values])))
    assert "wrong length" in fit_remote(estimator, consortium, SITES, minimum=2).left_out_["h2"]


def test_real_sites_give_the_coordinator_a_real_guarantee(tmp_path, consortium, estimator):
    real = type(consortium)(tmp_path / "real", consortium.parts, seed=None)
    fitted = fit_remote(estimator.set_params(method="one-shot"), real, SITES)
    assert "nor another site needs to be trusted" in fitted.ledger_.guarantee
    assert all("differentially private" in told["guarantee"] for told in fitted.spending_.values())
