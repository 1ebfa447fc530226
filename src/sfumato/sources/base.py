"""Source: records that can be read as often as needed, part by part; what every reader of the package gives."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.records import Records, Response

MISSING = "x or y has missing or infinite values; drop or impute them first."
MOST_ROWS = 2**15
"""Rows of a chunk at the most, so that sums of 30-bit products stay exact in float64."""
CHUNK_VALUES = 2**19
"""Numbers per chunk, 4 MiB: smaller ones pay more in interpreter time than the processor's cache gives back."""

MEMORY = 2**30
"""Bytes that a process may take for a source, unless told otherwise."""
_WORKING = 2**29
"""Bytes of them for the libraries, and for what is decoded and summed at the moment."""
_PREFIXES = ["", "k", "m", "g", "t"]


def bytes_of(memory: Any) -> int:
    """A number of bytes, or a text such as "2GB", as a number.

    >>> bytes_of("2GB"), bytes_of("512 MiB"), bytes_of(0)
    (2000000000, 536870912, 0)
    """
    if isinstance(memory, int) and not isinstance(memory, bool) and memory >= 0:
        return memory
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", memory, re.I) if isinstance(memory, str) else None
    if found is None:
        raise InputError("memory must be a number of bytes or a text such as '2GB' or '512MiB'.")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** _PREFIXES.index(prefix.lower()))


def kept_bytes(memory: int) -> int:
    """How much of `memory` may be kept from one pass to the next.

    >>> kept_bytes(2**30) == 2**29, kept_bytes(2**20) == 2**19
    (True, True)
    """
    return max(memory - _WORKING, memory // 2)


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
        chunks = [records for part in self.parts() for records in self.read(part)] or [_none(self.n_features)]
        return Records(np.concatenate([chunk.x for chunk in chunks]), np.concatenate([chunk.y for chunk in chunks]))

    def split(self, parts: Sequence[Any]) -> Sequence[Any]:
        """The records of some parts in smaller ones, as far as this process can read them apart."""
        return parts

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


def _none(n_features: int) -> Records:
    return Records(np.empty((0, n_features)), np.empty(0))
