"""Questions as plain JSON: a closed set of bounded sums, no code, no pickle.

An object is ``{"kind": name, field: value, ...}`` with exactly the fields listed below; an array is its type, its shape
and the base64 of its little-endian bytes. Whatever is not of this form is refused before anything is computed.
"""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.bounds import Grid
from sfumato.errors import SfumatoError
from sfumato.statistics import histograms
from sfumato.statistics.columns import OnColumns
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct
from sfumato.statistics.moments import Moments
from sfumato.statistics.pictures import ProjectionHistogram
from sfumato.statistics.scores import SignScores
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum

FIELDS: Mapping[type, Mapping[str, Any]] = {
    Grid: {"centre": "floats", "half_width": "floats", "limits": "floats or null"},
    histograms.Bins: {"edges": "floats", "categories": "count or null"},
    Whitening: {"source": Grid, "matrix": "floats", "mean": "floats", "cap": "number"},
    Residual: {
        "whitening": Whitening,
        "bins": histograms.Bins,
        "table": "floats",
        "coefficients": "floats",
        "scale": "number",
    },
    histograms.ResponseHistogram: {"bins": histograms.Bins},
    histograms.NormHistogram: {"source": Grid},
    histograms.OctaveHistograms: {"n_features": "count"},
    histograms.LinearHistograms: {"lower": "floats", "upper": "floats", "bins": "count"},
    histograms.DistanceHistograms: {"middle": "floats", "step": "floats"},
    Moments: {"source": Grid, "radius": "number", "centre_weight": "number"},
    ResidualHistogram: {"residual": Residual},
    ResidualProduct: {"residual": Residual, "size": "number"},
    SlicedMoments: {
        "whitening": Whitening,
        "bins": histograms.Bins,
        "slice_of": "integers",
        "n_slices": "count",
        "slice_weight": "number",
        "count_weight": "number",
    },
    SignScores: {"centre": "floats", "bins": histograms.Bins, "table": "floats"},
    OnColumns: {"query": "question", "columns": "integers"},
    ProjectionHistogram: {
        "whitening": Whitening,
        "direction": "floats",
        "bins": histograms.Bins,
        "group_of": "integers",
        "n_groups": "count",
        "columns": "count",
    },
}
_KINDS = {kind.__name__: kind for kind in FIELDS}
_TYPES = {"floats": "<f8", "integers": "<i8"}
_LARGEST = 2**24


class RefusedError(SfumatoError):
    """A site does not answer this; the sentence says why and holds nothing but public values."""


def encode(value: Any) -> dict[str, Any]:
    """A known object as JSON data.

    >>> encode(histograms.OctaveHistograms(3))
    {'kind': 'OctaveHistograms', 'n_features': 3}
    """
    fields = FIELDS.get(type(value))
    if fields is None:
        raise RefusedError(f"{type(value).__name__} is not among the questions that sites answer.")
    return {"kind": type(value).__name__} | {name: _encoded(getattr(value, name), of) for name, of in fields.items()}


def dump_json(data: Any) -> str:
    """JSON text, the same for the same data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(data: Any) -> str:
    """Fingerprint of JSON data: the same question has the same one."""
    try:
        return hashlib.sha256(dump_json(data).encode()).hexdigest()
    except (TypeError, ValueError, RecursionError):
        raise RefusedError("the question holds something that is not plain, finite JSON.") from None


class Decoder:
    """Reads questions back. Equal parts become one object, so that a site whitens its records once, not per step."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def query(self, data: Any) -> BoundedSum:
        """The bounded sum, or `RefusedError`.

        >>> Decoder().query({"kind": "OctaveHistograms", "n_features": 3})
        OctaveHistograms(n_features=3)
        """
        value = self._object(data, None)
        if not isinstance(value, BoundedSum):
            raise RefusedError("the question is not a bounded sum.")
        return value

    def _inner(self, data: Any) -> BoundedSum:
        """A question inside another; no deeper, so that what is asked stays readable."""
        if isinstance(data, dict) and data.get("kind") == OnColumns.__name__:
            raise RefusedError("the question selects columns twice.")
        return self.query(data)

    def _object(self, data: Any, wanted: type | None) -> Any:
        kind = _KINDS.get(data["kind"]) if isinstance(data, dict) and isinstance(data.get("kind"), str) else None
        if kind is None or wanted not in (None, kind):
            raise RefusedError("the question is of a kind that sites do not answer.")
        if set(data) != {"kind", *FIELDS[kind]}:
            raise RefusedError(f"the question's {kind.__name__} does not have the known fields.")
        key = digest(data)
        if key not in self._known:
            given = {name: self._decoded(data[name], of, name) for name, of in FIELDS[kind].items()}
            self._known[key] = kind(**given)
        return self._known[key]

    def _decoded(self, data: Any, of: Any, name: str) -> Any:
        if isinstance(of, type):
            return self._object(data, of)
        if of == "question":
            return self._inner(data)
        if of in _TYPES:
            return _array(data, of, name)
        if of.endswith("or null") and data is None:
            return None
        if of == "floats or null":
            return _array(data, "floats", name)
        if of.startswith("count"):
            if not isinstance(data, int) or isinstance(data, bool) or not 0 < data < _LARGEST:
                raise RefusedError(f"{name} is not a count.")
            return data
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            raise RefusedError(f"{name} is not a finite number.")
        return float(data)


def _encoded(value: Any, of: Any) -> Any:
    if isinstance(of, type) or of == "question":
        return encode(value)
    if of == "floats or null" and value is not None:
        return _encoded(value, "floats")
    if of in _TYPES:
        array = np.ascontiguousarray(value, dtype=_TYPES[of])
        return {"type": of, "shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode("ascii")}
    return value if value is None or of.startswith("count") else float(value)


def _array(data: Any, of: str, name: str) -> Any:
    if not isinstance(data, dict) or set(data) != {"type", "shape", "data"} or data["type"] != of:
        raise RefusedError(f"{name} is not an array of {of}.")
    shape, text = data["shape"], data["data"]
    sizes = isinstance(shape, list) and len(shape) <= 2 and all(type(n) is int and 0 <= n < _LARGEST for n in shape)
    if not sizes or not isinstance(text, str):
        raise RefusedError(f"{name} is not an array of {of}.")
    try:
        array = np.frombuffer(base64.b64decode(text, validate=True), dtype=_TYPES[of]).reshape(shape)
    except (ValueError, binascii.Error):
        raise RefusedError(f"{name} does not have as many numbers as its shape says.") from None
    if not np.isfinite(array).all():
        raise RefusedError(f"{name} has numbers that are not finite.")
    array.flags.writeable = False
    return array
