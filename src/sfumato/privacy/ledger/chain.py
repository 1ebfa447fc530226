"""Reading a ledger's bytes: the chain as far as it holds, what it adds up to, what is wrong after that. Pure."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.privacy.accounting import total_rho
from sfumato.privacy.budget import Budget, fold_events
from sfumato.privacy.events import Event
from sfumato.privacy.ledger.lines import (
    START,
    VERSION,
    BadLineError,
    LedgerLine,
    budget_from,
    count_field,
    entry_from,
    entry_to,
    event_to,
    events_from,
    read_line,
    relation_from,
    text_field,
)
from sfumato.privacy.ledger.memory import Entry
from sfumato.privacy.unit import Kind
from sfumato.typing import Relation

EVERY = 1000
"""Lines after which a writer adds a checkpoint, and a reader folds what it has read."""
CHECKPOINT = b'"kind":"checkpoint"'
_NONE = LedgerLine("", {}, "", "")
_REPAIR = "repair-"
Hashed = tuple[str, Entry]


@dataclass(frozen=True, slots=True)
class Run:
    """One plan's life: what was set aside, what was released, whether more can follow.

    While a run is open the whole plan counts, released or not, so that a crash overcounts. Once closed only its
    releases count; it can make no further one.
    """

    id: str
    planned: tuple[Event, ...] = ()
    entries: tuple[Hashed, ...] = ()
    closed: bool = False
    at: str = ""
    by: Mapping[str, Any] = field(default_factory=dict)
    purpose: str = ""

    @property
    def unspent(self) -> tuple[Event, ...]:
        """What was set aside and not yet released; nothing once the run is closed."""
        if self.closed:
            return ()
        return tuple((Counter(self.planned) - Counter(entry.event for _, entry in self.entries)).elements())

    @property
    def counted(self) -> tuple[Event, ...]:
        """The cost of the run."""
        return (*(entry.event for _, entry in self.entries), *self.unspent)

    @property
    def state(self) -> str:
        """In a word."""
        return "closed" if self.closed else "open" if self.unspent else "complete"


@dataclass(frozen=True, slots=True)
class Folded:
    """Runs that are over and no longer held one by one: how many, their releases, and events that cost as much."""

    runs: int = 0
    releases: int = 0
    spent: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """The state of a ledger after some lines: what was folded, and the runs since or still open."""

    cap: Budget
    relation: Relation
    rehearsal: bool
    created: str
    id: str
    protects: Kind = "record"
    runs: Mapping[str, Run] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    before: Folded = Folded()

    @property
    def events(self) -> tuple[Event, ...]:
        """Every cost that counts."""
        return (*self.before.spent, *(event for run in self.runs.values() for event in run.counted))

    @property
    def n_runs(self) -> int:
        """How many runs there ever were."""
        return self.before.runs + len(self.runs)

    @property
    def one_plan(self) -> bool:
        """Whether all costs were fixed in one plan beforehand, so that any accountant may total them."""
        return self.n_runs <= 1 and not self.before.runs and not any(name.startswith(_REPAIR) for name in self.runs)

    @property
    def n_releases(self) -> int:
        """How many releases there ever were."""
        return self.before.releases + len(self.entries)


class Books:
    """An account while lines are being entered: the same sums as line by line, without a copy for each.

    The run `keep` is the reader's own and is never folded.
    """

    def __init__(self, account: Account, keep: str = "", whole: bool = False) -> None:
        self._start = account
        self._runs = dict(account.runs)
        self._entries = list(account.entries)
        self._before = account.before
        self._keep, self._whole, self._lines = keep, whole, 0

    def account(self) -> Account:
        """The account so far."""
        return replace(self._start, runs=dict(self._runs), entries=tuple(self._entries), before=self._before)

    def enter(self, line: LedgerLine) -> None:
        """One more line; `BadLineError`, and no change, if it does not belong."""
        match line.kind:
            case "reserve" | "repair":
                self._reserve(line)
            case "entry":
                self._record(line)
            case "close":
                self._close(line)
            case "checkpoint":
                self._check(line)
            case _:
                raise BadLineError(f"its kind {line.kind[:20]!r} is not known to this version")
        self._lines += 1
        if not self._whole and (line.kind == "checkpoint" or self._lines % (2 * EVERY) == 0):
            self._fold()

    def _reserve(self, line: LedgerLine) -> None:
        run = self._open(line, "it sets a cost aside for a run that is closed")
        planned = run.planned + events_from(line.fields.get("planned"))
        by = line.fields.get("by")
        begun = replace(run, by=by if isinstance(by, dict) else {}, at=_optional(line, "at"))
        self._runs[run.id] = replace(begun, planned=planned, purpose=_optional(line, "purpose"))

    def _record(self, line: LedgerLine) -> None:
        entry = entry_from(line.fields.get("entry"))
        if entry.unit.kind != self._start.protects:
            raise BadLineError(f"it records a release that does not protect a {self._start.protects}")
        run = self._open(line, "it records a release of a run that is closed")
        self._runs[run.id] = replace(run, entries=(*run.entries, (origin(line), entry)))
        self._entries.append(entry)

    def _close(self, line: LedgerLine) -> None:
        name = text_field(line, "run")
        if name not in self._runs:
            raise BadLineError("it closes a run that never began")
        self._runs[name] = replace(self._runs[name], closed=True)

    def _open(self, line: LedgerLine, complaint: str) -> Run:
        run = self._runs.get(name := text_field(line, "run"), Run(name))
        if run.closed:
            raise BadLineError(complaint)
        return run

    def _check(self, line: LedgerLine) -> None:
        """What a checkpoint says must be what the lines before it add up to."""
        now = self.account()
        open_ = [run for run in _runs_from(line) if run.unspent]
        spent = events_from(line.fields.get("spent"))
        stated = total_rho([*spent, *(event for run in open_ for event in run.counted)])
        agree = math.isclose(stated, total_rho(now.events), rel_tol=1e-9)
        if count_field(line, "releases") != now.n_releases or not agree:
            raise BadLineError("it does not say what the lines before it add up to")

    def _fold(self) -> None:
        """Forget the runs that are over, but not what they cost."""
        over = [run for name, run in self._runs.items() if not run.unspent and name != self._keep]
        held = [run for run in self._runs.values() if run.unspent or run.id == self._keep]
        self._before = _fold(self._before, over)
        self._runs = {run.id: run for run in held}
        self._entries = [entry for run in held for _, entry in run.entries]


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not a valid continuation of the chain.

    `torn`: they end without a newline, as a write cut off by a crash does, and also a file that was cut later. The
    file does not tell which: what stood there is unknown either way.
    """

    line: int
    raw: bytes
    torn: bool
    why: str

    def __str__(self) -> str:
        what = "is cut off" if self.torn else "does not belong: " + self.why
        return f"line {self.line} {what} ({len(self.raw)} bytes from there to the end cannot be trusted)"


