"""A site that trusts nobody: plans, caps, replays and bad questions."""

import json

import numpy as np
import pytest

from sfumato import Bounds, Budget
from sfumato.federated.site import handle
from sfumato.privacy.events import Selection
from sfumato.privacy.ledger import FileLedger
from sfumato.statistics.histograms import Bins, OctaveHistograms, ResponseHistogram, octave_edges
from sfumato.statistics.moments import SquareSums
from sfumato.statistics.wire import dump_json, encode

RUN = "ab" * 8
TERMS = {
    "run": RUN,
    "relation": "replace",
    "budget": {"epsilon": 1.0, "delta": 1e-5, "rho": None},
    "trust": {"kind": "sites", "sites": 3, "honest": 1},
    "shares": [["response magnitude", 0.5], ["magnitude", 0.5]],
}
QUESTION = encode(ResponseHistogram(Bins(octave_edges())))


def ask(consortium, **request):
    head, values = handle(consortium.site("h0"), dump_json(request))
    return json.loads(head), values


def accept(consortium, **changes):
    return ask(consortium, ask="accept", terms=TERMS | changes)[0]


def answer(consortium, line="response magnitude", query=QUESTION, run=RUN):
    return ask(consortium, ask="answer", run=run, line=line, query=query)


def spent(consortium):
    ledger = FileLedger(consortium.ledger("h0"))
    return ledger.spent(), len(ledger)


def test_a_replayed_question_gets_the_stored_answer_at_no_cost(consortium):
    accept(consortium)
    _, first = answer(consortium)
    before = spent(consortium)
    consortium.seed = None  # even fresh noise would show: the answer is not drawn again
    assert answer(consortium)[1] == first
    assert spent(consortium) == before


def test_a_plan_proposed_twice_is_charged_once_and_another_under_its_name_is_refused(consortium):
    assert accept(consortium)["accepted"] and accept(consortium)["accepted"]
    assert spent(consortium)[0] == pytest.approx(1.0, rel=1e-6)
    assert "taken by another plan" in accept(consortium, shares=[["magnitude", 1.0]])["refused"]


def test_another_question_for_an_answered_line_is_refused(consortium):
    accept(consortium)
    answer(consortium)
    other = encode(ResponseHistogram(Bins(np.array([0.0]))))
    assert "already answered, for another question" in answer(consortium, query=other)[0]["refused"]
    assert spent(consortium)[1] == 1


def test_noise_follows_from_the_sites_own_copy_of_the_plan(consortium):
    accept(consortium)
    head, _ = ask(consortium, ask="answer", run=RUN, line="magnitude", query=encode(OctaveHistograms(10)), noise=0.0)
    entry = FileLedger(consortium.ledger("h0")).entries[0]
    assert head["line"] == "magnitude"
    assert entry.noise_std == pytest.approx(np.sqrt(20.0) / entry.event.mu)
    assert entry.purpose == "order of magnitude of each feature"


def test_a_plan_beyond_the_cap_is_refused_and_costs_nothing(consortium):
    reply = accept(consortium, budget={"epsilon": 5.0, "delta": 1e-5, "rho": None})
    assert reply["refused"] == "the site's account does not allow this."
    assert "would pass the cap" in consortium.told[-1]
    assert spent(consortium) == (0.0, 0)


