"""Reading a ledger's bytes: the chain as far as it holds, what it adds up to, what is wrong after that. Pure."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event
from sfumato.privacy.ledger.lines import (
    START,
    VERSION,
    BadLineError,
    Line,
    budget_from,
    entry_from,
    events_from,
    read_line,
    relation_from,
    text_field,
)
from sfumato.privacy.ledger.memory import Entry
from sfumato.typing import Relation

_NONE = Line("", {}, "", "")
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
class Account:
    """The state of a ledger after some lines."""

    cap: Budget
    relation: Relation
    rehearsal: bool
    created: str
    runs: Mapping[str, Run] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """Every cost that counts."""
        return tuple(event for run in self.runs.values() for event in run.counted)

    def after(self, line: Line) -> "Account":
        """The account with one more line, or `BadLineError`."""
        books = Books(self)
        books.enter(line)
        return books.account()


class Books:
    """An account while lines are being entered: the same sums as line by line, without a copy for each."""

    def __init__(self, account: Account) -> None:
        self._start = account
        self._runs = dict(account.runs)
        self._entries = list(account.entries)

    def account(self) -> Account:
        """The account so far."""
        return replace(self._start, runs=dict(self._runs), entries=tuple(self._entries))

    def enter(self, line: Line) -> None:
        """One more line; `BadLineError`, and no change, if it does not belong."""
        match line.kind:
            case "reserve" | "repair":
                self._reserve(line)
            case "entry":
                self._record(line)
            case "close":
                self._close(line)
            case _:
                raise BadLineError(f"its kind {line.kind[:20]!r} is not known to this version")

    def _reserve(self, line: Line) -> None:
        run = self._open(line, "it sets a cost aside for a run that is closed")
        planned = run.planned + events_from(line.fields.get("planned"))
        by = line.fields.get("by")
        begun = replace(run, by=by if isinstance(by, dict) else {}, at=_optional(line, "at"))
        self._runs[run.id] = replace(begun, planned=planned, purpose=_optional(line, "purpose"))

    def _record(self, line: Line) -> None:
        entry = entry_from(line.fields.get("entry"))
        run = self._open(line, "it records a release of a run that is closed")
        self._runs[run.id] = replace(run, entries=(*run.entries, (_origin(line), entry)))
        self._entries.append(entry)

    def _close(self, line: Line) -> None:
        name = text_field(line, "run")
        if name not in self._runs:
            raise BadLineError("it closes a run that never began")
        self._runs[name] = replace(self._runs[name], closed=True)

    def _open(self, line: Line, complaint: str) -> Run:
        run = self._runs.get(name := text_field(line, "run"), Run(name))
        if run.closed:
            raise BadLineError(complaint)
        return run


def open_account(line: Line) -> Account:
    """The account a header opens, or `BadLineError`."""
    if line.kind != "header":
        raise BadLineError("the first line is not the header of a ledger")
    if line.fields.get("version") != VERSION:
        raise BadLineError(f"it was written by another version; this one reads version {VERSION}")
    rehearsal = line.fields.get("rehearsal")
    if not isinstance(rehearsal, bool):
        raise BadLineError("its rehearsal flag is missing")
    relation = relation_from(line.fields.get("relation"))
    return Account(budget_from(line.fields.get("cap")), relation, rehearsal, _optional(line, "at"))


def _optional(line: Line, name: str) -> str:
    value = line.fields.get(name)
    return value[:200] if isinstance(value, str) else ""


def _origin(line: Line) -> str:
    """Hash under which the release was first written; a merge or repair copies it."""
    return _optional(line, "origin") or line.hash


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not a valid continuation of the chain.

    `torn`: they end without a newline, as a write cut off by a crash does. A release waits until its line is on the
    disk as a whole, so nothing can have been released under a torn line.
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
    """A prefix of the file that holds: its lines, what they add up to, its size; and the damage after it."""

    lines: tuple[Line, ...] = ()
    account: Account | None = None
    size: int = 0
    damage: Damage | None = None

    @property
    def head(self) -> str:
        """Hash of the last line: noted elsewhere, it proves later that nothing before it was changed or cut."""
        return self.lines[-1].hash if self.lines else START

    def extend(self, raw: bytes) -> "Chain":
        """The chain with the bytes that follow `size`."""
        lines, head, at = list(self.lines), self.head, 0
        books = None if self.account is None else Books(self.account)
        damage = None
        while at < len(raw):
            try:
                line, end = _next(raw, at, head)
                books = _enter(books, line)
            except BadLineError as error:
                line, end = _acknowledged(raw, at, head)
                try:
                    books = _enter(books, line)
                except BadLineError:
                    damage = Damage(len(lines) + 1, raw[at:], b"\n" not in raw[at:], str(error))
                    break
            lines.append(line)
            head, at = line.hash, end
        account = None if books is None else books.account()
        return Chain(tuple(lines), account, self.size + at, damage)

    def append(self, line: Line, size: int) -> "Chain":
        """The chain after a line of `size` bytes that was just written."""
        assert self.account is not None
        return replace(self, lines=(*self.lines, line), account=self.account.after(line), size=self.size + size)


def _enter(books: Books | None, line: Line) -> Books:
    if books is None:
        return Books(open_account(line))
    books.enter(line)
    return books


def _next(raw: bytes, at: int, head: str) -> tuple[Line, int]:
    """The line that starts at `at` and where the next one starts, or `BadLineError`."""
    end = raw.find(b"\n", at) + 1
    if end == 0:
        raise BadLineError("its end is missing")
    line = read_line(raw[at : end - 1])
    if line.prev != head:
        raise BadLineError("it does not follow the line before it, so a line was changed, lost or inserted")
    return line, end


def _acknowledged(raw: bytes, at: int, head: str) -> tuple[Line, int]:
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


def salvage(damaged: bytes, known: frozenset[str]) -> tuple[Line, ...]:
    """Lines inside damaged bytes that agree with their own hash and are not in the chain; a repair writes them anew."""
    found: dict[str, Line] = {}
    for text in damaged.split(b"\n"):
        try:
            line = read_line(text)
        except BadLineError:
            continue
        if line.hash not in known and line.kind in ("reserve", "entry", "close"):
            found.setdefault(line.hash, line)
    return tuple(found.values())