@dataclass(frozen=True, slots=True)
class Chain:
    """A prefix of the file that holds: what its lines add up to, their number, its size; and the damage after it.

    `head` is the hash of the last line: noted elsewhere, it proves later that nothing before it was changed or cut.
    """

    account: Account | None = None
    head: str = START
    count: int = 0
    size: int = 0
    checked: int = 0
    damage: Damage | None = None

    def extend(
        self, raw: bytes, *, keep: str = "", whole: bool = False, seen: Callable[[LedgerLine], None] | None = None
    ) -> "Chain":
        """The chain with the bytes that follow `size`; `seen` gets every line that holds; `whole` folds nothing."""
        head, at, count, checked = self.head, 0, self.count, self.checked
        books = None if self.account is None else Books(self.account, keep, whole)
        damage = None
        while at < len(raw):
            try:
                line, end = _next(raw, at, head)
                books = _enter(books, line, keep, whole)
            except BadLineError as error:
                line, end = _acknowledged(raw, at, head)
                try:
                    books = _enter(books, line, keep, whole)
                except BadLineError:
                    damage = Damage(count + 1, raw[at:], b"\n" not in raw[at:], str(error))
                    break
            if seen is not None:
                seen(line)
            head, at, count = line.hash, end, count + 1
            checked = count if line.kind == "checkpoint" else checked
        account = None if books is None else books.account()
        return Chain(account, head, count, self.size + at, checked, damage)


def open_chain(first: bytes, tail: bytes, size: int, digest: Callable[[int], str]) -> Chain:
    """The chain as its last checkpoint in `tail` (the end of a file of `size` bytes) tells it; empty if none does.

    `first` is the file's first line, `digest(n)` the SHA-256 of its first n bytes: whoever changed one of them is
    noticed, though none of their lines is read.
    """
    at = tail.rfind(CHECKPOINT)
    start, end = tail.rfind(b"\n", 0, max(at, 0)) + 1, tail.find(b"\n", max(at, 0)) + 1
    if at < 0 or start == 0 or end == 0:
        return Chain()
    try:
        line, account = read_line(tail[start : end - 1]), open_account(read_line(first))
        begin = size - len(tail) + start
        if line.kind != "checkpoint" or count_field(line, "size") != begin:
            return Chain()
        runs = {run.id: run for run in _runs_from(line)}
        entries = tuple(entry for run in runs.values() for _, entry in run.entries)
        over, released = count_field(line, "runs") - len(runs), count_field(line, "releases") - len(entries)
        before = Folded(over, released, events_from(line.fields.get("spent")))
        count = count_field(line, "lines") + 1
    except BadLineError:
        return Chain()
    if digest(begin) != line.fields.get("sha256"):
        return Chain()
    account = replace(account, runs=runs, entries=entries, before=before)
    return Chain(account, line.hash, count, begin + end - start, count)


