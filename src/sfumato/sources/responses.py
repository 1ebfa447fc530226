"""The response: what is public about it, and how its cells become numbers or codes."""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import cells
from sfumato.errors import InputError
from sfumato.records import HASH_BUCKETS, Response
from sfumato.typing import FloatArray, IntArray

ResponseKind = Literal["numeric", "categorical"]
HASHED = Response(categories=HASH_BUCKETS, hashed=True)
_MOST_CLASSES = 2**15


def response_kind_of(given: Any) -> ResponseKind | None:
    """A declared kind, checked."""
    match given:
        case None | "numeric" | "categorical":
            return given
    raise InputError("response_kind must be 'numeric', 'categorical' or None, which is the type of the column.")


def declared_response(
    numeric: bool, classes: Sequence[Any] | None, response_kind: ResponseKind | None = None
) -> Response:
    """What is public about a response whose column is of this type, with these declared classes or this kind."""
    response_kind = response_kind_of(response_kind)
    if classes is not None:
        if isinstance(classes, str) or not hasattr(classes, "__len__") or not 0 < len(classes) < _MOST_CLASSES:
            raise InputError(f"classes must be a list of 1 to {_MOST_CLASSES - 1} names; for instance ['no', 'yes'].")
        if response_kind == "numeric":
            raise InputError("response_kind must be 'categorical' or None where classes are declared.")
        return Response(categories=len(cells.keys_of(classes, "classes")) + 1)
    if response_kind == "numeric" and not numeric:
        raise InputError("response_kind is 'numeric', but the response is not of a numeric type; convert it first.")
    return Response() if numeric and response_kind != "categorical" else HASHED


def encode_response(raw: NDArray[Any], response: Response, classes: Sequence[Any] | None) -> FloatArray | IntArray:
    """Numbers as float64, declared classes as their position (others share the last code), names as buckets.

    The code of a class or name depends on its own cell alone (`sfumato.cells`).
    """
    if response.categories is None:
        return np.asarray(raw, dtype=np.float64)
    if classes is None:
        return cells.encode(raw, lambda key: bucket(cells.name(key)))
    return cells.encode(raw, cells.position(cells.keys_of(classes, "classes")))


def bucket(name: str) -> int:
    """Public hash bucket of a category name, the same on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big") % HASH_BUCKETS
