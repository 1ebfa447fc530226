"""The model file: a fitted estimator as JSON that can be read by hand and loads without running code.

It holds the parameters, the released values and the ledger; whatever is in it was paid for, so the file may be sent
wherever the report may. Every field is checked; what is written is read back as it was, and files of earlier versions
are told again as of today.
"""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato import __version__
from sfumato.bounds import SEARCH, by_column
from sfumato.errors import InputError
from sfumato.methods import FAMILY, added, find_class
from sfumato.methods.about import About
from sfumato.methods.base import PrivateReducer
from sfumato.methods.inputs import MOVED
from sfumato.methods.reporting import Origin
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event
from sfumato.privacy.ledger import Entry, Ledger, Mark
from sfumato.privacy.parameters import budget_of
from sfumato.privacy.unit import RECORD, Unit, unit_from
from sfumato.records import HASH_BUCKETS
from sfumato.report.words import own_ledger
from sfumato.schema import LARGEST, LARGEST_WHOLE, Node, Sizes, checked, known_number, read_json, relation, texts
from sfumato.sources.columns import Columns

FORMAT = "sfumato-model/3"
HIDDEN = {"rule": "_rule", "used": "_used"}
TOLD, ORIGIN = "origin", ("table", "response", "command", "account")
"""Where a fit comes from: a member that a file may lack."""
OPTIONAL = "rows_per_person"
"""A parameter that a file leaves out where it is None."""
BOUNDS = ("bounds", "y_bounds")
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


def save_model(
    estimator: PrivateReducer,
    path: str | PathLike[str],
    *,
    response: str | None = None,
    columns: Columns | None = None,
    second: Columns | None = None,
) -> Path:
    """Write a fitted estimator to a JSON file.

    Parameters
    ----------
    estimator : PrivateSIR or one of its family
        Fitted: sparse or not, SAVE, DR, PCA, LDA or CCA. Its parameters, released values and ledger are written,
        nothing else.
    path : path
        The file; replaced if it exists.
    response : str, optional
        Name of the response column.
    columns, second : Columns, optional
        How the features, and those of a second table, were made from the columns of a file.

    Examples
    --------
    >>> import tempfile
    >>> from sfumato import Bounds, PrivateSIR, subspace_distance
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=2_000, p=4, random_state=0)
    >>> sir = PrivateSIR(bounds=Bounds(-1.5, 1.5)).fit(sample.x, sample.y)
    >>> from sfumato.model import load_model
    >>> path = save_model(sir, tempfile.mkdtemp() + "/model.json")
    >>> bool((load_model(path).directions_ == sir.directions_).all())
    True
    """
    target = Path(path)
    target.write_text(format_json(describe_model(estimator, response, columns, second)) + "\n", encoding="utf-8")
    return target


def describe_model(
    estimator: PrivateReducer,
    response: str | None = None,
    columns: Columns | None = None,
    second: Columns | None = None,
) -> dict[str, Any]:
    """What a model file says, as plain values."""
    name = type(estimator).__name__
    if find_class(name) is not type(estimator):
        raise InputError(f"estimator: a model file holds one of {', '.join(_kinds(name))}, not a {name}.")
    check_is_fitted(estimator)
    about: About = type(estimator).about
    said = {
        "format": FORMAT,
        "sfumato": __version__,
        "estimator": name,
        "inputs": write_inputs(estimator, response, columns, second),
        "parameters": _parameters(estimator, about),
        "released": {name: getattr(estimator, attribute_of(name), None) for name in about.released},
        "ledger": write_ledger(own_ledger(estimator)),
    }
    told = {name: getattr(getattr(estimator, "origin_", Origin()), name) for name in ORIGIN}
    if any(told.values()):
        said[TOLD] = told
    return {name: to_plain(value) for name, value in said.items()}


def _kinds(name: object) -> list[str]:
    """Classes of the estimators whose models are read; those of other packages where one of them is meant."""
    ours, others = ([home.rpartition(".")[2] for home in family.values()] for family in (FAMILY, added()))
    return ours + others if name in others else ours


def attribute_of(release: str) -> str:
    """Where an estimator keeps a release: one called "mean" as ``mean_``, others under a name of their own."""
    return HIDDEN.get(release, f"{release}_")


def _parameters(estimator: Any, about: About) -> dict[str, Any]:
    """The parameters; a seed that is no number was used up by the fit."""
    given = {name: getattr(estimator, name) for name in about.parameters}
    values = {name: _said(by_column(value) if name in BOUNDS else value) for name, value in given.items()}
    if values[OPTIONAL] is None:
        del values[OPTIONAL]
    seeded = isinstance(values["random_state"], (int, np.integer))
    return values if seeded else values | {"random_state": None}


def _said(value: Any) -> Any:
    """A parameter; bounds of some columns as a list, since a column may be given by its position."""
    if not isinstance(value, Mapping):
        return value
    ends = {column: _ends(given) for column, given in value.items()}
    return {"columns": [[column, *given] for column, given in ends.items()]}


