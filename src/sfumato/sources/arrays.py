"""Records in memory."""

import copy
from collections.abc import Iterator
from typing import Any

from sfumato import people
from sfumato.records import Records, Response
from sfumato.sources.base import Source, chunk_rows
from sfumato.typing import FloatArray, IntArray


class ArraySource(Source):
    """Records in memory."""

    def __init__(
        self,
        x: FloatArray,
        y: FloatArray | IntArray,
        response: Response,
        names: tuple[str, ...] | None = None,
        *,
        has_response: bool = True,
        n_second: int = 0,
        ids: Any = None,
        binary: tuple[int, ...] = (),
    ) -> None:
        self.response, self.has_response, self.n_second, self.binary = response, has_response, n_second, binary
        self.n_features = x.shape[1]
        self.feature_names = names
        self.has_people, self._ids = ids is not None, ids
        rows = chunk_rows(self.n_features)
        self._chunks = [Records(x[i : i + rows], y[i : i + rows]) for i in range(0, len(x), rows)]

    def parts(self) -> list[int]:
        return list(range(len(self._chunks)))

    def read(self, part: Any) -> Iterator[Records]:
        yield self._chunks[part]

    def count(self) -> int:
        return sum(len(chunk) for chunk in self._chunks)

    def of(self, ids: Any) -> "ArraySource":
        """The same records, each with the id of its person."""
        return self._with(self._chunks, ids)

    def first_rows(self, rows: int) -> Source:
        if self._ids is None:
            return super().first_rows(rows)
        counts, begins = people.first_rows(self._ids, self.count(), rows), 0
        chunks = []
        for chunk in self._chunks:
            mine = counts[begins : begins + len(chunk)]
            begins += len(chunk)
            if mine.any():
                chunks.append(Records(chunk.x[mine], chunk.y[mine]))
        return self._with(chunks, None)

    def _with(self, chunks: list[Records], ids: Any) -> "ArraySource":
        other = copy.copy(self)
        other._chunks, other._ids, other.has_people = chunks, ids, ids is not None
        return other
