"""The ledger file: what it counts, what it refuses, what it notices."""

import json
import os
import pickle
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

from sfumato import Bounds, Budget, BudgetError, InputError, PrivateSIR
from sfumato.privacy.events import Gaussian, NoGuarantee, Selection
from sfumato.privacy.ledger import Entry, FileLedger, Ledger, disk
from sfumato.privacy.ledger.admin import merge, show
from sfumato.privacy.plan import Line, Plan

CAP = Budget.approximate(3, 1e-6)


def plan(epsilon, parts=2, **more):
    lines = (Line(f"part {i}", "a part", 1.0, "1", **more) for i in range(parts))
    return Plan(tuple(lines)).calibrate(Budget.approximate(epsilon, 1e-6))


def entry(event):
    return Entry("purpose", "query", event, 1.0, 2.0, 0.5, "replace")


def spend(ledger, epsilon, parts=2):
    run = plan(epsilon, parts)
    ledger.reserve(run)
    for event in run.events:
        ledger.record(entry(event))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.jsonl"


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 3))
    return x, x[:, 0] + 0.1 * rng.standard_normal(300)


def test_a_fit_writes_every_release_and_the_file_knows_who_when_and_why(path, data):
    FileLedger(path, CAP)
    ledger = FileLedger(path, purpose="trial 7")
    sir = PrivateSIR(epsilon=1, bounds=Bounds(-1, 1), method="descent", ledger=ledger).fit(*data)
    again = FileLedger(path)
    assert again.entries == sir.ledger_.entries == sir.ledger_.mine
    assert again.total() == pytest.approx(1, abs=1e-6)
    (run,) = again.runs()
    assert run.state == "complete" and run.purpose == "trial 7" and run.by["pid"] == os.getpid() and run.at
    assert "trial 7" in show(again, entries=True) and "descent step 1" in show(again, entries=True)
    assert again.verify().endswith(again.head + ".")


def test_a_path_serves_as_ledger_and_the_cap_ends_it_in_one_sentence(path, data):
    FileLedger(path, Budget.approximate(1.5, 1e-6))
    PrivateSIR(epsilon=1, bounds=Bounds(-1, 1), ledger=str(path)).fit(*data)
    before = path.read_bytes()
    with pytest.raises(BudgetError, match=r"epsilon = 1\.0\d+, delta = 1e-06\) is left") as caught:
        PrivateSIR(epsilon=1.2, bounds=Bounds(-1, 1), ledger=path).fit("never read", None)
    assert "\n" not in str(caught.value) and path.read_bytes() == before


def test_what_remains_is_admitted_and_nothing_more(path):
    ledger = FileLedger(path, CAP)
    spend(ledger, 2)
    left = ledger.remaining()
    with pytest.raises(BudgetError):
        ledger.admit(plan(left.epsilon * (1 + 1e-6)))
    spend(ledger.begin(), left.epsilon)
    assert FileLedger(path).remaining() is None
    assert FileLedger(path).total() <= 3 * (1 + 1e-12)


def test_a_mixture_is_totalled_as_later_runs_may_depend_on_earlier_results(path):
    ledger = FileLedger(path, CAP)
    ledger.reserve(plan(1, mechanism="selection"))
    assert ledger.total() == pytest.approx(1, rel=1e-3)  # one plan, fixed beforehand: numerical composition
    ledger.begin().reserve(plan(1))
    assert FileLedger(path).total() > 1.4  # runs chosen adaptively: zCDP
    spend(FileLedger(path), FileLedger(path).remaining().epsilon)
    assert FileLedger(path).total() <= 3 * (1 + 1e-9)


def test_an_open_run_counts_whole_and_a_closed_one_what_it_released(path):
    ledger = FileLedger(path, CAP)
    run = plan(1)
    ledger.reserve(run)
    ledger.record(entry(run.events[0]))
    assert FileLedger(path).total() == pytest.approx(1)
    other = FileLedger(path)
    other.close(other.runs()[0].id)
    assert other.events == run.events[:1]
    with pytest.raises(BudgetError, match="closed"):
        ledger.record(entry(run.events[1]))
    assert FileLedger(path).events == run.events[:1]


def test_a_run_that_fails_gives_back_what_it_did_not_use(path):
    cap = FileLedger(path, CAP)
    run = cap.begin()
    run.reserve(plan(1))
    del run
    assert cap.remaining() == CAP or cap.remaining().epsilon == pytest.approx(3)
    assert [found.state for found in cap.runs()] == ["closed"]


def test_a_run_collected_while_the_lock_is_held_waits_for_it_elsewhere(path):
    cap = FileLedger(path, CAP)
    run = cap.begin()
    run.reserve(plan(1))
    begun = time.monotonic()
    with disk.locked(path, write=True):
        del run
    while cap.remaining().epsilon < 2.9 and time.monotonic() < begun + 30:
        time.sleep(0.01)
    assert [found.state for found in cap.runs()] == ["closed"]


def test_refused_data_cost_nothing(path, data):
    FileLedger(path, CAP)
    before = path.read_bytes()
    x, y = data
    with pytest.raises(ValueError, match="NaN"):
        PrivateSIR(ledger=path).fit(np.where(x > 0.99, np.nan, x), y)
    assert path.read_bytes() == before


