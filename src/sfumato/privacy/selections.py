"""Exact total of Gaussian releases and private selections, composed adaptively.

A selection is much weaker than its epsilon suggests: its privacy loss stays within *some* interval of length
epsilon, not within (-epsilon, epsilon). Let ``V(g)`` be the largest hockey-stick divergence ``sup_S P(S) - g Q(S)``
that an adversary can still reach; without releases it is ``max(1 - g, 0)``. V is convex in g, being a supremum of
lines, so among all losses within ``[t - epsilon, t]`` the worst takes the two ends only (the expectation of a convex
function of the likelihood ratio, whose mean is one), and one more selection before the others gives

    V'(g) = max over t in [0, epsilon] of  a V(g e^-t) + (1 - a) V(g e^(epsilon - t)),
    a = (e^epsilon - e^t) / (e^epsilon - 1),

t chosen anew after every outcome: adaptive composition, without loss (Dong, Durfee and Rogers 2020 give the
non-adaptive case). V is kept at the points ``g = e^(i h)`` and joined by chords, which lie above a convex function,
and the maximum over t is taken in closed form between the points: every error is to the safe side. At the end V is
a sum of hinges ``c_i max(g_i - g, 0)``, and a hinge composed with Gaussian noise is the Gaussian delta. That puts
all Gaussian releases before all selections, the order in which the adversary knows most.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from sfumato.typing import FloatArray

_FEWEST, _MOST, _IN_ALL = 4, 24, 160
"""Grid points per selection epsilon, fewer if there are many selections: ten leave a part in 1,000."""
_FINER, _WORK, _WORTH = 8, 700_000, 0.08
"""Unequal epsilons are rounded up to whole cells: a grid up to so many times finer is taken where it rounds less, as
far as all tables together have no more cells than this (less than a tenth of a second), which must save so much."""
_CELLS = 300_000
"""Cells of a table that one selection takes: beyond it (picks of very unequal epsilons) seconds would go by."""
_ROUNDING = 1e-14  # of the sums of some hundred terms below one


def selection_epsilon(mu: float, picks: Sequence[tuple[float, int]], delta: float, most: float) -> float:
    """Epsilon of a mu-GDP release and of selections, ``(epsilon, picks)`` each, at `delta`; never more than `most`.

    >>> from sfumato.privacy.accounting import zcdp_epsilon
    >>> zcdp = zcdp_epsilon(0.2**2 / 2 + 6 * 0.15**2 / 8, 1e-4)
    >>> round(zcdp, 3), round(selection_epsilon(0.2, [(0.15, 6)], 1e-4, zcdp), 3)
    (0.947, 0.859)
    """
    used = tuple((epsilon, count) for epsilon, count in picks if epsilon > 0 and count > 0)
    least = min(epsilon for epsilon, _ in used)
    ratios = tuple((epsilon / least, count) for epsilon, count in used)
    points = _points(ratios)
    step, cells = least / points, _cells(ratios, points)
    reach = sum(width * count for width, count in cells)
    widest = max(width for width, _ in cells)
    if reach > 5_000 or reach * widest > _CELLS or step * reach > 100.0:
        return most  # also sound, only less sharp
    places, weights = _hinges(step, cells)
    low, high = 0.0, most
    if _delta(mu, places, weights, high) > delta:
        return most
    while high - low > 1e-13 * most:
        middle = (low + high) / 2.0
        low, high = (low, middle) if _delta(mu, places, weights, middle) <= delta else (middle, high)
    return high


def _points(ratios: tuple[tuple[float, int], ...]) -> int:
    """Grid points per smallest epsilon; `ratios` are the epsilons over the smallest, with their picks.

    Of the grids that are not too fine to be quick the one on which the rounded epsilons have the least sum of squares,
    which the total grows with; a finer one must be worth its time. Where all are equal nothing is rounded.
    """
    counts: Counter[float] = Counter()
    for ratio, count in ratios:
        counts[round(ratio, 9)] += count
    picks = counts.total()
    usual = min(max(_IN_ALL // picks, _FEWEST), _MOST)
    points = np.arange(usual, _FINER * usual + 1 if len(counts) > 1 else usual + 1)
    widths = np.ceil(np.outer(points, list(counts)) * (1.0 - 1e-9))
    weights = np.array(list(counts.values()))
    work = picks * (widths @ weights) * widths.max(axis=1) / _WORK
    squares = (widths / points[:, None]) ** 2 @ weights * (1.0 + _WORTH * work)
    squares[1:][work[1:] > 1.0] = np.inf
    return int(points[squares.argmin()])


def _cells(ratios: tuple[tuple[float, int], ...], points: int) -> tuple[tuple[int, int], ...]:
    """Widths in grid steps, rounded up, with how many selections have them."""
    return tuple((math.ceil(ratio * points * (1.0 - 1e-12)), count) for ratio, count in ratios)


def _delta(mu: float, places: FloatArray, weights: FloatArray, epsilon: float) -> float:
    """``E V(e^(epsilon - L))`` over the Gaussian loss L, hinge by hinge."""
    x = epsilon - places
    if mu == 0:
        each = -np.expm1(np.minimum(x, 0.0))
    else:  # e^x times a tail, as one exponential: at large epsilons the first would overflow and the second vanish
        second = np.exp(x + log_ndtr(-x / mu - mu / 2.0))
        each = ndtr(-x / mu + mu / 2.0) - second * (1.0 - 2.0**-50 * np.abs(x))  # rounding of x, to the safe side
    return float(weights @ np.maximum(each, 0.0)) + _ROUNDING


@lru_cache(maxsize=256)
def _hinges(step: float, cells: tuple[tuple[int, int], ...]) -> tuple[FloatArray, FloatArray]:
    """Where the hinges of V stand (log g) and what they weigh (``c_i g_i``)."""
    reach = sum(width * count for width, count in cells)
    places: FloatArray = step * np.arange(-reach, reach + 1, dtype=np.float64)
    g: FloatArray = np.exp(places)
    value, near = np.maximum(1.0 - g, 0.0), 0
    for width, count in cells:
        for _ in range(count):
            near += width  # further out V is still the hinge it was: no loss reaches the bend
            some = slice(reach - near, reach + near + 1)
            value[some] = _one_more(value[some], g[some], width, step)
    slopes = np.concatenate([[-1.0], np.diff(value) / np.diff(g), [0.0]])
    return places, np.asarray(np.maximum(np.diff(slopes), 0.0) * g)


def _one_more(value: FloatArray, g: FloatArray, width: int, step: float) -> FloatArray:
    """V before one more selection of epsilon ``width * step``."""
    n, growth = len(g), math.exp(width * step)
    below, above = g[0] * np.exp(-step * np.arange(width, 0, -1)), g[-1] * np.exp(step * np.arange(1, width + 1))
    points = np.concatenate([below, g, above])
    values = np.concatenate([1.0 - below, value, np.zeros(width)])
    slope = np.diff(values) / np.diff(points)
    start = values[:-1] - slope * points[:-1]  # each chord is start + slope * g
    segment = np.arange(n)[:, None] + np.arange(width)  # the chord that g e^-t meets, t from epsilon down to 0
    far = np.minimum(segment + width, len(slope) - 1)
    bend = np.maximum(slope[far] - slope[segment], 1e-300)
    best = np.sqrt(np.maximum(g[:, None] * (start[segment] - start[far]), 0.0) / (growth * bend))
    u = np.clip(best, points[segment], points[segment + 1])
    up = (growth * u - g[:, None]) / ((growth - 1.0) * u)
    reached = up * (start[segment] + slope[segment] * u) + (1.0 - up) * (start[far] + slope[far] * growth * u)
    return np.asarray(np.maximum(reached.max(axis=1), value))
