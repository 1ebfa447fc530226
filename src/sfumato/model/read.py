"""A fitted estimator from JSON, every field checked."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np

from sfumato.bounds import Bounds
from sfumato.errors import InputError, SfumatoError
from sfumato.estimators.parameters import budget_of, directions_of, relation_of, share_of
from sfumato.estimators.sir import METHODS, PICTURE_SHARE, PrivateSIR
from sfumato.files import Columns
from sfumato.iterate.picture import Picture
from sfumato.model.strict import Node, read_json
from sfumato.model.write import FORMAT, content
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.report.account import restored
from sfumato.solve.dimension import Choice
from sfumato.typing import FloatArray, Relation

T = TypeVar("T")
EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


@dataclass(frozen=True, slots=True)
class Inputs:
    """How the features were made: from which columns, and which column was the response."""

    n_features: int
    n_records: int | None
    names: tuple[str, ...] | None
    response: str | None
    columns: Columns | None

    def features(self) -> Columns:
        """The columns to read from a file."""
        if self.columns is not None:
            return self.columns
        if self.names is None:
            raise InputError("model: it was fitted on a table without column names; use transform in Python.")
        return Columns(self.names)


def load_model(path: str | PathLike[str]) -> PrivateSIR:
    """The fitted estimator in a model file; see `save_model`.

    The file is data: nothing in it is run, and a file that does not say exactly what a model file must say is
    refused with an `InputError` that names the place.
    """
    return from_json(read_json(Path(path)))


def standalone(estimator: PrivateSIR) -> PrivateSIR:
    """What a model file of `estimator` would load as: its own releases, without a ledger shared with others."""
    return from_json(Node(content(estimator)))


def load_inputs(path: str | PathLike[str]) -> Inputs:
    """How the features of a model file were made."""
    return _inputs(_top(read_json(Path(path)))["inputs"])


def from_json(node: Node) -> PrivateSIR:
    """The fitted estimator in the content of a model file."""
    top = _top(node)
    inputs = _inputs(top["inputs"])
    estimator = _estimator(top["parameters"], inputs.n_features)
    _set_released(estimator, top["released"], inputs.n_features)
    estimator.ledger_ = _ledger(top["ledger"])
    estimator.n_features_in_, estimator.n_records_ = inputs.n_features, inputs.n_records
    if inputs.names is not None:
        estimator.feature_names_in_ = np.asarray(inputs.names, dtype=object)
    return estimator


def _top(node: Node) -> dict[str, Node]:
    version = node.value.get("format") if isinstance(node.value, dict) else None
    if version != FORMAT:
        what = "is of an unknown version" if str(version).startswith("sfumato-model/") else "is not a model file"
        raise InputError(f"model: the file {what}; this sfumato reads {FORMAT!r}.")
    top = node.fields("format", "sfumato", "estimator", "inputs", "parameters", "released", "ledger")
    top["sfumato"].text()
    top["estimator"].one_of(["PrivateSIR"])
    return top


def _inputs(node: Node) -> Inputs:
    fields = node.fields("n_features", "n_records", "feature_names", "response", "columns", "categorical")
    p = fields["n_features"].whole(1)
    n = None if fields["n_records"].is_null else fields["n_records"].whole(1)
    names = None if fields["feature_names"].is_null else _texts(fields["feature_names"])
    if names is not None and (len(names) != p or len(set(names)) < p):
        fields["feature_names"].refuse(f"{p} different names")
    response = None if fields["response"].is_null else fields["response"].text()
    categorical = {name: _texts(categories) for name, categories in fields["categorical"].items()}
    if fields["columns"].is_null:
        return Inputs(p, n, names, response, None)
    columns = _checked(fields["columns"], lambda: Columns(_texts(fields["columns"]), categorical))
    if columns.names != names:
        fields["columns"].refuse("the columns that make feature_names")
    return Inputs(p, n, names, response, columns)


def _estimator(node: Node, p: int) -> PrivateSIR:
    names = ("epsilon", "delta", "n_directions", "method", "relation", "rho", "picture", "bounds", "classes")
    fields = node.fields(*names, "random_state")
    values: dict[str, Any] = {name: fields[name].value for name in names[:7]}
    for name in ("epsilon", "delta", "rho"):
        if not fields[name].is_null:
            fields[name].number()
    _checked(node, lambda: budget_of(values["epsilon"], values["delta"], values["rho"]))
    _checked(fields["n_directions"], lambda: directions_of(values["n_directions"], p))
    _checked(fields["picture"], lambda: share_of(values["picture"], PICTURE_SHARE))
    fields["method"].one_of(METHODS)
    _relation(fields["relation"])
    values["bounds"] = None if fields["bounds"].is_null else _bounds(fields["bounds"], p)
    values["classes"] = None if fields["classes"].is_null else _classes(fields["classes"])
    values["random_state"] = None if fields["random_state"].is_null else fields["random_state"].whole()
    return PrivateSIR(**values)


def _set_released(estimator: PrivateSIR, node: Node, p: int) -> None:
    names = ("directions", "standard_errors", "eigenvalues", "mean", "scale", "bounds", "choice", "picture")
    fields = node.fields(*names)
    choice = _choice(fields["choice"], p)
    k = choice.n_directions
    estimator.directions_ = _orthonormal(fields["directions"], k, p)
    estimator.standard_errors_ = fields["standard_errors"].array(k, p, gaps=True)
    estimator.eigenvalues_ = fields["eigenvalues"].array(None, gaps=True)
    if len(estimator.eigenvalues_) > k:
        fields["eigenvalues"].refuse(f"a list of at most {k}")
    estimator.mean_ = fields["mean"].array(p)
    estimator.scale_ = fields["scale"].array(p)
    if not (estimator.scale_ > 0).all():
        fields["scale"].refuse("positive")
    estimator.bounds_ = _bounds(fields["bounds"], p)
    estimator.choice_ = choice
    estimator.picture_ = None if fields["picture"].is_null else _picture(fields["picture"])


def _orthonormal(node: Node, k: int, p: int) -> FloatArray:
    rows = node.array(k, p)
    if not np.allclose(rows @ rows.T, np.eye(k), rtol=0.0, atol=1e-6):
        node.refuse("orthonormal rows")
    return rows


def _choice(node: Node, p: int) -> Choice:
    fields = node.fields("n_directions", "singular_values", "edge", "given")
    values = fields["singular_values"].array(None, gaps=True)
    k = fields["n_directions"].whole(1, p)
    if len(values) < k:
        fields["singular_values"].refuse(f"a list of at least {k}")
    return Choice(k, values, fields["edge"].number(), fields["given"].truth())


def _picture(node: Node) -> Picture:
    fields = node.fields("counts", "noise_std", "direction_edges", "response_edges", "is_ordered")
    across, along = _increasing(fields["direction_edges"]), _increasing(fields["response_edges"])
    counts = fields["counts"].array(len(across) - 1, len(along) - 1)
    return Picture(counts, fields["noise_std"].number(), across, along, fields["is_ordered"].truth())


def _increasing(node: Node) -> FloatArray:
    edges = node.array(None)
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        node.refuse("a list of two or more increasing numbers")
    return edges


def _ledger(node: Node) -> Ledger:
    fields = node.fields("budget", "relation", "rehearsal", "guarantee", "entries")
    budget = fields["budget"].fields("epsilon", "delta", "rho")
    spent = _checked(fields["budget"], lambda: Budget(**{name: member.value for name, member in budget.items()}))
    fields["guarantee"].text()  # for the reader; ours is made from the entries
    entries = [_entry(entry) for entry in fields["entries"].elements()]
    return restored(spent, _relation(fields["relation"]), fields["rehearsal"].truth(), entries)


def _entry(node: Node) -> Entry:
    fields = node.fields(*(field.name for field in dataclasses.fields(Entry)))
    values: dict[str, Any] = {name: fields[name].text() for name in ("purpose", "query", "at")}
    values |= {name: fields[name].number() for name in ("sensitivity", "noise_std", "share")}
    return Entry(**values, event=_event(fields["event"]), relation=_relation(fields["relation"]))


def _event(node: Node) -> Event:
    members = dict(node.items())
    kind = EVENTS[members.get("mechanism", Node(None, f"{node.place}.mechanism")).one_of(EVENTS)]
    types = {field.name: field.type for field in dataclasses.fields(kind)}
    fields = node.fields("mechanism", *types)
    readers: dict[Any, Callable[[Node], Any]] = {float: Node.number, int: Node.whole, bool: Node.truth, str: Node.text}
    values = {name: readers[wanted](fields[name]) for name, wanted in types.items()}
    return _checked(node, lambda: kind(**values))


def _bounds(node: Node, p: int) -> Bounds:
    fields = node.fields("lower", "upper")
    lower, upper = (member.array(p) if isinstance(member.value, list) else member.array() for member in fields.values())
    return _checked(node, lambda: Bounds(lower, upper))


def _classes(node: Node) -> list[Any]:
    for element in node.elements():
        if not isinstance(element.value, (str, int, float, bool)):
            element.refuse("text or a number")
    return list(node.value)


def _texts(node: Node) -> tuple[str, ...]:
    return tuple(element.text() for element in node.elements())


def _relation(node: Node) -> Relation:
    return relation_of(node.one_of(get_args(Relation)))


def _checked(node: Node, build: Callable[[], T]) -> T:
    """What `build` makes, its complaint in our words: theirs may repeat a value of any length."""
    try:
        return build()
    except SfumatoError as error:
        node.refuse(f"valid ({str(error)[:80].partition(',')[0].partition(';')[0]})")
