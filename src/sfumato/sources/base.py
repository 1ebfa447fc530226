"""What every reader of the package gives: a Source, records that can be read as often as needed, part by part.

And what it tells of the response: what is public about it, and how its cells become numbers or codes.
"""

import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import cells
from sfumato.errors import InputError
from sfumato.records import HASH_BUCKETS, Records, Response
from sfumato.typing import FloatArray, IntArray

MISSING = "x or y has missing or infinite values; drop or impute them first."
MOST_ROWS = 2**15
"""Rows of a chunk at the most, so that sums of 30-bit products stay exact in float64."""
CHUNK_VALUES = 2**19
"""Numbers per chunk, 4 MiB: smaller ones pay more in interpreter time than the processor's cache gives back."""

_LIBRARIES = 7 * 2**25
"""Bytes that the libraries take, and the process that called them."""
_CHUNK = 2**26
"""Bytes that a thread takes for the chunk that it sums, beside what it decodes."""
_KEPT = 2**29
"""Bytes that are kept between passes, unless told otherwise."""
_MOST_THREADS = 16
_PREFIXES = ["", "k", "m", "g", "t"]


def bytes_of(memory: Any) -> int | None:
    """A number of bytes, or a text such as "2GB", as a number; None is left to whoever reads.

    >>> bytes_of("2GB"), bytes_of("512 MiB"), bytes_of(0)
    (2000000000, 536870912, 0)
    """
    if memory is None:
        return None
    if isinstance(memory, int) and not isinstance(memory, bool) and memory >= 0:
        return memory
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", memory, re.I) if isinstance(memory, str) else None
    if found is None:
        raise InputError("memory must be a number of bytes or a text such as '2GB' or '512MiB'.")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** _PREFIXES.index(prefix.lower()))


def threads() -> int:
    """How many threads read and sum at the same time: one for each core, `_MOST_THREADS` at most."""
    if hasattr(os, "process_cpu_count"):
        cores = os.process_cpu_count()
    else:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores or 1, _MOST_THREADS)


def working_bytes(decoding: int) -> int:
    """About what a process takes if nothing is kept and each thread decodes with so many bytes."""
    return _LIBRARIES + threads() * (_CHUNK + decoding)


def kept_bytes(memory: int | None, working: int) -> int:
    """How much may be kept from one pass to the next if the process may take `memory` in all.

    >>> kept_bytes(2**30, 2**29) == 2**29, kept_bytes(2**20, 2**29), kept_bytes(None, 2**29) == 2**29
    (True, 0, True)
    """
    return _KEPT if memory is None else max(memory - working, 0)


def held_bytes(memory: int | None) -> int:
    """How large a table that is read once may be to stay in memory as it came, if the process may take `memory`.

    >>> held_bytes(None) == 2**28, held_bytes(4000)
    (True, 1000)
    """
    return _KEPT // 2 if memory is None else memory // 4


def chunk_rows(n_features: int) -> int:
    """Rows of a chunk, `MOST_ROWS` at most."""
    return min(MOST_ROWS, max(2**9, CHUNK_VALUES // max(n_features, 1)))


class Source(ABC):
    """Records that can be read as often as needed, part by part."""

    n_features: int
    feature_names: tuple[str, ...] | None
    response: Response
    has_response: bool = True
    classes: tuple[str, ...] | None = None
    """The declared classes of the response, as cells are compared with them, where the source was told of them."""
    n_second: int = 0
    """How many of the features, the last ones, are those of a second table: of a canonical pair, or responses."""
    has_people: bool = False
    """Whether every record is known to belong to a person, so that `first_rows` can tell which of them count."""
    binary: tuple[int, ...] = ()
    """Features that are 0 or 1, as the type of their column says: true and false, and the indicators of a category."""

    cluster: Any = None
    """Who adds the records up, if it is not this process: a client of a cluster, or the address of its scheduler."""

    @abstractmethod
    def parts(self) -> Sequence[Any]:
        """What can be read apart, by several threads at the same time.

        The parts of files are the same in every process that opens them, so that a worker elsewhere can be told which
        ones to read.
        """

    @abstractmethod
    def read(self, part: Any) -> Iterator[Records]:
        """The records of a part, in chunks."""

    def pooled(self) -> Records:
        """All records as one chunk, where they fit in memory."""
        nothing = Records(np.empty((0, self.n_features)), np.empty(0))
        chunks = [records for part in self.parts() for records in self.read(part)] or [nothing]
        return Records(np.concatenate([chunk.x for chunk in chunks]), np.concatenate([chunk.y for chunk in chunks]))

    def split(self, parts: Sequence[Any], lanes: int) -> Sequence[Sequence[Any]]:
        """What each of so many threads reads of some parts, at least one list."""
        return [parts[i::lanes] for i in range(max(min(lanes, len(parts)), 1))]

    @abstractmethod
    def count(self) -> int:
        """Number of records. Private under the add-remove relation: for the curator's own eyes."""

    def first_rows(self, rows: int) -> "Source":
        """The same records, of each person the first `rows` only; missing ids are refused."""
        raise InputError("x was scanned without ids; name their column: scan(..., person='patient_id').")

    def check(self) -> None:
        """Refuse values outside the declared domain, before anything is spent."""
        for part in self.parts():
            self.check_part(part)

    def check_part(self, part: Any) -> None:
        """The same, of one part."""
        for records in self.read(part):
            if not records.is_finite():
                raise InputError(MISSING)


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
