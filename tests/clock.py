"""How long something takes, on a machine that others use, too."""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

T = TypeVar("T")

UNHINDERED = 0.028
"""Processor seconds that `_yardstick` takes on the machine of the limits, when nothing disturbs it."""


def quickest(action: Callable[[int], T], enough: float) -> tuple[float, T]:
    """Processor time and result of the quickest of up to twelve tries, which are told their number.

    Threads of others share caches and cores, and the same core is at times half as fast: a single try may take twice as
    long as the code needs. So a piece of work that never changes is timed before and after each try, and the time is
    what the try would take on a machine that nothing disturbs. A faster machine is not held to less.
    """
    best, result = float("inf"), None
    for i in range(12):
        before, begun = _yardstick(), time.process_time()
        result = action(i)
        taken = time.process_time() - begun
        best = min(best, taken / max((before + _yardstick()) / 2.0 / UNHINDERED, 1.0))
        if best < enough:
            break
    return best, result


def _yardstick() -> float:
    """Processor time of small calls of numpy, such as fits are made of."""
    rng = np.random.default_rng(0)
    z, e = rng.normal(size=(31, 1_000)), rng.normal(size=(2, 1_000))
    square, begun = z @ z.T, time.process_time()
    for _ in range(300):
        np.linalg.eigh(square)
        np.clip(np.rint(e), -1.0, 1.0) @ z.T
        z.astype(np.int16).astype(np.float64)
    return time.process_time() - begun