def checkpoint(chain: Chain, digest: str) -> dict[str, Any]:
    """The fields of a checkpoint after a chain whose bytes hash to `digest`."""
    account = chain.account
    assert account is not None
    open_ = [run for run in account.runs.values() if run.unspent]
    over = _fold(account.before, [run for run in account.runs.values() if not run.unspent])
    return {
        "size": chain.size,
        "sha256": digest,
        "lines": chain.count,
        "releases": account.n_releases,
        "runs": account.n_runs,
        "spent": [event_to(event) for event in over.spent],
        "open": [_run_to(run) for run in open_],
    }


def open_account(line: LedgerLine) -> Account:
    """The account a header opens, or `BadLineError`."""
    if line.kind != "header" or line.prev != START:
        raise BadLineError("the first line is not the header of a ledger")
    if line.fields.get("version") != VERSION:
        raise BadLineError(f"it was written by another version; this one reads version {VERSION}")
    rehearsal = line.fields.get("rehearsal")
    if not isinstance(rehearsal, bool):
        raise BadLineError("its rehearsal flag is missing")
    relation, cap = relation_from(line.fields.get("relation")), budget_from(line.fields.get("cap"))
    protects = line.fields.get("protects", "record")
    if protects not in ("record", "person"):
        raise BadLineError("it protects neither a record nor a person")
    return Account(cap, relation, rehearsal, _optional(line, "at"), _optional(line, "id") or line.hash, protects)


def salvage(damaged: bytes, known: frozenset[str]) -> tuple[LedgerLine, ...]:
    """Lines inside damaged bytes that agree with their own hash and are not in the chain; a repair writes them anew."""
    found: dict[str, LedgerLine] = {}
    for text in damaged.split(b"\n"):
        try:
            line = read_line(text)
        except BadLineError:
            continue
        if line.hash not in known and line.kind in ("reserve", "entry", "close"):
            found.setdefault(line.hash, line)
    return tuple(found.values())


def origin(line: LedgerLine) -> str:
    """Hash under which the line was first written; a merge or repair copies it."""
    return _optional(line, "origin") or line.hash


def _enter(books: Books | None, line: LedgerLine, keep: str, whole: bool) -> Books:
    if books is None:
        return Books(open_account(line), keep, whole)
    books.enter(line)
    return books


def _next(raw: bytes, at: int, head: str) -> tuple[LedgerLine, int]:
    """The line that starts at `at` and where the next one starts, or `BadLineError`."""
    end = raw.find(b"\n", at) + 1
    if end == 0:
        raise BadLineError("its end is missing")
    line = read_line(raw[at : end - 1])
    if line.prev != head:
        raise BadLineError("it does not follow the line before it, so a line was changed, lost or inserted")
    return line, end


def _acknowledged(raw: bytes, at: int, head: str) -> tuple[LedgerLine, int]:
    """The repair line that acknowledges exactly the bytes from `at` to itself; a line of no kind if there is none."""
    seen, start = hashlib.sha256(), at
    while (end := raw.find(b"\n", start) + 1) > 0:
        try:
            line = read_line(raw[start : end - 1])
        except BadLineError:
            line = _NONE
        if line.kind == "repair" and line.prev == head and line.fields.get("sha256") == seen.hexdigest():
            return line, end
        seen.update(raw[start:end])
        start = end
    return _NONE, len(raw)


def _fold(before: Folded, runs: list[Run]) -> Folded:
    spent = fold_events([*before.spent, *(event for run in runs for event in run.counted)])
    return Folded(before.runs + len(runs), before.releases + sum(len(run.entries) for run in runs), spent)


def _run_to(run: Run) -> dict[str, Any]:
    about = {"run": run.id, "at": run.at, "by": dict(run.by), "purpose": run.purpose}
    entries = [[name, entry_to(entry)] for name, entry in run.entries]
    return {**about, "planned": [event_to(event) for event in run.planned], "entries": entries}


def _runs_from(line: LedgerLine) -> list[Run]:
    """The runs that a checkpoint found open, or `BadLineError`."""
    given = line.fields.get("open")
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise BadLineError("its list of open runs is missing")
    return [_run_from(LedgerLine("run", item, "", "")) for item in given]


def _run_from(told: LedgerLine) -> Run:
    entries, by = told.fields.get("entries"), told.fields.get("by")
    if not isinstance(entries, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in entries):
        raise BadLineError("its list of releases is missing")
    hashed = tuple((str(name)[:64], entry_from(entry)) for name, entry in entries)
    planned, whom = events_from(told.fields.get("planned")), by if isinstance(by, dict) else {}
    name, at, purpose = text_field(told, "run"), _optional(told, "at"), _optional(told, "purpose")
    return Run(name, planned, hashed, False, at, whom, purpose)


def _optional(line: LedgerLine, name: str) -> str:
    value = line.fields.get(name)
    return value[:200] if isinstance(value, str) else ""
