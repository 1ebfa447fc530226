"""A fitted estimator as JSON."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato import __version__
from sfumato.bounds import SEARCH
from sfumato.errors import InputError
from sfumato.methods.base import PrivateReducer
from sfumato.model import account, inputs
from sfumato.model.kinds import OPTIONAL, Kind, kinds_for
from sfumato.report.account import own_ledger
from sfumato.sources.columns import Columns

FORMAT = "sfumato-model/3"


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
    target.write_text(pretty(content(estimator, response, columns, second)) + "\n", encoding="utf-8")
    return target


def content(
    estimator: PrivateReducer,
    response: str | None = None,
    columns: Columns | None = None,
    second: Columns | None = None,
) -> dict[str, Any]:
    """What a model file says, as plain values."""
    name = type(estimator).__name__
    kinds = kinds_for(name)
    kind = kinds.get(name)
    if kind is None or type(estimator) is not kind.make:
        raise InputError(f"estimator: a model file holds one of {', '.join(kinds)}, not a {name}.")
    check_is_fitted(estimator)
    said = {
        "format": FORMAT,
        "sfumato": __version__,
        "estimator": name,
        "inputs": inputs.written(estimator, response, columns, second),
        "parameters": _parameters(estimator, kind),
        "released": {name: getattr(estimator, kind.attribute(name), None) for name in kind.released},
        "ledger": account.written(own_ledger(estimator)),
    }
    return {name: plain(value) for name, value in said.items()}


def _parameters(estimator: Any, kind: Kind) -> dict[str, Any]:
    """The parameters; a seed that is no number was used up by the fit."""
    values = {name: _said(getattr(estimator, name)) for name in kind.parameters}
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


def plain(value: Any) -> Any:
    """Arrays as lists, frozen values as objects, numbers as numbers.

    One that is not finite becomes null: a saved fit must load, whatever its noise did.

    >>> plain({"a": np.array([1.0, np.nan]), "b": np.int64(3)})
    {'a': [1.0, None], 'b': 3}
    """
    match value:
        case np.ndarray() | np.generic():
            return plain(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case None | str() | int():
            return value
        case Mapping():
            return {str(name): plain(member) for name, member in value.items()}
        case _ if dataclasses.is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _ if hasattr(value, "__iter__"):
            return [plain(element) for element in value]
    return str(value)


def pretty(value: Any, indent: str = "") -> str:
    """JSON with one member of an object a line, and lists of plain values on one line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        members = (f"{inner}{json.dumps(name)}: {pretty(member, inner)}" for name, member in value.items())
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(v, (list, dict)) for v in value):
        return "[\n" + ",\n".join(inner + pretty(element, inner) for element in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False, ensure_ascii=False)
