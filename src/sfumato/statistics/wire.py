"""Questions as plain JSON: a closed set of bounded sums, no code, no pickle.

An object is ``{"kind": name, field: value, ...}`` with exactly the fields of its class; an array is its type, its shape
and the base64 of its little-endian bytes. Whatever is not of this form is refused before anything is computed.
"""

import base64
import binascii
import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from sfumato.bounds import Grid
from sfumato.errors import SfumatoError
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct, ResponseProduct
from sfumato.statistics.histograms import (
    Bins,
    DistanceHistograms,
    LinearHistograms,
    NormHistogram,
    OctaveHistograms,
    ProjectionHistogram,
    ResponseHistogram,
)
from sfumato.statistics.moments import Moments, SquareSums
from sfumato.statistics.parts import Cells, OfColumn, OnCells, OnColumns, Part, PerPerson
from sfumato.statistics.scores import QuantileScores, SignResiduals, Signs, SignScores
from sfumato.statistics.slices import SlicedMoments, SliceSecondMoments
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

_FORMS: Mapping[Any, str] = {
    FloatArray: "floats",
    IntArray: "integers",
    float: "number",
    int: "count",
    FloatArray | None: "floats or null",
    float | None: "number or null",
    int | None: "count or null",
    BoundedSum: "question",
}
"""How a member is written, by its type; an object inside another is written as one."""
SITES: tuple[type[Any], ...] = (
    Grid,
    Bins,
    Whitening,
    Residual,
    ResponseHistogram,
    NormHistogram,
    OctaveHistograms,
    LinearHistograms,
    DistanceHistograms,
    Moments,
    ResidualHistogram,
    ResidualProduct,
    ResponseProduct,
    SlicedMoments,
    SliceSecondMoments,
    SignScores,
    SquareSums,
    OnColumns,
    ProjectionHistogram,
)
"""Those that the sites of a federation answer; whatever else comes is refused there."""
WORKERS: tuple[type[Any], ...] = (Signs, SignResiduals, QuantileScores, OfColumn, Cells, OnCells, Part, PerPerson)
"""Those that the workers of a cluster answer, besides."""
FIELDS: Mapping[type, Mapping[str, Any]] = {
    kind: {each.name: _FORMS.get(each.type, each.type) for each in fields(kind)} for kind in (*SITES, *WORKERS)
} | {Part: {"query": "question", "index": "position", "parts": "count"}}
"""Every question the core asks, and what it is made of; the first part is number 0."""
_TYPES = {"floats": "<f8", "integers": "<i8"}
_LARGEST = 2**24
_DEEPEST = 8
"""Objects inside one another: a person's share of a part of some columns of a residual's whitening of a grid."""


class RefusedError(SfumatoError):
    """A question that is not answered; the sentence says why and holds nothing but public values."""


def encode(value: Any) -> dict[str, Any]:
    """A known object as JSON data.

    >>> encode(OctaveHistograms(3))
    {'kind': 'OctaveHistograms', 'n_features': 3}
    """
    members = FIELDS.get(type(value))
    if members is None:
        raise RefusedError(f"{type(value).__name__} is not among the questions that sites and workers answer.")
    return {"kind": type(value).__name__} | {name: _encoded(getattr(value, name), of) for name, of in members.items()}


def travels(query: BoundedSum) -> bool:
    """Whether a question can be written as JSON, inside and out."""
    inner = getattr(query, "query", None)
    return type(query) in FIELDS and (inner is None or travels(inner))


def dump_json(data: Any) -> str:
    """JSON text, the same for the same data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(data: Any) -> str:
    """Fingerprint of JSON data: the same question has the same one."""
    try:
        return hashlib.sha256(dump_json(data).encode()).hexdigest()
    except (TypeError, ValueError, RecursionError):
        raise RefusedError("the question holds something that is not plain, finite JSON.") from None


FORMAT = digest({kind.__name__: {name: str(of) for name, of in members.items()} for kind, members in FIELDS.items()})
"""Fingerprint of the format: processes that have the same one can read each other's questions."""


class Decoder:
    """Reads questions back. Equal parts become one object, so that records are whitened once, not per step.

    Parameters
    ----------
    kinds : collection of types
        What is answered; everything else is refused.
    keep : int
        How many of the objects read last are kept. With a whitening goes what it made of the records.
    """

    def __init__(self, kinds: Collection[type] = FIELDS, keep: int = 64) -> None:
        self._kinds = {kind.__name__: kind for kind in kinds}
        self._keep = keep
        self._known: OrderedDict[str, Any] = OrderedDict()

    def query(self, data: Any) -> BoundedSum:
        """The bounded sum, or `RefusedError`.

        >>> Decoder().query({"kind": "OctaveHistograms", "n_features": 3})
        OctaveHistograms(n_features=3)
        """
        value = self._inner(data, 0)
        while len(self._known) > self._keep:
            self._known.popitem(last=False)
        return value

    def _object(self, data: Any, wanted: type | None, depth: int = 0) -> Any:
        kind = self._kinds.get(data["kind"]) if isinstance(data, dict) and isinstance(data.get("kind"), str) else None
        if kind is None or wanted not in (None, kind) or depth > _DEEPEST:
            raise RefusedError("the question is of a kind that sites do not answer.")
        if set(data) != {"kind", *FIELDS[kind]}:
            raise RefusedError(f"the question's {kind.__name__} does not have the known fields.")
        key = digest(data)
        if key not in self._known:
            given = {name: self._decoded(data[name], of, name, depth) for name, of in FIELDS[kind].items()}
            self._known[key] = kind(**given)
        self._known.move_to_end(key)
        return self._known[key]

    def _inner(self, data: Any, depth: int) -> BoundedSum:
        """A question inside another."""
        value = self._object(data, None, depth)
        if not isinstance(value, BoundedSum):
            raise RefusedError("the question is not a bounded sum.")
        return value

    def _decoded(self, data: Any, of: Any, name: str, depth: int) -> Any:
        if isinstance(of, type):
            return self._object(data, of, depth + 1)
        if of == "question":
            return self._inner(data, depth + 1)
        if of in _TYPES:
            return _array(data, of, name)
        if of.endswith("or null") and data is None:
            return None
        if of == "floats or null":
            return _array(data, "floats", name)
        if of.startswith(("count", "position")):
            least = 1 if of.startswith("count") else 0
            if not isinstance(data, int) or isinstance(data, bool) or not least <= data < _LARGEST:
                raise RefusedError(f"{name} is not a {of.split()[0]}.")
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
    return value if value is None or of.startswith(("count", "position")) else float(value)


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