def test_a_release_outside_any_plan_must_fit_the_cap(path):
    ledger = FileLedger(path, Budget.zcdp(0.5))
    ledger.record(entry(Gaussian(0.9)))
    with pytest.raises(BudgetError, match=r"rho = 0\.095 zCDP is left"):
        ledger.record(entry(Gaussian(0.9)))
    with pytest.raises(BudgetError):
        ledger.record(entry(NoGuarantee("none")))
    assert FileLedger(path).rho == pytest.approx(0.405)


def test_a_mistyped_name_opens_no_second_account(path, data):
    FileLedger(path, CAP)
    wrong = path.with_name("stduy.jsonl")
    with pytest.raises(InputError, match=r"no file .*create"):
        PrivateSIR(ledger=wrong).fit(*data)
    assert not wrong.exists()
    with pytest.raises(InputError, match="exists with cap"):
        FileLedger(path, Budget.approximate(4, 1e-6))
    assert FileLedger(path, CAP).budget == CAP


def test_a_ledger_is_the_same_account_wherever_the_process_goes(tmp_path, data, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (there, here):
        place.mkdir()
        monkeypatch.chdir(place)
        ledger = FileLedger("study.jsonl", CAP)
    sir = PrivateSIR(bounds=Bounds(-1, 1), method="one-shot", ledger=ledger)
    monkeypatch.chdir(there)
    sir.fit(*data)
    assert len(FileLedger(there / "study.jsonl")) == 0 < len(FileLedger(here / "study.jsonl"))


def test_a_file_that_was_exchanged_for_another_account_is_refused(path, data):
    sir = PrivateSIR(bounds=Bounds(-1, 1), method="one-shot", ledger=FileLedger(path, CAP))
    path.rename(path.with_name("old.jsonl"))
    other = FileLedger(path, CAP)
    with pytest.raises(InputError, match="no longer the account"):
        sir.fit(*data)
    assert len(other.refresh()) == 0


def test_seeded_noise_and_another_relation_are_refused(path, data):
    FileLedger(path, CAP)
    with pytest.raises(BudgetError, match="random_state"):
        PrivateSIR(ledger=path, random_state=1).fit(*data)
    with pytest.raises(InputError, match="relation"):
        PrivateSIR(ledger=path, relation="add-remove").fit(*data)
    rehearsed = FileLedger(path.with_name("rehearsal.jsonl"), CAP, rehearsal=True)
    fitted = PrivateSIR(bounds="search", ledger=rehearsed, random_state=1).fit(*data)
    assert fitted.ledger_.total() == np.inf


def test_a_copy_of_a_ledger_is_the_ledger(path):
    ledger = Ledger(CAP, "replace")
    assert clone(PrivateSIR(ledger=ledger)).ledger is ledger  # else every clone could spend the whole cap
    file = FileLedger(path, CAP)
    spend(file, 1)
    kept = pickle.dumps(file)
    path.unlink()
    assert pickle.loads(kept).entries == file.entries


def test_merging_copies_counts_every_release_once(path, tmp_path):
    spend(FileLedger(path, CAP), 1)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    spend(FileLedger(path), 0.5)
    spend(FileLedger(copy), 0.7)
    other = FileLedger(tmp_path / "other.jsonl", CAP)
    other.reserve(plan(0.3))
    merged = merge([path, copy, other.path], tmp_path / "all.jsonl", Budget.approximate(5, 1e-6))
    expected = sum(rho.mu**2 for e in (1, 0.5, 0.7, 0.3) for rho in plan(e).events)
    assert 2 * merged.rho == pytest.approx(expected)
    assert len(merged.entries) == 6 and merged.verify()
    twice = merge([merged.path, path], tmp_path / "again.jsonl", CAP)
    assert twice.rho == pytest.approx(merged.rho)
    with pytest.raises(InputError, match="exists"):
        merge([path], merged.path, CAP)


def test_threads_that_share_one_ledger_never_pass_the_cap(path):
    ledger = FileLedger(path, Budget.zcdp(0.5))
    one = Plan((Line("a", "a", 1.0, ""),)).calibrate(Budget.zcdp(0.1))
    admitted = []

    def go():
        run = ledger.begin()
        try:
            run.reserve(one)
            admitted.append(run)
        except BudgetError:
            pass

    threads = [threading.Thread(target=go) for _ in range(12)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(admitted) == 5 and FileLedger(path).rho <= 0.5 * (1 + 1e-12)


def test_a_full_disk_refuses_the_release_and_leaves_the_file_whole(path, monkeypatch):
    ledger = FileLedger(path, CAP)
    before = path.read_bytes()
    whole = os.write
    calls = []

    def short(fd, text):
        calls.append(fd)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return whole(fd, text[:10])

    monkeypatch.setattr(disk.os, "write", short)
    with pytest.raises(BudgetError, match="No space left"):
        ledger.reserve(plan(1))
    monkeypatch.undo()
    assert path.read_bytes() == before
    spend(ledger, 1)
    assert FileLedger(path).verify()


def test_a_lock_that_is_never_given_up_is_reported(path, monkeypatch):
    monkeypatch.setattr(disk, "PATIENCE", 0.05)
    FileLedger(path, CAP)
    with disk.locked(path, write=True), pytest.raises(BudgetError, match="locked by another"):
        FileLedger(path)


def test_events_survive_the_file_exactly(path):
    ledger = FileLedger(path, Budget.zcdp(100))
    events = [Gaussian(0.1 + 0.2), Selection(1 / 3, 7), Gaussian(0.0), Gaussian(5e-324)]
    for event in events:
        ledger.record(entry(event))
    assert list(FileLedger(path).events) == events
    assert all(json.loads(line)["kind"] for line in path.read_text().splitlines())
