"""A fitted estimator as JSON."""

import dataclasses
import json
import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato import __version__
from sfumato.bounds import Bounds
from sfumato.errors import InputError
from sfumato.estimators.sir import PrivateSIR
from sfumato.files import Columns
from sfumato.iterate.picture import Picture
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.report.account import own_ledger

FORMAT = "sfumato-model/1"
PARAMETERS = ("epsilon", "delta", "n_directions", "method", "relation", "rho", "picture")


def save_model(
    estimator: PrivateSIR,
    path: str | PathLike[str],
    *,
    response: str | None = None,
    columns: Columns | None = None,
) -> Path:
    """Write a fitted estimator to a JSON file.

    Parameters
    ----------
    estimator : PrivateSIR
        Fitted. Its parameters, released values and ledger are written, nothing else.
    path : path
        The file; replaced if it exists.
    response : str, optional
        Name of the response column.
    columns : Columns, optional
        How the features were made from the columns of a file.

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
    target.write_text(pretty(content(estimator, response, columns)) + "\n", encoding="utf-8")
    return target


def content(estimator: PrivateSIR, response: str | None = None, columns: Columns | None = None) -> dict[str, Any]:
    """What a model file says, as plain values."""
    if type(estimator) is not PrivateSIR:
        raise InputError(f"estimator: a model file holds a PrivateSIR, not a {type(estimator).__name__}.")
    check_is_fitted(estimator)
    return {
        "format": FORMAT,
        "sfumato": __version__,
        "estimator": type(estimator).__name__,
        "inputs": _inputs(estimator, response, columns),
        "parameters": _parameters(estimator),
        "released": _released(estimator),
        "ledger": _ledger(own_ledger(estimator)),
    }


def _inputs(estimator: PrivateSIR, response: str | None, columns: Columns | None) -> dict[str, Any]:
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "n_features": int(estimator.n_features_in_),
        "n_records": getattr(estimator, "n_records_", None),
        "feature_names": None if names is None else [str(name) for name in names],
        "response": response,
        "columns": None if columns is None else list(columns.features),
        "categorical": {} if columns is None else {name: list(c) for name, c in columns.categorical.items()},
    }


def _parameters(estimator: PrivateSIR) -> dict[str, Any]:
    classes, seed = estimator.classes, estimator.random_state
    return {name: _scalar(getattr(estimator, name)) for name in PARAMETERS} | {
        "bounds": _bounds(estimator.bounds),
        "classes": None if classes is None else [_scalar(name) for name in classes],
        "random_state": int(seed) if isinstance(seed, (int, np.integer)) else None,
    }


def _released(estimator: PrivateSIR) -> dict[str, Any]:
    choice = estimator.choice_
    return {
        "directions": estimator.directions_.tolist(),
        "standard_errors": _with_gaps(estimator.standard_errors_.tolist()),
        "eigenvalues": _with_gaps(estimator.eigenvalues_.tolist()),
        "mean": estimator.mean_.tolist(),
        "scale": estimator.scale_.tolist(),
        "bounds": _bounds(estimator.bounds_),
        "choice": {
            "n_directions": int(choice.n_directions),
            "singular_values": _with_gaps(choice.singular_values.tolist()),
            "edge": float(choice.edge),
            "given": bool(choice.given),
        },
        "picture": _picture(estimator.picture_),
    }


def _picture(picture: Picture | None) -> dict[str, Any] | None:
    if picture is None:
        return None
    return {
        "counts": picture.counts.tolist(),
        "noise_std": float(picture.noise_std),
        "direction_edges": picture.direction_edges.tolist(),
        "response_edges": picture.response_edges.tolist(),
        "is_ordered": bool(picture.is_ordered),
    }


def _ledger(ledger: Ledger) -> dict[str, Any]:
    budget = ledger.budget
    return {
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho},
        "relation": ledger.relation,
        "rehearsal": bool(ledger.rehearsal),
        "guarantee": ledger.guarantee,
        "entries": [_entry(entry) for entry in ledger.entries],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    event = {"mechanism": type(entry.event).__name__} | {
        field.name: getattr(entry.event, field.name) for field in dataclasses.fields(entry.event)
    }
    names = [field.name for field in dataclasses.fields(Entry) if field.name != "event"]
    return {name: _scalar(getattr(entry, name)) for name in names} | {"event": event}


def _bounds(bounds: Bounds | None) -> dict[str, Any] | None:
    return None if bounds is None else {"lower": bounds.lower.tolist(), "upper": bounds.upper.tolist()}


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _with_gaps(values: Any) -> Any:
    """Numbers that are not finite as null: a saved fit must load, whatever its noise did."""
    if isinstance(values, list):
        return [_with_gaps(value) for value in values]
    return values if math.isfinite(values) else None


def pretty(value: Any, indent: str = "") -> str:
    """JSON with one member of an object a line, and lists of plain values on one line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        members = (f"{inner}{json.dumps(name)}: {pretty(member, inner)}" for name, member in value.items())
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(v, (list, dict)) for v in value):
        return "[\n" + ",\n".join(inner + pretty(element, inner) for element in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False, ensure_ascii=False)
