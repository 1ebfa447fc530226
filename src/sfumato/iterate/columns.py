"""The same door, seen from a few columns."""

from collections.abc import Sequence

import numpy as np

from sfumato.privacy.door import Door
from sfumato.release import Release
from sfumato.statistics.columns import OnColumns
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray


class ColumnView:
    """A door to records with only some columns; plan, ledger, records and noise are those of `door`.

    What runs on a table runs on a selection of its features by being handed this view.
    """

    def __init__(self, door: Door, columns: Sequence[int] | IntArray) -> None:
        self._door = door
        self._columns = np.asarray(columns, dtype=np.int64)

    def answer(self, query: BoundedSum, name: str) -> Release:
        return self._door.answer(OnColumns(query, self._columns), name)

    def select(self, query: BoundedSum, name: str) -> IntArray:
        return self._door.select(OnColumns(query, self._columns), name)