def test_three_runs_do_not_fit_under_a_cap_for_two(consortium):
    replies = [accept(consortium, run=f"{i:08x}") for i in range(6)]
    assert "accepted" in replies[0] and "refused" in replies[-1]
    assert spent(consortium)[0] <= 2.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shares": [["passwords", 1.0]]}, "a line that sites do not answer"),
        ({"shares": [["ranks", 1.0], ["ranks", 1.0]]}, "a line twice"),
        ({"shares": [["ranks", -1.0]]}, "must have a share"),
        ({"shares": []}, "no lines"),
        ({"relation": "add-remove"}, "the site's ledger for another"),
        ({"relation": "none"}, "relation must be"),
        ({"budget": {"epsilon": -1.0, "delta": 1e-5, "rho": None}}, "epsilon must be"),
        ({"budget": {"epsilon": 1.0}}, "budget does not have the known fields"),
        ({"trust": {"kind": "secure-aggregation", "sites": 10**6, "honest": 10**6}}, "adds all its noise itself"),
        ({"run": "../../etc"}, "hexadecimal"),
        ({"noise": 0}, "known fields"),
        ({"picks": {"magnitude": 3}}, "picks nothing"),
        ({"picks": {"picks": 3}}, "picks nothing"),
        ({"picks": [3]}, "picks nothing"),
        ({"shares": [["picks", 1.0]], "picks": {"picks": 0}}, "must pick from 1 to 1000"),
        ({"shares": [["picks", 1.0]], "picks": {"picks": 10**6}}, "must pick from 1 to 1000"),
        ({"shares": [["picks", 1.0]], "picks": {"picks": True}}, "must pick from 1 to 1000"),
    ],
)
def test_a_plan_that_is_not_known_and_safe_is_refused(consortium, changes, sentence):
    assert sentence in accept(consortium, **changes)["refused"]
    assert spent(consortium) == (0.0, 0)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({"ask": "records"}, "something that sites do not do"),
        ({"ask": "answer", "run": RUN, "line": "shape", "query": QUESTION}, "no such line"),
        ({"ask": "answer", "run": RUN, "line": ["x"], "query": QUESTION}, "no such line"),
        ({"ask": "answer", "run": RUN, "line": "magnitude", "query": QUESTION}, "does not ask this kind"),
        ({"ask": "answer", "run": "cd" * 8, "line": "magnitude", "query": QUESTION}, "propose it first"),
        (
            {"ask": "answer", "run": RUN, "line": "magnitude", "query": {"kind": "eval"}},
            "kind that sites do not answer",
        ),
        ({"ask": "answer", "run": RUN, "line": "magnitude", "query": encode(OctaveHistograms(11))}, "another number"),
    ],
)
def test_a_message_that_is_not_known_and_safe_is_refused_before_any_charge(consortium, request_, sentence):
    accept(consortium)
    assert sentence in ask(consortium, **request_)[0]["refused"]
    assert spent(consortium)[1] == 0


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"ask":NaN}', "[" * 100_000])
def test_no_message_makes_a_site_raise(consortium, text):
    assert "refused" in json.loads(handle(consortium.site("h0"), text)[0])


