"""The two sections that a model file of every kind has: how its features were made from columns, and its ledger.

What is written is read back as it was: every entry of the ledger with its event.
"""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from sfumato.errors import InputError
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event
from sfumato.privacy.ledger import Entry, Ledger, Mark
from sfumato.privacy.unit import RECORD, Unit, unit_from
from sfumato.schema import Node, checked, known_number, relation, texts
from sfumato.sources.columns import Columns

TABLE = ("n_features", "feature_names", "columns", "categorical")


@dataclass(frozen=True)
class Side:
    """The features of one table, and from which columns they were made."""

    n_features: int
    names: tuple[str, ...] | None
    columns: Columns | None

    def features(self) -> Columns:
        """The columns to read from a file."""
        if self.columns is not None:
            return self.columns
        if self.names is None:
            raise InputError("model: it was fitted on a table without column names; use transform in Python.")
        return Columns(self.names)


@dataclass(frozen=True)
class Inputs(Side):
    """The features, how many records there were where that is public, and which column was the response."""

    n_records: int | None
    response: str | None
    second: Side | None

    def remember(self, estimator: Any) -> None:
        """Tell a fitted estimator about its tables."""
        estimator.n_features_in_, estimator.n_records_ = self.n_features, self.n_records
        estimator.columns_ = self.columns
        if self.second is not None:
            estimator.n_targets_in_ = self.second.n_features
        names = (("feature_names_in_", self.names), ("y_feature_names_in_", self.second and self.second.names))
        for attribute, known in names:
            if known is not None:
                setattr(estimator, attribute, np.asarray(known, dtype=object))


def write_inputs(
    estimator: Any, response: str | None, columns: Columns | None, second: Columns | None
) -> dict[str, Any]:
    """What a file says of the inputs, as values still to be made plain."""
    names, others = (getattr(estimator, name, None) for name in ("feature_names_in_", "y_feature_names_in_"))
    targets = getattr(estimator, "n_targets_in_", None)
    columns = columns or getattr(estimator, "columns_", None)
    return {
        "n_records": getattr(estimator, "n_records_", None),
        "response": response,
        **_table(estimator.n_features_in_, names, columns),
        "second": None if targets is None else _table(targets, others, second),
    }


def read_inputs(node: Node) -> Inputs:
    """The inputs that were written."""
    fields = node.fields("n_records", "response", *TABLE, "second")
    n = None if fields["n_records"].is_null else fields["n_records"].whole(1)
    response = None if fields["response"].is_null else fields["response"].text()
    second = None if fields["second"].is_null else Side(*_side(fields["second"].fields(*TABLE)))
    return Inputs(*_side(fields), n, response, second)


def _table(n_features: int, names: Any, columns: Columns | None) -> dict[str, Any]:
    return {
        "n_features": int(n_features),
        "feature_names": None if names is None else [str(name) for name in names],
        "columns": None if columns is None else list(columns.features),
        "categorical": {} if columns is None else {name: list(c) for name, c in columns.categorical.items()},
    }


def _side(fields: dict[str, Node]) -> tuple[int, tuple[str, ...] | None, Columns | None]:
    p = fields["n_features"].whole(1)
    names = None if fields["feature_names"].is_null else texts(fields["feature_names"])
    if names is not None and (len(names) != p or len(set(names)) < p):
        fields["feature_names"].refuse(f"{p} different names")
    categorical = {name: texts(categories) for name, categories in fields["categorical"].items()}
    if fields["columns"].is_null:
        return p, names, None
    columns = checked(fields["columns"], lambda: Columns(texts(fields["columns"]), categorical))
    if columns.names != names:
        fields["columns"].refuse("the columns that make feature_names")
    return p, names, columns


EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
ENTRY_MEMBERS = tuple(field.name for field in dataclasses.fields(Entry) if field.name != "unit")
READERS: dict[Any, Callable[[Node], Any]] = {float: Node.number, int: Node.whole, bool: Node.truth, str: Node.text}


def write_ledger(ledger: Ledger) -> dict[str, Any]:
    """What a file says of a ledger, as values still to be made plain."""
    return {
        "budget": ledger.budget,
        "relation": ledger.relation,
        "rehearsal": ledger.rehearsal,
        "guarantee": ledger.guarantee,
        "entries": [_members(entry) for entry in ledger.entries],
        "mark": ledger.mark,
    }


def read_ledger(node: Node) -> Ledger:
    """The ledger that was written."""
    marked = isinstance(node.value, dict) and "mark" in node.value  # earlier versions noted none
    names = ("budget", "relation", "rehearsal", "guarantee", "entries", *(("mark",) if marked else ()))
    fields = node.fields(*names)
    budget = fields["budget"].fields("epsilon", "delta", "rho")
    spent = checked(fields["budget"], lambda: Budget(**{name: member.value for name, member in budget.items()}))
    fields["guarantee"].text()  # for the reader; ours is made from the entries
    entries = [_entry(entry) for entry in fields["entries"].elements()]
    mark = _mark(fields["mark"]) if marked else None
    return Ledger.restore(spent, relation(fields["relation"], {}), fields["rehearsal"].truth(), entries, mark)


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
    members = {name: getattr(entry, name) for name in ENTRY_MEMBERS} | {"event": _event_members(entry.event)}
    return members if entry.unit == RECORD else members | {"unit": str(entry.unit)}


def _event_members(event: Event) -> dict[str, Any]:
    members = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return {"mechanism": type(event).__name__} | members


def _entry(node: Node) -> Entry:
    told = "unit" in dict(node.items())
    fields = node.fields(*ENTRY_MEMBERS, *(("unit",) if told else ()))
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
