"""Ledger files that were cut, changed or made up: explained in a sentence, never a traceback, never less than spent."""

import contextlib
import hashlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato import Budget, BudgetError, InputError, SfumatoError
from sfumato.privacy.accounting import gdp_epsilon, zcdp_epsilon
from sfumato.privacy.events import rho
from sfumato.privacy.ledger import Entry, FileLedger
from sfumato.privacy.ledger.admin import repair, show
from sfumato.privacy.ledger.chain import Chain
from sfumato.privacy.ledger.lines import START, seal
from sfumato.privacy.plan import Line, Plan

CAP = Budget.zcdp(1.0)
ONE = Plan((Line("a", "a", 1.0, ""), Line("b", "b", 1.0, ""))).calibrate(Budget.zcdp(0.1))


def spend(path):
    ledger = FileLedger(path)
    ledger.reserve(ONE)
    for event in ONE.events:
        ledger.record(Entry("p", "q", event, 1.0, 2.0, 0.5, "replace"))


@pytest.fixture
def path(tmp_path):
    FileLedger(tmp_path / "l.jsonl", CAP)
    spend(tmp_path / "l.jsonl")
    spend(tmp_path / "l.jsonl")
    return tmp_path / "l.jsonl"


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_tail_stops_writing_until_it_is_acknowledged(path, cut):
    path.write_bytes(path.read_bytes()[:-cut])
    ledger = FileLedger(path)
    assert "DAMAGED: line 7 is cut off" in show(ledger)
    before = path.read_bytes()
    for attempt in (lambda: ledger.reserve(ONE), ledger.verify, ledger.close):
        with pytest.raises(BudgetError, match="line 7 is cut off"):
            attempt()
    assert path.read_bytes() == before
    assert ledger.rho == float("inf")  # a crash tore it, or somebody cut off whole runs: the file does not tell
    with pytest.raises(BudgetError, match=r"state their cost.* lost=\(\)"):
        repair(path, "power cut")
    assert path.read_bytes() == before
    mended = repair(path, "power cut; nothing ran", lost=())
    assert mended.verify() and mended.rho == pytest.approx(0.2)  # the reservation covers the release that was torn
    assert path.read_bytes().startswith(before)  # nothing was deleted
    assert len(mended.entries) == (4 if cut == 1 else 3)  # a whole line without its newline is written anew
    spend(path)
    assert FileLedger(path).rho == pytest.approx(0.3)
    with pytest.raises(InputError, match="not damaged"):
        repair(path, "again")


@pytest.mark.parametrize("line", [1, 2, 3, 5])
def test_a_changed_line_counts_as_anything_until_its_cost_is_stated(path, line):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"kind"', b'"kine"')
    path.write_bytes(b"".join(lines))
    ledger = FileLedger(path)
    assert ledger.rho == float("inf") and ledger.total(1e-6) == float("inf") and ledger.remaining() is None
    with pytest.raises(BudgetError, match=f"line {line + 1} does not belong"):
        ledger.reserve(ONE)
    with pytest.raises(BudgetError, match="state their cost"):
        repair(path, "someone edited it")
    mended = repair(path, "someone edited it", lost=Budget.zcdp(0.05))
    assert mended.verify() and mended.rho >= 0.2 * (1 - 1e-6)
    assert "someone edited it" in show(mended)


def test_a_file_cut_inside_a_line_is_not_mended_for_free(path):
    lines = path.read_bytes().splitlines(keepends=True)
    second = next(i for i, line in enumerate(lines) if i > 1 and b'"kind":"reserve"' in line)
    path.write_bytes(b"".join(lines[:second]) + lines[second][:40])  # the second run is gone: 0.1 of the 0.2
    assert FileLedger(path).rho == float("inf")
    with pytest.raises(BudgetError, match="state their cost"):
        repair(path, "found it so")
    assert repair(path, "found it so", lost=ONE.events).rho == pytest.approx(0.2)


def test_lost_selections_are_booked_at_their_real_cost(path):
    picks = Plan((Line("a", "a", 1.0, "", "selection"),)).calibrate(Budget.approximate(0.5, 1e-6))
    path.write_bytes(path.read_bytes() + b"a line that nobody can read\n")
    cost = sum(map(rho, picks.events))
    assert cost > 4 * Budget.approximate(0.5, 1e-6).mu() ** 2 / 2  # what a Gaussian run of that epsilon costs
    with pytest.raises(InputError, match="epsilon does not tell"):
        repair(path, "edited", lost=Budget.approximate(0.5, 1e-6))
    assert repair(path, "edited", lost=picks.events).rho == pytest.approx(0.2 + cost)


def test_a_bound_on_lost_rho_is_not_taken_for_gaussian(tmp_path):
    path = tmp_path / "l.jsonl"
    FileLedger(path, Budget.approximate(3, 1e-6))
    path.write_bytes(path.read_bytes() + b"junk\n")
    mended = repair(path, "junk", lost=Budget.zcdp(0.1))
    assert mended.rho >= 0.1 and mended.total() == pytest.approx(zcdp_epsilon(0.1, 1e-6), rel=1e-9)
    assert mended.total() > gdp_epsilon(0.2**0.5, 1e-6) * 1.05


