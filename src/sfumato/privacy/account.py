"""What the lines of a ledger add up to: runs, their releases, and the cost that counts. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event
from sfumato.privacy.ledger import Entry
from sfumato.privacy.ledger_lines import (
    VERSION,
    BadLineError,
    Line,
    budget_from,
    entry_from,
    events_from,
    relation_from,
    text_field,
)
from sfumato.privacy.unit import Kind
from sfumato.typing import Relation

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
    protects: Kind = "record"
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
        if entry.unit.kind != self._start.protects:
            raise BadLineError(f"it records a release that does not protect a {self._start.protects}")
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
    protects = line.fields.get("protects", "record")
    if protects not in ("record", "person"):
        raise BadLineError("it protects neither a record nor a person")
    return Account(budget_from(line.fields.get("cap")), relation, rehearsal, _optional(line, "at"), protects)


def _optional(line: Line, name: str) -> str:
    value = line.fields.get(name)
    return value[:200] if isinstance(value, str) else ""


def _origin(line: Line) -> str:
    """Hash under which the release was first written; a merge or repair copies it."""
    return _optional(line, "origin") or line.hash
