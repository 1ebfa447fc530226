"""The same door, seen from a few columns."""

from collections.abc import Sequence

import numpy as np

from sfumato.privacy.curator import Curator
from sfumato.release import Release
from sfumato.statistics.columns import OnColumns
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation


class ColumnView(Curator):
    """A curator whose records have only some columns; plan, ledger, records and noise are those of `curator`.

    What runs on a table runs on a selection of its features by being handed this view.
    """

    def __init__(self, curator: Curator, columns: Sequence[int] | IntArray) -> None:
        self._curator = curator
        self._columns = np.asarray(columns, dtype=np.int64)

    @property
    def relation(self) -> Relation:
        return self._curator.relation

    def answer(self, query: BoundedSum, name: str) -> Release:
        return self._curator.answer(OnColumns(query, self._columns), name)

    def answer_part(self, query: BoundedSum, name: str, part: int) -> Release:
        return self._curator.answer_part(OnColumns(query, self._columns), name, part)

    def select(self, query: BoundedSum, name: str) -> IntArray:
        return self._curator.select(OnColumns(query, self._columns), name)
