"""Fingerprints: every bit of a value, so that two values can be told apart that ``==`` calls equal (0.0 and -0.0)."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from sfumato.privacy.ledger import Ledger


def fingerprint(value: Any) -> bytes:
    """All bits of a question or of a fitted attribute: numbers, arrays, tables of them, dataclasses, ledgers.

    A kind of value that is not known here is refused, so that no attribute passes unseen.

    >>> fingerprint(0.0) == fingerprint(-0.0), fingerprint(np.nan) == fingerprint(np.nan)
    (False, True)
    >>> fingerprint([1, 2]) == fingerprint(np.array([1, 2]))
    False
    """
    kind, parts = _parts(value)
    name = f"{kind.__module__}.{kind.__qualname__}".encode()
    return b"".join(len(part).to_bytes(8, "big") + part for part in (name, *parts))


def _parts(value: Any) -> tuple[type, list[bytes]]:
    kind = type(value)
    if kind is np.ndarray and value.dtype.kind != "O":  # the most frequent by far
        return kind, [value.dtype.str.encode(), repr(value.shape).encode(), value.tobytes()]
    match value:
        case None | bool() | int() | str() | bytes():
            return kind, [repr(value).encode("utf-8", "surrogatepass")]
        case float():
            return kind, [np.float64(value).tobytes()]
        case np.ndarray() if value.dtype.kind == "O":
            return kind, [repr(value.shape).encode(), *map(fingerprint, value.ravel().tolist())]
        case np.ndarray() | np.generic():
            return kind, [value.dtype.str.encode(), repr(np.shape(value)).encode(), value.tobytes()]
        case list() | tuple():
            return kind, [fingerprint(item) for item in value]
        case set() | frozenset():
            return kind, sorted(fingerprint(item) for item in value)
        case Mapping():
            return kind, [fingerprint(item) for pair in value.items() for item in pair]
        case Ledger():
            entries = [replace(entry, at="") for entry in value.entries]  # all but the time of day
            return kind, [fingerprint((value.budget, value.relation, value.rehearsal, entries))]
        case type():
            return kind, [value.__qualname__.encode()]
    if is_dataclass(value):
        return kind, [fingerprint(getattr(value, each.name)) for each in fields(value)]
    raise TypeError(f"an attribute of type {kind.__qualname__} has no fingerprint yet; say here what its bits are.")