def test_a_repair_beyond_the_cap_ends_the_guarantee_and_says_so(path):
    path.write_bytes(path.read_bytes() + b"junk\n")
    mended = repair(path, "who knows", lost=Budget.zcdp(5.0))
    assert mended.remaining() is None
    assert mended.guarantee.startswith("No guarantee of rho = 1 zCDP: ") and "cost rho = 5.2" in mended.guarantee


def test_a_dropped_inserted_or_swapped_line_breaks_the_chain(path):
    lines = path.read_bytes().splitlines(keepends=True)
    for changed in (lines[:3] + lines[4:], [*lines[:3], lines[1], *lines[3:]], [*lines[:2], lines[3], lines[2]]):
        path.write_bytes(b"".join(changed))
        with pytest.raises(BudgetError, match="does not belong"):
            FileLedger(path).verify()


def test_a_file_cut_at_a_line_is_noticed_by_a_noted_head_or_an_open_ledger(path):
    ledger = FileLedger(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert FileLedger(path).verify()
    with pytest.raises(BudgetError, match="noted head"):
        FileLedger(path).verify(ledger.head)
    with pytest.raises(BudgetError, match="shorter"):
        ledger.reserve(ONE)


def test_a_forged_acknowledgement_needs_the_very_bytes(path):
    whole = path.read_bytes()
    chain = Chain().extend(whole)
    fields = {"run": "r", "planned": [], "sha256": hashlib.sha256(b"other\n").hexdigest()}
    forged = seal("repair", fields, chain.head)[1]
    path.write_bytes(whole + b"junk\n" + forged)
    with pytest.raises(BudgetError, match="line 8 does not belong"):
        FileLedger(path).verify()


HOSTILE = {
    "no newline": b"{}",
    "not json": b"hello\n",
    "not text": b"\xff\xfe\x00\n",
    "no object": b"[1, 2]\n",
    "deep": b"[" * 100_000 + b"\n",
    "long number": b'{"a": ' + b"9" * 100_000 + b"}\n",
    "nan": b'{"kind": "header", "cap": NaN, "prev": "", "hash": ""}\n',
    "numbers for text": b'{"kind": 1, "prev": 2, "hash": 3}\n',
    "no header": seal("entry", {"run": "x"}, START)[1],
    "another version": seal("header", {"version": 99}, START)[1],
    "impossible cap": seal(
        "header", {"version": 1, "rehearsal": False, "relation": "replace", "cap": {"rho": -1}}, START
    )[1],
    "unknown cap": seal("header", {"version": 1, "rehearsal": False, "relation": "replace", "cap": {"x": 1}}, START)[1],
    "terminal codes": b'{"kind": "\x1b[31m"}\n',
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())
def test_files_that_are_no_ledgers_are_refused_in_a_sentence(tmp_path, raw):
    (tmp_path / "l.jsonl").write_bytes(raw)
    with pytest.raises(InputError, match="no readable header") as caught:
        FileLedger(tmp_path / "l.jsonl")
    assert "\n" not in str(caught.value)


def test_an_empty_file_and_an_altered_first_line_are_damage_and_no_new_account(tmp_path, path):
    (tmp_path / "empty.jsonl").touch()
    for cap in (None, CAP):
        with pytest.raises(InputError, match="is empty, which no ledger ever is"):
            FileLedger(tmp_path / "empty.jsonl", cap)
    assert (tmp_path / "empty.jsonl").read_bytes() == b""
    path.write_bytes(path.read_bytes().replace(b'"rho":1.0', b'"rho":9.0', 1))
    for cap in (None, CAP):
        with pytest.raises(InputError, match="was altered"):
            FileLedger(path, cap)


def test_paths_that_are_no_files_are_refused(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path, tmp_path / "pipe", "/dev/null", "\0", tmp_path / "no" / "l.jsonl", "x" * 5000):
        with pytest.raises(InputError, match="ledger"):
            FileLedger(wrong)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
names = ("run", "planned", "entry", "purpose", "by", "at", "origin", "sha256")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_chained_lines_with_any_content_never_crash_the_reader(tmp_path, data):
    """Even lines whose hashes are right: made by somebody who knows the format."""
    path = tmp_path / "l.jsonl"
    path.unlink(missing_ok=True)
    FileLedger(path, CAP)
    raw, head = path.read_bytes(), Chain().extend(path.read_bytes()).head
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["reserve", "entry", "close", "repair", "header", "?"]))
        fields = data.draw(st.dictionaries(st.sampled_from(names), values | st.just("r"), max_size=6))
        if data.draw(st.booleans()):
            fields["planned"] = [{"type": "Gaussian", "mu": data.draw(st.floats(0, 1e300) | st.integers(0, 10**400))}]
        try:
            line, text = seal(kind, fields, head)
        except ValueError:  # not a finite number: cannot be sealed
            text = json.dumps({**fields, "kind": kind}).encode() + b"\n"
        else:
            head = line.hash
        raw += text
    path.write_bytes(raw)
    with contextlib.suppress(SfumatoError):
        ledger = FileLedger(path)
        show(ledger, entries=True)
        ledger.reserve(ONE)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=30))
def test_any_overwritten_bytes_are_noticed(path, at, junk):
    whole = path.read_bytes()
    at %= len(whole)
    changed = whole[:at] + junk + whole[at + len(junk) :]
    path.write_bytes(changed)
    try:
        if changed != whole:
            with pytest.raises(SfumatoError):
                FileLedger(path).verify()
    finally:
        path.write_bytes(whole)