def _ends(given: Any) -> tuple[Any, ...]:
    """What is said of one column."""
    if isinstance(given, range):
        return given.start, given.stop, given.step
    return (SEARCH,) if given is None or isinstance(given, str) else tuple(given)


def to_plain(value: Any) -> Any:
    """Arrays as lists, frozen values as objects, numbers as numbers.

    One that is not finite becomes null: a saved fit must load, whatever its noise did.

    >>> to_plain({"a": np.array([1.0, np.nan]), "b": np.int64(3)})
    {'a': [1.0, None], 'b': 3}
    """
    match value:
        case np.ndarray() | np.generic():
            return to_plain(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case None | str() | int():
            return value
        case Mapping():
            return {str(name): to_plain(member) for name, member in value.items()}
        case _ if dataclasses.is_dataclass(value):
            return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _ if hasattr(value, "__iter__"):
            return [to_plain(element) for element in value]
    return str(value)


def format_json(value: Any, indent: str = "") -> str:
    """JSON with one member of an object a line, and lists of plain values on one line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        members = (f"{inner}{json.dumps(name)}: {format_json(member, inner)}" for name, member in value.items())
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(v, (list, dict)) for v in value):
        return "[\n" + ",\n".join(inner + format_json(element, inner) for element in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def load_model(path: str | PathLike[str]) -> Any:
    """The fitted estimator in a model file; see `save_model`.

    The file is data: nothing in it is run, and a file that does not say exactly what a model file must say is
    refused with an `InputError` that names the place.
    """
    return from_json(read_json(Path(path)))


def standalone(estimator: PrivateReducer) -> Any:
    """What a model file of `estimator` would load as: its own releases, without a ledger shared with others."""
    return from_json(Node(describe_model(estimator)))


def check_parameters(estimator: PrivateReducer) -> None:
    """Refuse a number that no model file can hold: asked before a fit is paid for whose model would be lost."""
    for name, value in to_plain(_parameters(estimator, type(estimator).about)).items():
        most = {int: LARGEST_WHOLE, float: LARGEST}.get(type(value))
        if most is not None and abs(value) > most:
            raise InputError(f"{name}: no model file can hold this value; choose another.")


def load_inputs(path: str | PathLike[str]) -> Inputs:
    """How the features of a model file were made."""
    return read_inputs(_top(read_json(Path(path)))["inputs"])


def from_json(node: Node) -> Any:
    """The fitted estimator in the content of a model file."""
    top = _top(node)
    make, known = find_class(top["estimator"].one_of(_kinds(top["estimator"].value))), read_inputs(top["inputs"])
    about: About = make.about
    sizes = _sizes(about, known, top["inputs"])
    estimator = make(**_told(about, top["parameters"], sizes))
    fields = top["released"].fields(*about.released)
    for name, read in about.released.items():
        setattr(estimator, attribute_of(name), read(fields[name], sizes))
    about.finish(estimator, top["released"])
    estimator.ledger_ = read_ledger(top["ledger"])
    told = top[TOLD].fields(*ORIGIN) if TOLD in top else {}
    estimator.origin_ = Origin(**{name: node.text() for name, node in told.items()}, version=top["sfumato"].text())
    known.remember(estimator)
    return estimator


def _top(node: Node) -> dict[str, Node]:
    """The members of a file of any version."""
    version = node.value.get("format") if isinstance(node.value, dict) else None
    if version not in VERSIONS:
        what = "is of an unknown version" if str(version).startswith("sfumato-model/") else "is not a model file"
        raise InputError(f"model: the file {what}; this sfumato reads {', '.join(map(repr, VERSIONS))}.")
    newest = renew(node)
    top = newest.fields(*MEMBERS, *((TOLD,) if TOLD in newest.value else ()))
    top["sfumato"].text()
    return top


def _sizes(about: About, known: Inputs, node: Node) -> Sizes:
    p, pairs = known.n_features, "second" in about.options
    if (known.second is not None) != pairs:
        Node(None, f"{node.place}.second").refuse("the second table" if pairs else "null: there is no second table")
    if known.second is None:
        return {"p": p, "most": p, "codes": HASH_BUCKETS}
    q = known.second.n_features
    most = min(p, q) if "y_mean" in about.released else p  # a canonical pair has a direction on either side
    return {"p": p, "q": q, "p + q": p + q, "most": most}


def _told(about: About, node: Node, sizes: Sizes) -> dict[str, Any]:
    """The parameters."""
    told = [name for name in about.parameters if name != OPTIONAL or OPTIONAL in dict(node.items())]
    fields = node.fields(*told)
    values = {name: about.parameters[name](fields[name], sizes) for name in told}
    checked(node, lambda: budget_of(values["epsilon"], values["delta"], values["rho"]))
    return values


MEMBERS = ("format", "sfumato", "estimator", "inputs", "parameters", "released", "ledger")
FIRST, SECOND = "sfumato-model/1", "sfumato-model/2"
VERSIONS = (FIRST, SECOND, FORMAT)
CALIBRATED = ("PrivateSIR", "PrivateSparseSIR", "PrivatePCA", "PrivateLDA", "PrivateCCA")
"""Estimators that once had the papers' methods among their own, with a calibration each."""
SOLVED = ("PrivateSIR", "PrivateSparseSIR")
"""Estimators that say how they were solved since."""
JUDGED_LATER = ("standard_errors", "y_standard_errors", "privacy_errors", "loadings_errors", "verdict", "choice")
"""What estimators say about their errors since, some of them."""
LOW, HIGH = (20, 100), (10, 50)
SLICING = {"DPIni": LOW, "DPSIR": LOW, "RayleighFlowSIR": LOW} | dict.fromkeys(
    ("DPSIni", "DPSSIR", "TruncatedRayleighFlowSIR"), HIGH
)
"""Slices and bins of the papers' methods, which could not be chosen."""


def renew(node: Node) -> Node:
    """The file as one of the newest version."""
    if node.value["format"] == FIRST:
        node = _from_first(node)
    if node.value["format"] == SECOND:
        node = _unjudged(_from_second(node))
    return _boxed(node)


def _boxed(node: Node) -> Node:
    """With nothing in place of the box of the fit, if the file does not tell it: its scores are projections."""
    made, released = find_class(node.value.get("estimator")), node.value.get("released")
    if made is None or "box" not in made.about.released or not isinstance(released, dict) or "box" in released:
        return node
    return Node(node.value | {"released": {"box": None} | released})


def _unjudged(node: Node) -> Node:
    """With nothing in place of what its estimator says about its errors today."""
    top = node.fields(*MEMBERS)
    about: About = find_class(top["estimator"].one_of(_kinds(top["estimator"].value))).about
    missing = {name: None for name in JUDGED_LATER if name in about.released}
    return Node(node.value | {"released": missing | _members(top["released"])})


def _from_first(node: Node) -> Node:
    """It held a `PrivateSIR`, of which the papers' noise was not said."""
    top = node.fields(*MEMBERS)
    top["estimator"].one_of(["PrivateSIR"])
    inputs, parameters = (_members(top[name]) for name in ("inputs", "parameters"))
    changed = {"inputs": inputs | {"second": None}, "parameters": parameters | {"calibration": "tight"}}
    return Node(node.value | changed | {"format": SECOND})


def _from_second(node: Node) -> Node:
    """The papers' methods were among those of the estimators; now they are estimators of their own."""
    top = node.fields(*MEMBERS)
    name, parameters, released = top["estimator"].value, _members(top["parameters"]), _members(top["released"])
    if isinstance(released.get("choice"), dict):  # nothing was tested
        released["choice"] = {"p_values": []} | released["choice"]
    if "bounds" in released:  # nor was it said which features were not seen
        released["unseen"] = None
    if isinstance(released.get("picture"), dict):  # nor what it tells in the units of y
        released["picture"] |= dict.fromkeys(("response_values", "response_cuts", "score_scale"))
    changed: dict[str, Any] = {"format": FORMAT, "released": released}
    if not isinstance(name, str) or name not in MOVED:
        return Node(node.value | changed)
    method = parameters.get("method")
    moved = MOVED[name].get(method) if isinstance(method, str) else None
    if name in CALIBRATED:
        Node(parameters.get("calibration"), "parameters.calibration").one_of(("tight", "paper"))
    if moved is None:
        parameters.pop("calibration", None)
        if name in SOLVED:
            released["solver"] = None if method == "auto" or name != "PrivateSIR" else method
        return Node(node.value | changed | {"parameters": parameters})
    for gone in ("method", "picture"):
        parameters.pop(gone, None)
    for gone in ("picture", "screen"):
        released.pop(gone, None)
    if moved in SLICING:
        parameters["n_slices"], parameters["n_bins"] = SLICING[moved]
    if moved == "DPSIR":
        parameters["batches"] = "full" if method == "dp-sir-full" else "parts"
    return Node(node.value | changed | {"estimator": moved, "parameters": parameters})


def _members(node: Node) -> dict[str, Any]:
    return {name: member.value for name, member in node.items()}


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
        "entries": [_entry_members(entry) for entry in ledger.entries],
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


def _entry_members(entry: Entry) -> dict[str, Any]:
    """All members; whom the entry protects only if it is not a record, as in files of before."""
    members, event = {name: getattr(entry, name) for name in ENTRY_MEMBERS}, entry.event
    members["event"] = {"mechanism": type(event).__name__} | to_plain(event)
    return members if entry.unit == RECORD else members | {"unit": str(entry.unit)}


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
