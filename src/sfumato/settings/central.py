"""The central setting: one curator holds all records, in memory or in files read chunk by chunk."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, reduce
from operator import add
from typing import Any, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from sfumato import progress
from sfumato.errors import InputError
from sfumato.sources import MOST_ROWS, Source
from sfumato.sources.base import threads as default_threads
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

T = TypeVar("T")
LARGE = 2_000
"""Rows of a matrix from which on several BLAS threads are worth it."""


class Central:
    """Adds a query over the chunks of a source, on all cores.

    Chunks are summed by threads with one BLAS thread each (numpy and pyarrow release the interpreter lock; two
    multi-threaded BLAS calls at once would fight). Integer sums do not depend on the order, so neither the
    number of threads nor the size of the chunks changes the answer by a bit. Memory is bounded by a chunk per
    thread, and what the source keeps.
    """

    def __init__(self, source: Source, *, threads: int | None = None) -> None:
        _keep_freed_pages()
        self._source = source
        self._threads = threads or default_threads()

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records."""
        return self.sum_parts(query, self._source.parts())

    def sum_parts(self, query: BoundedSum, parts: Sequence[Any]) -> IntArray:
        """The exact sum of the query over some parts of the source."""
        lanes = self._source.split(parts, self._threads)
        told = progress.reading(sum(map(len, lanes)))
        return reduce(add, _together(lambda lane: self._sum_lane(query, lane, told), lanes))

    def check(self) -> None:
        """Refuse values outside the declared domain, before anything is spent."""
        self.check_parts(self._source.parts())

    def check_parts(self, parts: Sequence[Any]) -> None:
        """The same, of some parts of the source."""
        _together(self._check_lane, self._source.split(parts, self._threads))

    def _check_lane(self, parts: Sequence[Any]) -> None:
        for part in parts:
            self._source.check_part(part)

    def _sum_lane(self, query: BoundedSum, parts: Sequence[Any], told: Callable[[], None]) -> IntArray:
        total = np.zeros(query.shape, dtype=np.int64)
        with np.errstate(all="ignore"):  # whatever the user asked numpy for, no value raises or warns inside the door
            for part in parts:
                for records in self._source.read(part):
                    if len(records) > MOST_ROWS:  # sums of 30-bit products would no longer be exact in float64
                        raise InputError(f"source: a chunk has more than {MOST_ROWS} rows; yield smaller ones.")
                    total += query.of(records)
                told()
        return total


def _together(work: Callable[[Sequence[Any]], T], lanes: Sequence[Sequence[Any]]) -> list[T]:
    """What `work` gives for each lane of parts, a thread for each; the first lane is this thread's."""
    first, *others = lanes
    with one_blas_thread():
        if not others:
            return [work(first)]
        with ThreadPoolExecutor(len(others)) as pool:
            found = pool.map(work, others)  # begins at once
            return [work(first), *found]


def one_blas_thread() -> AbstractContextManager[Any]:
    """One BLAS thread for each of ours, in a ``with`` block."""
    return cast(AbstractContextManager[Any], _controller().limit(limits=1, user_api="blas"))


def solving_threads(n_features: int) -> AbstractContextManager[Any]:
    """The BLAS threads that a fit solves with, in a ``with`` block: one for matrices of less than `LARGE` rows.

    Threads that wait for each other in small matrices cost up to twice the time, and far more where others are busy.
    """
    return one_blas_thread() if n_features < LARGE else nullcontext()


@cache
def _controller() -> ThreadpoolController:
    """Finding the BLAS libraries takes 5 ms, longer than many a sum; do it once."""
    return ThreadpoolController()


@cache
def _keep_freed_pages() -> None:
    """Make the allocator keep the pages of freed temporaries, so that the next chunk need not fault them in again.

    glibc raises its limit for mapping (and for giving memory back) to the size of the largest mapped block freed so
    far, at most 32 MiB (mallopt(3), M_MMAP_THRESHOLD). Freeing one such block, never touched, does it once for the
    process; without it half the time of a pass goes into page faults. Elsewhere it does nothing.
    """
    np.empty(2**25 - 2**16, dtype=np.uint8)
