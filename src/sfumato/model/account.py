"""The ledger in a model file: every entry with its event, read back as it was written."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any, get_args

from sfumato.model.fields import checked, known_number, relation
from sfumato.model.strict import Node
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event
from sfumato.privacy.ledger import Entry, Ledger, Mark
from sfumato.privacy.unit import RECORD, Unit, unit_from
from sfumato.report.account import restored

EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
MEMBERS = tuple(field.name for field in dataclasses.fields(Entry) if field.name != "unit")
READERS: dict[Any, Callable[[Node], Any]] = {float: Node.number, int: Node.whole, bool: Node.truth, str: Node.text}


def written(ledger: Ledger) -> dict[str, Any]:
    """What a file says of a ledger, as values still to be made plain."""
    return {
        "budget": ledger.budget,
        "relation": ledger.relation,
        "rehearsal": ledger.rehearsal,
        "guarantee": ledger.guarantee,
        "entries": [_members(entry) for entry in ledger.entries],
        "mark": ledger.mark,
    }


def read(node: Node) -> Ledger:
    """The ledger that was written."""
    marked = isinstance(node.value, dict) and "mark" in node.value  # earlier versions noted none
    names = ("budget", "relation", "rehearsal", "guarantee", "entries", *(("mark",) if marked else ()))
    fields = node.fields(*names)
    budget = fields["budget"].fields("epsilon", "delta", "rho")
    spent = checked(fields["budget"], lambda: Budget(**{name: member.value for name, member in budget.items()}))
    fields["guarantee"].text()  # for the reader; ours is made from the entries
    entries = [_entry(entry) for entry in fields["entries"].elements()]
    mark = _mark(fields["mark"]) if marked else None
    return restored(spent, relation(fields["relation"], {}), fields["rehearsal"].truth(), entries, mark)


def _mark(node: Node) -> Mark | None:
    if node.is_null:
        return None
    fields = node.fields("ledger", "head", "size")
    head, ledger = fields["head"].text(), fields["ledger"].text()
    if not re.fullmatch("[0-9a-f]{64}", head) or not re.fullmatch("[0-9a-f]{1,64}", ledger):
        node.refuse("the head of a ledger")
    return Mark(ledger, head, fields["size"].whole())


def _members(entry: Entry) -> dict[str, Any]:
    """All members; whom the entry protects only if it is not a record, as in files of before."""
    members = {name: getattr(entry, name) for name in MEMBERS} | {"event": _event_members(entry.event)}
    return members if entry.unit == RECORD else members | {"unit": str(entry.unit)}


def _event_members(event: Event) -> dict[str, Any]:
    members = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return {"mechanism": type(event).__name__} | members


def _entry(node: Node) -> Entry:
    told = "unit" in dict(node.items())
    fields = node.fields(*MEMBERS, *(("unit",) if told else ()))
    values: dict[str, Any] = {name: fields[name].text() for name in ("purpose", "query", "at")}
    values |= {name: known_number(fields[name], {}) for name in ("sensitivity", "noise_std")}
    share, neighbours = fields["share"].number(), relation(fields["relation"], {})
    unit = _read_unit(fields["unit"]) if told else RECORD
    return Entry(**values, share=share, event=_event(fields["event"]), relation=neighbours, unit=unit)


def _read_unit(node: Node) -> Unit:
    try:
        return unit_from(node.text())
    except ValueError:
        node.refuse("a record or a person with so many rows")


def _event(node: Node) -> Event:
    members = dict(node.items())
    kind = EVENTS[members.get("mechanism", Node(None, f"{node.place}.mechanism")).one_of(EVENTS)]
    types = {field.name: field.type for field in dataclasses.fields(kind)}
    fields = node.fields("mechanism", *types)
    values = {name: READERS[wanted](fields[name]) for name, wanted in types.items()}
    return checked(node, lambda: kind(**values))
