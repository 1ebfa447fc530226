"""Checkpoints: a long ledger is opened at its last one, says the same as without, and trusts no changed byte."""

import json
import shutil
from pathlib import Path

import pytest

from sfumato import Budget, BudgetError
from sfumato.privacy.accounting import zcdp_epsilon
from sfumato.privacy.budget import adaptive_epsilon
from sfumato.privacy.events import Selection, rho
from sfumato.privacy.ledger import Entry, FileLedger, chain, file
from sfumato.privacy.ledger.admin import merge, repair, show
from sfumato.privacy.ledger.chain import Chain
from sfumato.privacy.plan import Line, Plan
from sfumato.privacy.unit import Unit

GOLDEN = Path(__file__).parents[1] / "golden"
CAP = Budget.approximate(50, 1e-6)
ONE = Plan((Line("a", "a", 1.0, ""), Line("b", "b", 1.0, ""))).calibrate(Budget.zcdp(0.01))
PICKS = Plan((Line("a", "a", 1.0, "", "selection", 3),)).calibrate(Budget.zcdp(0.01))


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A checkpoint every ten lines."""
    monkeypatch.setattr(chain, "EVERY", 10)
    monkeypatch.setattr(file, "EVERY", 10)


def spend(path, plan, count=99):
    ledger = FileLedger(path)
    ledger.reserve(plan)
    for event in plan.events[:count]:
        ledger.record(Entry("p", "q", event, 1.0, 2.0, 0.5, "replace"))
    return ledger


@pytest.fixture(params=["gaussian", "mixed"])
def path(tmp_path, request):
    path = tmp_path / "l.jsonl"
    FileLedger(path, CAP)
    for i in range(25):
        spend(path, PICKS if request.param == "mixed" and i % 3 == 0 else ONE)
    return path


def read_from_the_first_line(path):
    return Chain().extend(path.read_bytes(), whole=True).account


def test_a_ledger_opened_at_a_checkpoint_says_what_all_its_lines_say(path):
    kept = spend(path, ONE, count=1)  # one run stays open
    for _ in range(12):
        spend(path, ONE)
    whole, ledger = read_from_the_first_line(path), FileLedger(path)
    assert path.read_bytes().count(chain.CHECKPOINT) > 5
    assert ledger._account.before.runs > 20 and len(ledger._account.runs) < 10  # it was opened at the last one
    assert ledger.rho == pytest.approx(sum(map(rho, whole.events)), rel=1e-12)
    assert len(ledger) == len(whole.entries) and ledger.entries == whole.entries
    assert [run.id for run in ledger.runs()] == list(whole.runs)
    assert [run.id for run in ledger._account.runs.values() if run.unspent] == [kept._run]
    assert ledger.total() == pytest.approx(adaptive_epsilon(whole.events, 1e-6), rel=1e-12)
    assert f"{ledger._chain.count} lines, all hashes agree" in ledger.verify()
    kept.record(Entry("p", "q", ONE.events[1], 1.0, 2.0, 0.5, "replace"))
    assert len(kept.mine) == 2 and FileLedger(path).runs()[25].state == "complete"


def test_folding_rounds_up_and_keeps_the_cap(path):
    whole = read_from_the_first_line(path)
    exact = sum(map(rho, whole.events))
    assert exact * (1 - 1e-15) <= FileLedger(path).rho <= exact * (1 + 1e-12)


def test_a_ledger_that_stays_open_and_one_that_is_opened_anew_agree(path):
    old = FileLedger(path)
    for _ in range(9):
        spend(path, ONE)
    assert old.refresh().rho == pytest.approx(FileLedger(path).rho, rel=1e-12) and len(old) == len(FileLedger(path))
    assert old.head == FileLedger(path).head


def test_a_closed_run_stays_closed_behind_a_checkpoint(path):
    own = spend(path, ONE, count=1)
    other = FileLedger(path)
    other.close(own._run)
    for _ in range(9):
        spend(path, ONE)
    with pytest.raises(BudgetError, match="closed"):
        own.record(Entry("p", "q", ONE.events[1], 1.0, 2.0, 0.5, "replace"))
    again = FileLedger(path)
    again._run = own._run  # as a site that was started again goes on with its run
    with pytest.raises(BudgetError, match="closed"):
        again.record(Entry("p", "q", ONE.events[1], 1.0, 2.0, 0.5, "replace"))


@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.9])
def test_a_byte_changed_before_a_checkpoint_is_noticed_on_opening(path, place):
    whole = bytearray(path.read_bytes())
    at = whole.index(b'"mu":0.', int(place * len(whole)))
    whole[at + 8] ^= 1
    path.write_bytes(whole)
    assert FileLedger(path).rho == float("inf")
    with pytest.raises(BudgetError, match=f"line {bytes(whole[:at]).count(10) + 1} does not belong"):
        FileLedger(path).reserve(ONE)
    assert repair(path, "a bit flipped", lost=ONE.events).rho >= 0.25 * (1 - 1e-9)


def test_a_checkpoint_that_says_too_little_is_damage(path):
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if chain.CHECKPOINT in line)
    told = json.loads(lines[last])
    prev = told.pop("prev")
    told.pop("hash"), told.pop("kind")
    told["spent"] = []
    forged = file.seal("checkpoint", told, prev)[1]
    path.write_bytes(b"".join(lines[:last]) + forged)
    with pytest.raises(BudgetError, match="does not say what the lines before it add up to"):
        FileLedger(path).verify()


def test_marks_and_merges_reach_behind_checkpoints(path, tmp_path):
    early = FileLedger(path).mark
    for _ in range(9):
        spend(path, ONE)
    assert FileLedger(path).verify(early) and FileLedger(path).continues(early)
    merged = merge([path], tmp_path / "m.jsonl", CAP)
    assert merged.rho == pytest.approx(FileLedger(path).rho) and merged.entries == FileLedger(path).entries
    spend(merged.path, ONE)
    assert FileLedger(merged.path).verify() and "epsilon" in show(FileLedger(merged.path), entries=True)


def test_a_selection_before_a_checkpoint_is_never_totalled_as_gaussian(tmp_path):
    FileLedger(tmp_path / "l.jsonl", CAP)
    for _ in range(12):
        spend(tmp_path / "l.jsonl", PICKS)
    ledger = FileLedger(tmp_path / "l.jsonl")
    assert ledger._account.before.runs and not any(isinstance(event, Selection) for event in ledger.events[:1])
    assert ledger.total() == pytest.approx(
        adaptive_epsilon(read_from_the_first_line(ledger.path).events, 1e-6), rel=1e-12
    )


def test_a_ledger_of_persons_keeps_whom_it_protects_over_a_checkpoint(tmp_path):
    path = tmp_path / "persons.jsonl"
    FileLedger(path, CAP, protects="person")
    for rows in (7, *[2] * 20):
        ledger = FileLedger(path)
        ledger.unit = Unit(rows)
        ledger.reserve(ONE)
        for event in ONE.events:
            ledger.record(Entry("p", "q", event, 1.0, 2.0, 0.5, "replace", unit=ledger.unit))
    found = FileLedger(path)
    assert found._account.before.runs > 10 and found.protects == "person"
    assert "(at most 7 of them count)" in found.guarantee  # though the run that said so was folded
    with pytest.raises(BudgetError, match="protects any one person"):
        found.record(Entry("p", "q", ONE.events[0], 1.0, 2.0, 0.5, "replace"))
    assert merge([path], tmp_path / "m.jsonl", CAP).protects == "person"
    assert "relation 'replace' of a person" in show(found)


def test_a_ledger_of_the_first_version_says_the_same_and_goes_on(tmp_path):
    path = tmp_path / "l.jsonl"
    shutil.copy(GOLDEN / "ledger-1.jsonl", path)
    ledger = FileLedger(path)
    costs = 0.1, 0.1 / 2, 0.05, 0.1, 0.0, 0.1  # complete, closed half way, a selection, open, a free repair, open
    assert [run.state for run in ledger.runs()] == ["complete", "closed", "complete", "open", "complete", "open"]
    assert ledger.rho == pytest.approx(sum(costs)) and len(ledger) == 5 and ledger.verify()
    assert ledger.total() == pytest.approx(zcdp_epsilon(sum(costs), 1e-6))  # several runs, one of which selects
    for _ in range(9):
        spend(path, ONE)
    assert path.read_bytes().startswith((GOLDEN / "ledger-1.jsonl").read_bytes()) and FileLedger(path)._account.before
    assert FileLedger(path).rho == pytest.approx(sum(costs) + 9 * 0.01) and FileLedger(path).verify()
