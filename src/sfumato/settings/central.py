"""The central setting: one curator holds all records, in memory or in files read chunk by chunk."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, reduce
from operator import add
from typing import Any, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from sfumato.errors import InputError
from sfumato.sources import MOST_ROWS, Source
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray


class Central:
    """Adds a query over the chunks of a source, on all cores.

    Chunks are summed by threads with one BLAS thread each (numpy and pyarrow release the interpreter lock; two
    multi-threaded BLAS calls at once would fight). Integer sums do not depend on the order, so neither the
    number of threads nor the size of the chunks changes the answer by a bit. Memory is bounded by a chunk per
    thread.
    """

    def __init__(self, source: Source, *, threads: int | None = None) -> None:
        _keep_freed_pages()
        self._source = source
        self._threads = threads or min(os.process_cpu_count() if hasattr(os, "process_cpu_count") else _cores(), 16)

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records."""
        parts = self._source.parts()
        lanes = [parts[i :: self._threads] for i in range(min(self._threads, max(len(parts), 1)))]
        with one_blas_thread():
            if len(lanes) == 1:
                return self._lane(query, lanes[0])
            with ThreadPoolExecutor(len(lanes)) as pool:
                return reduce(add, pool.map(lambda lane: self._lane(query, lane), lanes))

    def _lane(self, query: BoundedSum, parts: list[int]) -> IntArray:
        total = np.zeros(query.shape, dtype=np.int64)
        with np.errstate(all="ignore"):  # whatever the user asked numpy for, no value raises or warns inside the door
            for part in parts:
                for records in self._source.read(part):
                    if len(records) > MOST_ROWS:  # sums of 30-bit products would no longer be exact in float64
                        raise InputError(f"source: a chunk has more than {MOST_ROWS} rows; yield smaller ones.")
                    total += query.of(records)
        return total


def one_blas_thread() -> AbstractContextManager[Any]:
    """One BLAS thread for each of ours, in a ``with`` block."""
    return cast(AbstractContextManager[Any], _controller().limit(limits=1, user_api="blas"))


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


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