def test_a_site_killed_after_the_charge_never_draws_that_noise_again(consortium, monkeypatch):
    from sfumato.federated.store import Store

    accept(consortium)
    monkeypatch.setattr(Store, "keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        answer(consortium)
    monkeypatch.undo()
    assert "interrupted after it was charged" in answer(consortium)[0]["refused"]
    assert spent(consortium)[1] == 1


def test_closing_a_run_gives_back_what_it_did_not_use_and_ends_it(consortium):
    accept(consortium)
    answer(consortium)
    told, _ = ask(consortium, ask="close", run=RUN)
    assert 0.0 < told["epsilon"] < 1.0
    late = answer(consortium, "magnitude", encode(OctaveHistograms(10)))[0]
    assert late["refused"] == "the site's account does not allow this." and "run was closed" in consortium.told[-1]


def test_more_picks_cost_more_and_no_more_are_picked_than_there_are(consortium):
    grid = Bounds(-6, 6).grid(10)
    for picks, run in ((2, "aa" * 8), (11, "bb" * 8)):
        assert accept(consortium, run=run, shares=[["picks", 1.0]], picks={"picks": picks})["accepted"]
        head, values = answer(consortium, "picks", encode(SquareSums(grid, 0.5)), run)
        if picks == 2:
            picked = np.frombuffer(values)
            assert picked.size == 2 and set(picked) <= set(range(10))
            event = FileLedger(consortium.ledger("h0")).entries[0].event
            assert event.picks == 2 and event == Selection(event.epsilon, 2)
        else:
            assert "picks more features than it is about" in head["refused"]


def test_a_refusal_tells_the_coordinator_neither_a_path_nor_an_amount(consortium):
    """Whatever is wrong at the site; its own operator is told all of it."""
    accept(consortium)
    replies = [accept(consortium, run="ee" * 8, budget={"epsilon": 1.95, "delta": 1e-5, "rho": None})]
    consortium.parts["h0"][0][0, 0] = np.nan
    replies.append(accept(consortium, run="cd" * 8))
    ledger = consortium.ledger("h0")
    ledger.write_text("spoiled" + ledger.read_text())
    replies.append(ask(consortium, ask="facts")[0])
    ledger.unlink()
    replies.append(ask(consortium, ask="facts")[0])
    said = " ".join(reply["refused"] for reply in replies)
    assert len(replies) == 4 and not any(mark in said for mark in ("/", "jsonl", "epsilon", "0", "column"))
    told = " ".join(consortium.told)
    assert all(detail in told for detail in ("is left", "missing or infinite", str(ledger)))


def test_one_run_may_spend_so_much_and_a_site_must_be_so_large(consortium):
    consortium.rules = {"most": Budget.approximate(0.5, 1e-5)}
    assert accept(consortium)["refused"] == "the plan would spend more than one run may spend here."
    assert accept(consortium, budget={"epsilon": 0.5, "delta": 1e-5, "rho": None})["accepted"]
    consortium.rules = {"least": 2_001}
    for reply in (ask(consortium, ask="facts")[0], accept(consortium, run="cd" * 8)):
        assert reply["refused"] == "the site has too few records to take part."
    assert "2000 records, fewer than 2001" in consortium.told[-1]
    consortium.rules = {"least": 2_000}
    assert "refused" not in ask(consortium, ask="facts")[0]


def test_a_private_number_of_records_is_not_compared_with_a_floor(people):
    people.rules = {"least": 10}
    head, _ = handle(people.site("h0"), dump_json({"ask": "facts"}))
    assert "cannot answer" in json.loads(head)["refused"] and "is private here" in people.told[-1]


def test_an_operator_is_shown_what_a_run_asks_for_and_may_say_no(consortium):
    asked = []

    def no(what):
        asked.append(what)
        return False

    consortium.rules = {"consent": no}
    assert accept(consortium)["refused"] == "the site's operator does not agree to this run."
    wanted = "run abababab of 3 site(s) asks for (epsilon = 1, delta = 1e-05): response magnitude, magnitude"
    assert asked == [wanted] and spent(consortium) == (0.0, 0)
    consortium.rules = {"consent": lambda what: True}
    assert accept(consortium)["accepted"]
    consortium.rules = {}
    assert accept(consortium, run="cd" * 8)["accepted"] and wanted.replace("ab", "cd") + "." in consortium.told


def test_a_seeded_site_refuses_to_write_a_real_ledger(tmp_path, consortium):
    real = type(consortium)(tmp_path / "real", consortium.parts, seed=None)
    real.seed = 3
    assert "not for rehearsal" in accept(real)["refused"]


def test_a_site_refuses_another_ledger_than_its_own(consortium, tmp_path):
    accept(consortium)
    own = consortium.ledger("h0")
    own.rename(tmp_path / "elsewhere.jsonl")
    FileLedger(own, Budget.approximate(2.0, 1e-5), rehearsal=True)  # as if it were started in another folder
    for reply in (answer(consortium)[0], ask(consortium, ask="facts")[0], ask(consortium, ask="close", run=RUN)[0]):
        assert reply["refused"] == "the site cannot answer; its operator has been told why."
        assert "is not the ledger this site has used so far" in consortium.told[-1]
    assert len(FileLedger(own)) == 0


def test_a_site_notices_that_its_ledger_was_cut(consortium):
    accept(consortium)
    answer(consortium)
    own = consortium.ledger("h0")
    lines = own.read_bytes().splitlines(keepends=True)
    own.write_bytes(b"".join(lines[:-1]))
    assert "cannot answer" in ask(consortium, ask="facts")[0]["refused"]
    assert "no longer contains what this site wrote to it" in consortium.told[-1]
    own.write_bytes(b"".join(lines))
    assert "refused" not in ask(consortium, ask="facts")[0]


def test_the_last_reply_of_a_run_tells_the_head_of_the_ledger(consortium):
    accept(consortium)
    answer(consortium)
    told = ask(consortium, ask="close", run=RUN)[0]
    ledger = FileLedger(consortium.ledger("h0"))
    assert (told["ledger"], told["head"]) == (ledger.id, ledger.head) and ledger.verify(told["head"])
