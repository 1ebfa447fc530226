"""Spark adds: every task of its own sums the batches it is given, and only the sums come here.

No sum is shuffled, so none is written to a disk: there are at most twice as many tasks as cores, and each adds up all
its partitions before it answers.
"""

from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from sfumato.errors import InputError, SfumatoError
from sfumato.settings.central import Central
from sfumato.settings.worker import add_batches, check_batches
from sfumato.sources import Source
from sfumato.sources.files import FileSource
from sfumato.sources.streams import SparkTable
from sfumato.statistics.wire import dump_json, encode, travels
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

_LEAST_TASKS = 64


class SparkError(SfumatoError):
    """Spark failed; what the ledger has spent stays spent. Its own text may quote a record and is not repeated."""


class SparkAdder:
    """Adds a query over a Spark DataFrame, by ``mapInArrow``.

    Parameters
    ----------
    source : FileSource
        Of the one `table`.
    """

    def __init__(self, source: Source, table: SparkTable) -> None:
        assert isinstance(source, FileSource)  # `scan` makes no other of a SparkTable
        self._source = source
        self._recipe = dump_json(source.recipe)
        self._columns = list(source.columns_read)
        # mapInArrow does not find a column whose name has a point in it: columns travel by number
        frame = table.chosen(self._columns).toDF(*map(str, range(len(self._columns))))
        most = max(_LEAST_TASKS, 2 * frame.sparkSession.sparkContext.defaultParallelism)
        self._frame = frame.coalesce(most)

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records."""
        if not travels(query):  # a question of a paper's own method: this process reads the table itself
            return Central(self._source).sum(query)
        rows = self._run(add_batches, "total binary", question=dump_json(encode(query)))
        sums = (np.frombuffer(row.total, dtype="<i8").reshape(query.shape) for row in rows)
        return reduce(add, sums, np.zeros(query.shape, dtype=np.int64))

    def check(self) -> None:
        """Refuse values outside the declared domain, before anything is spent."""
        refused = self._run(check_batches, "refused string")
        if refused:
            raise InputError(refused[0].refused)

    def _run(self, work: Callable[..., Any], schema: str, **arguments: str) -> list[Any]:
        told = partial(work, recipe=self._recipe, columns=self._columns, **arguments)
        try:
            return list(self._frame.mapInArrow(told, schema).collect())
        except Exception as error:
            raise SparkError(
                f"data: Spark failed ({type(error).__name__}); its own log says why. Are the same versions of sfumato "
                "and Python on its executors?"
            ) from None
