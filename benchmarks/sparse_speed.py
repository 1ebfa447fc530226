"""The sparse flagship at p = 10,000 and 100,000, n = 2,000, against one pass of sign scores, in CPU time and memory.

The pass is ``F.T @ np.sign(X)`` on the same table, one thread; both are the best of several runs in one process.
Memory is the largest resident size during the fit, above what the process held before it, over the size of X. Before
that is measured, pages that an earlier fit freed are given back, so that reusing them does not count as frugality.
"""

import ctypes
import os
import threading
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.speed import seconds
from benchmarks.study import write
from sfumato import Bounds, PrivateSparseSIR
from sfumato.simulate import xia

N, WIDTHS = 2000, (10_000, 100_000)


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def _peak(work) -> int:
    """Largest resident size while `work` runs, above that before it, sampled every millisecond."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before, largest, done = _resident(), [0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            largest[0] = max(largest[0], _resident())
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return largest[0] - before


def measured(p: int, replications: int) -> tuple[object, ...]:
    """Features, seconds of a pass and of a fit, their ratio, and memory as a ratio."""
    sample = xia("M1", n=N, p=p, high_dimensional=True, random_state=0)
    x, y = sample.x, sample.y
    contrasts = np.column_stack([np.sign(y - np.median(y)), np.sign(np.abs(y) - np.median(np.abs(y)))])

    def fit() -> None:
        PrivateSparseSIR(1.0, N**-1.1, 1, Bounds(-1.5, 1.5)).fit(x, y)

    with threadpool_limits(1):
        peak = _peak(fit) / x.nbytes
        pass_time = seconds(lambda: contrasts.T @ np.sign(x), replications, time.process_time)
        fit_time = seconds(fit, replications, time.process_time)
    return f"{p:,}", f"{pass_time:.3f}", f"{fit_time:.3f}", f"{fit_time / pass_time:.2f}", f"{peak:.2f}"


def main(replications: int = 5) -> None:
    """Time and memory, as ratios."""
    warnings.simplefilter("ignore")
    write(
        "sparse-speed",
        f"python -m benchmarks.sparse_speed {replications}",
        f"Sparse flagship with n = {N:,}: time and memory\n"
        f"CPU seconds, the best of {replications} runs, one core. The bars are 3 passes and 2 x X.",
        ("p", "one pass of sign scores", "fit", "fit over pass", "memory above X, over X"),
        [measured(p, replications) for p in WIDTHS],
    )


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
