"""A coordinator that was interrupted asks the very same questions again, whoever is there by now."""

import json

import numpy as np
import pytest

from sfumato import InputError, PrivateSIR
from sfumato.federated import SitesLostError, simulate
from sfumato.federated.coordinator import describe_outcome, describe_status, fit_remote, write_json
from sfumato.federated.store import Journal, Store
from sfumato.privacy.ledger import FileLedger

SITES = ("h0", "h1", "h2")


def silent_from(line):
    """A site that goes silent on a line and stays so."""
    gone = []

    def fault(request, answer):
        if gone or json.loads(request).get("line") == line:
            gone.append(line)
            return None
        return answer()

    return fault


def dies_on(line):
    def fault(request, answer):
        if json.loads(request).get("line") == line:
            raise KeyboardInterrupt
        return answer()

    return fault


def test_a_run_goes_on_only_with_the_same_settings(tmp_path):
    first = Journal.resume(tmp_path / "run.json", {"epsilon": 1.0}).run
    assert Journal.resume(tmp_path / "run.json", {"epsilon": 1.0}).run == first
    assert Journal.resume(tmp_path / "run.json", {"epsilon": 2.0}).run != first


def test_a_site_that_was_missing_and_is_back_does_not_change_the_questions(tmp_path, consortium, estimator):
    """Without memory the sums would now include it, and every other site would refuse the questions that follow."""
    path = tmp_path / "run.json"
    consortium.faults = {"h1": silent_from("shape"), "h2": dies_on("step 2")}
    with pytest.raises(KeyboardInterrupt):
        fit_remote(estimator, consortium, SITES, minimum=2, run=Journal.resume(path, {}))
    consortium.faults = {}
    resumed = fit_remote(estimator, consortium, SITES, minimum=2, run=Journal.resume(path, {}))
    assert not resumed.left_out_
    for name in ("h0", "h2"):
        assert FileLedger(consortium.ledger(name)).spent() == pytest.approx(1.0, rel=1e-6)


def test_a_site_that_comes_after_the_plan_was_made_does_not_take_part(tmp_path, consortium, estimator):
    path = tmp_path / "run.json"
    consortium.faults = {"h2": dies_on("shape")}
    with pytest.raises(KeyboardInterrupt):
        fit_remote(estimator, consortium, ("h0", "h2"), run=Journal.resume(path, {}))
    consortium.faults = {}
    resumed = fit_remote(estimator, consortium, SITES, minimum=2, run=Journal.resume(path, {}))
    assert resumed.left_out_ == {"h1": "was not there when this run began."}
    two = {name: consortium.parts[name] for name in ("h0", "h2")}
    whole = simulate(PrivateSIR(**estimator.get_params() | {"random_state": consortium.seed}), two)
    np.testing.assert_array_equal(resumed.directions_, whole.directions_)


def test_a_site_that_had_answered_and_is_gone_is_waited_for_in_one_sentence(tmp_path, consortium, estimator):
    path = tmp_path / "run.json"
    consortium.faults = {"h2": dies_on("shape")}
    with pytest.raises(KeyboardInterrupt):
        fit_remote(estimator, consortium, SITES, minimum=2, run=Journal.resume(path, {}))
    consortium.faults = {"h1": lambda request, answer: None}
    with pytest.raises(SitesLostError, match=r"h1 answered .* before this run was interrupted.*run\.json"):
        fit_remote(estimator, consortium, SITES, minimum=2, run=Journal.resume(path, {}))
    consortium.faults = {}
    whole = simulate(PrivateSIR(**estimator.get_params() | {"random_state": consortium.seed}), consortium.parts)
    resumed = fit_remote(estimator, consortium, SITES, minimum=2, run=Journal.resume(path, {}))
    np.testing.assert_array_equal(resumed.directions_, whole.directions_)


def test_too_few_answers_do_not_bind_a_run_that_goes_on(tmp_path, consortium, estimator):
    path = tmp_path / "run.json"
    consortium.faults = {"h1": silent_from("shape")}
    with pytest.raises(SitesLostError, match="only 2 of 3 sites answered 'shape'"):
        fit_remote(estimator, consortium, SITES, run=Journal.resume(path, {}))
    consortium.faults = {}
    resumed = fit_remote(estimator, consortium, SITES, run=Journal.resume(path, {}))
    assert not resumed.left_out_ and set(resumed.spending_) == set(SITES)


def test_a_coordinators_folder_tells_what_was_left_undone_and_what_came_of_it(tmp_path, consortium, estimator):
    path = tmp_path / "run.json"
    assert describe_status(tmp_path) == "no run is going on"
    consortium.faults = {"h2": dies_on("shape")}
    with pytest.raises(KeyboardInterrupt):
        fit_remote(estimator, consortium, SITES, run=Journal.resume(path, {}))
    told = describe_status(tmp_path)
    assert "h0: 2,000 records, takes part" in told and "ranks (3)" in told and "shape" not in told
    consortium.faults = {}
    journal = Journal.resume(path, {}, anew=True)
    told = describe_status(tmp_path)
    assert "1 run(s) given up" in told and "answered so far, by so many sites: nothing" in told
    fitted = fit_remote(estimator.set_params(epsilon=0.5), consortium, SITES, run=journal)
    (tmp_path / "result").mkdir()
    write_json(describe_outcome(fitted), tmp_path / "result")
    journal.forget()
    told = describe_status(tmp_path)
    assert told.startswith("no run is going on") and "2 direction(s) from 3 site(s)" in told


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"run": 1}', '{"run": "ab", "members": 3, "accepted": {}, "heard": {}}']
)
def test_notes_of_a_run_that_cannot_be_read_are_named_with_the_remedy(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_text(text)
    for read in (lambda: describe_status(tmp_path), lambda: Journal.resume(path, {})):
        with pytest.raises(InputError, match=r"run\.json cannot be read; restore it, or delete it to begin anew"):
            read()
    assert path.read_text() == text
    path.unlink()
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "outcome.json").write_text(text)
    with pytest.raises(InputError, match=r"outcome\.json cannot be read"):
        describe_status(tmp_path)


def test_a_run_that_never_began_takes_whoever_is_there_next_time(tmp_path, consortium, estimator):
    path = tmp_path / "run.json"
    with pytest.raises(SitesLostError, match="only 1 sites take part, 3 are needed"):
        fit_remote(estimator, consortium, ("h0",), minimum=3, run=Journal.resume(path, {}))
    fitted = fit_remote(estimator, consortium, SITES, run=Journal.resume(path, {}))
    assert not fitted.left_out_ and set(fitted.spending_) == set(SITES)


def test_a_site_killed_before_it_noted_a_run_sets_its_cost_aside_once(consortium, estimator, monkeypatch):
    def dies(*_):
        raise KeyboardInterrupt

    journal = Journal("ab" * 16)
    monkeypatch.setattr(Store, "begin", dies)
    with pytest.raises(KeyboardInterrupt):
        fit_remote(estimator, consortium, SITES, run=journal)
    monkeypatch.undo()
    (left,) = FileLedger(consortium.ledger("h0")).runs()
    assert left.unspent
    fit_remote(estimator, consortium, SITES, run=Journal("ab" * 16))
    (run,) = FileLedger(consortium.ledger("h0")).runs()
    assert run.id == left.id and not run.unspent and FileLedger(consortium.ledger("h0")).spent() <= 1.0 + 1e-9
