"""The lines of a ledger file: pure encoding, hash chain and strict reading. No file is touched here.

A line is one JSON object in canonical form (sorted keys, no spaces, ASCII). ``hash`` is the SHA-256 of the text of the
other fields, and one of these is ``prev``, the hash of the line before: whoever changes, drops or inserts a line
breaks the chain from there on. Kinds of lines::

    header    version, cap, relation, rehearsal      the first line, once; protects, if not a record
    reserve   run, planned (events)                  the whole cost of a plan, counted at once
    entry     run, entry                             one release, written before its noise is drawn
    close     run                                    the run makes no further release; only its entries count
    repair    skipped, sha256, planned (events)      acknowledges damaged bytes and charges what they may have held
    checkpoint  size, sha256, lines, releases, runs, spent (events), open (runs)
                                                     what all bytes before it are, and what they add up to

A reader may begin at the last checkpoint: it hashes the bytes before it and reads none of their lines.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event, Gaussian, Laplace, NoGuarantee, RandomisedResponse, Selection
from sfumato.privacy.ledger.memory import Entry
from sfumato.privacy.unit import RECORD, Unit, unit_from

VERSION = 1
START = "0" * 64
"""What the header gives as the hash of the line before it."""
_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Gaussian, Laplace, Selection, RandomisedResponse, NoGuarantee)
}
_FIELDS = {kind: frozenset(f.name for f in fields(kind)) for kind in _EVENTS.values()}
_TYPES: dict[str, tuple[type, ...]] = {"reason": (str,), "vector": (bool,), "picks": (int,), "k": (int,)}
_LONGEST_TEXT = 10_000
_LARGEST_COUNT = 2**32


class BadLineError(ValueError):
    """A line that is not what a ledger writes, and why; becomes a `Damage`, never a traceback."""


def _refuse(constant: str) -> None:
    raise BadLineError("it holds a number that is not finite")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """A line that agrees with its own hash: its kind, all its other fields, its place in the chain."""

    kind: str
    fields: Mapping[str, Any]
    prev: str
    hash: str


def seal(kind: str, fields: Mapping[str, Any], prev: str) -> tuple[LedgerLine, bytes]:
    """A line as it stands in the file, chained to `prev`.

    >>> line, text = seal("close", {"run": "ab"}, START)
    >>> text == text_of(line), read_line(text) == line
    (True, True)
    """
    line = LedgerLine(kind, dict(fields), prev, _digest(kind, fields, prev))
    return line, text_of(line)


def text_of(line: LedgerLine) -> bytes:
    """The bytes of a line, with its newline."""
    body = {**line.fields, "kind": line.kind, "prev": line.prev, "hash": line.hash}
    return _canonical(body) + b"\n"


def read_line(text: bytes) -> LedgerLine:
    """A line that agrees with its own hash, or `BadLineError`. Its place in the chain is the reader's business."""
    try:
        data = _DECODER.decode(text.decode("ascii"))
        if not isinstance(data, dict):
            raise BadLineError("it is not a JSON object")
        kind, prev, stated = (_text(data.pop(name, None), name) for name in ("kind", "prev", "hash"))
        line = LedgerLine(kind, data, prev, _digest(kind, data, prev))
    except BadLineError:
        raise
    except (ValueError, RecursionError):  # bad JSON, not ASCII, numbers beyond any use, nested too deep
        raise BadLineError("it is not a line of a ledger") from None
    if stated != line.hash:
        raise BadLineError("its hash does not agree with its text, so it was changed or only partly written")
    return line


def is_altered_header(text: bytes) -> bool:
    """Whether this was once a header: it says so, and does not agree with its own hash.

    >>> header = seal("header", {"version": 1}, START)[1]
    >>> is_altered_header(header), is_altered_header(header.replace(b"1", b"2")), is_altered_header(b"hello")
    (False, True, False)
    """
    try:
        read_line(text)
    except BadLineError:
        return b'"kind":"header"' in text
    return False


def event_to(event: Event) -> dict[str, Any]:
    """An event as JSON.

    >>> event_to(Gaussian(0.5))
    {'type': 'Gaussian', 'mu': 0.5}
    """
    return {"type": type(event).__name__} | {f.name: getattr(event, f.name) for f in fields(event)}


def event_from(data: Any) -> Event:
    """The event, or `BadLineError`.

    >>> event_from({"type": "Selection", "epsilon": 0.2, "picks": 5})
    Selection(epsilon=0.2, picks=5)
    """
    given = dict(_object(data, "event"))
    kind = _EVENTS.get(_text(given.pop("type", None), "type"))
    if kind is None or given.keys() != _FIELDS[kind]:
        raise BadLineError("it names an event this version does not know")
    for name, value in given.items():
        right = _TYPES.get(name, (int, float))
        if not isinstance(value, right) or (isinstance(value, bool) and bool not in right):
            raise BadLineError(f"the event's {name} is of the wrong type")
        if isinstance(value, int) and value > _LARGEST_COUNT:
            raise BadLineError(f"the event's {name} is beyond all use")
    try:
        return kind(**given)
    except (SfumatoError, OverflowError):
        raise BadLineError("it has an event with an impossible cost") from None


def events_from(data: Any) -> tuple[Event, ...]:
    """Several events, or `BadLineError`."""
    if not isinstance(data, list):
        raise BadLineError("its list of events is missing")
    return tuple(event_from(item) for item in data)


def entry_to(entry: Entry) -> dict[str, Any]:
    """A ledger entry as JSON; a number that is not finite is written as text."""
    plain = {f.name: getattr(entry, f.name) for f in fields(entry) if f.name not in ("event", "unit")}
    if entry.unit != RECORD:
        plain["unit"] = str(entry.unit)
    for name in ("sensitivity", "noise_std", "share"):
        plain[name] = float(plain[name]) if math.isfinite(plain[name]) else str(plain[name])
    return plain | {"event": event_to(entry.event)}


def entry_from(data: Any) -> Entry:
    """The entry, or `BadLineError`."""
    given = _object(data, "entry")
    values: dict[str, Any] = {name: _text(given.get(name), name) for name in ("purpose", "query", "at")}
    values |= {name: _number(given.get(name), name) for name in ("sensitivity", "noise_std", "share")}
    event, relation = event_from(given.get("event")), relation_from(given.get("relation"))
    return Entry(**values, event=event, relation=relation, unit=_unit(given.get("unit", "record")))


def budget_to(budget: Budget) -> dict[str, float]:
    """A budget as JSON."""
    names = ("epsilon", "delta", "rho")
    return {name: getattr(budget, name) for name in names if getattr(budget, name) is not None}


def budget_from(data: Any) -> Budget:
    """The budget, or `BadLineError`."""
    given = {name: _number(value, name) for name, value in _object(data, "cap").items()}
    try:
        return Budget(**given)
    except (SfumatoError, TypeError):
        raise BadLineError("its cap is not a budget") from None


def relation_from(value: Any) -> Any:
    """One of the two relations, or `BadLineError`."""
    if value not in ("replace", "add-remove"):
        raise BadLineError("its relation is neither 'replace' nor 'add-remove'")
    return value


def text_field(line: LedgerLine, name: str) -> str:
    """A field that must be text."""
    return _text(line.fields.get(name), name)


def count_field(line: LedgerLine, name: str) -> int:
    """A field that must be a count."""
    value = line.fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadLineError(f"its {name} is not a count")
    return value


def _digest(kind: str, given: Mapping[str, Any], prev: str) -> str:
    return hashlib.sha256(_canonical({**given, "kind": kind, "prev": prev})).hexdigest()


def _canonical(data: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode(data).encode("ascii")


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise BadLineError(f"its {name} is missing")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise BadLineError(f"its {name} is missing")
    return value


def _unit(value: Any) -> Unit:
    text = _text(value, "unit")
    try:
        return unit_from(text)
    except ValueError:
        raise BadLineError("its unit is neither a record nor a person") from None


def _number(value: Any, name: str) -> float:
    if value in ("inf", "-inf", "nan") or (isinstance(value, int | float) and not isinstance(value, bool)):
        try:
            return float(value)
        except OverflowError:
            pass
    raise BadLineError(f"its {name} is not a number")
