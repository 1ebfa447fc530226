"""Reading noisy histograms."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sfumato.release import Release
from sfumato.sums import upper_pairs
from sfumato.typing import FloatArray, IntArray

SEEN = 5.5
"""Standard errors by which a count, the largest of hundreds, is surely not zero."""
HALF = 3.0
"""Standard errors by which a count is surely more than half of all."""
WINDOWS = (1, 2, 4, 8, 16)
"""Widths of windows, in bins."""
LEVEL = 0.75
"""Of a posterior: rather too wide than too narrow."""


class Estimate(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float


def quantile(counts: FloatArray, upper_edges: FloatArray, level: float) -> float:
    """Upper edge of the bin in which the `level` quantile falls; the last edge if no count is positive.

    >>> quantile(np.array([5.0, 3.0, -1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0]), 0.6)
    2.0
    """
    positive = np.maximum(counts, 0.0)
    reached = np.flatnonzero(np.cumsum(positive) >= level * positive.sum())
    index = int(reached[0]) if positive.sum() > 0 and len(reached) else len(upper_edges) - 1
    return float(upper_edges[index])


def standing_out(release: Release, factor: float = 3.0) -> FloatArray:
    """Counts that exceed `factor` times their known noise; the others are set to zero."""
    return np.where(release.value > factor * release.noise_std, release.value, 0.0)


def likely_counts(counts: Release, n: float | None) -> FloatArray:
    """The counts of n records (None: of any number), with zeros for the bins that are all noise.

    Dozens of bins of noise would outweigh a few hundred records. Kept is the window in which they most likely are, and
    every bin that stands out by itself.

    >>> likely_counts(Release(np.array([9.0, 1.0, 52.0, 48.0, -3.0, 11.0]), np.full(6, 5.0)), 100.0)
    array([ 0.,  0., 52., 48.,  0.,  0.])
    """
    kept = standing_out(counts, 4.0) > 0
    first, end, _ = likeliest_window(counts, n)
    kept[first:end] = True
    return np.where(kept, np.maximum(counts.value, 0.0), 0.0)


def likeliest_window(counts: Release, n: float | None) -> tuple[int, int, float]:
    """First and end bin of the window in which n records, spread evenly, are most likely; and the log-likelihood.

    It is ``n sum / w - n^2 / 2 w`` in variances of the noise, less that of no records at all; where n is None it is
    the sum itself, the likeliest number.

    >>> likeliest_window(Release(np.array([9.0, 1.0, 52.0, 48.0, -3.0, 11.0]), np.full(6, 5.0)), 100.0)
    (2, 4, 100.0)
    """
    total = np.concatenate([[0.0], np.cumsum(counts.value)])
    first, end = upper_pairs(len(total), 1)
    held = total[end] - total[first]
    there = np.maximum(held, 0.0) if n is None else n
    variance = max(float(counts.noise_std.max()), 1e-9) ** 2
    likely = there * (held - there / 2.0) / ((end - first) * variance)
    best = int(likely.argmax())
    return int(first[best]), int(end[best]), float(likely[best])


def likeliest_stretch(edges: FloatArray, counts: Release, n: float | None) -> tuple[float, float, float]:
    """First and last edge of the window in which n records, spread evenly over its *length*, are most likely; and the
    log-likelihood, as that of `likeliest_window`. The open bins at both ends have no length.

    Of numbers on both sides of zero octaves see most in a few wide bins, and nothing in dozens of narrow ones between.

    >>> edges, counts = np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0]), np.array([3.0, 48.0, 20.0, 55.0, 22.0, 51.0, -4.0])
    >>> likeliest_stretch(edges, Release(counts, np.full(7, 5.0)), 200.0)[:2]
    (-4.0, 4.0)
    """
    lengths = np.concatenate([[0.0], np.diff(edges), [0.0]])
    # Summed from each first bin on: the differences of one long sum would lose what is narrow beside what is wide.
    length, held, squares = (
        np.cumsum(np.triu(np.broadcast_to(each, (len(lengths), len(lengths)))), axis=1)
        for each in (lengths, lengths * counts.value, lengths**2)
    )
    whole = np.where(length > 0.0, length, 1.0)
    mean, uneven = held / whole, np.where(length > 0.0, squares / whole**2, 1.0)
    there = np.maximum(mean / uneven, 0.0) if n is None else n
    variance = max(float(counts.noise_std.max()), 1e-9) ** 2
    likely = np.where(length > 0.0, there * (mean - there * uneven / 2.0) / variance, -np.inf)
    first, last = divmod(int(likely.argmax()), len(lengths))
    return float(edges[max(first - 1, 0)]), float(edges[min(last, len(edges) - 1)]), float(likely[first, last])


def nearest_shares(counts: FloatArray, n: float) -> FloatArray:
    """Probabilities nearest to noisy counts of n records: their projection on those that are not negative and add up.

    Cutting negative counts alone would add half of the noise to the total; here it is taken off the others.

    >>> nearest_shares(np.array([6.0, 5.0, -1.0]), 10.0)
    array([0.55, 0.45, 0.  ])
    """
    if n <= 0.0:
        return np.full(len(counts), 1.0 / len(counts))
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - n) / np.arange(1, len(counts) + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    shares = np.maximum(counts - level, 0.0)
    return np.asarray(shares / shares.sum())


def kept_share(lengths: FloatArray, radii: FloatArray, radius: float) -> float:
    """Share of the second moment that clipping at `radius` leaves, from `likely_counts` of lengths.

    >>> kept_share(np.array([1.0, 1.0]), np.array([1.0, 2.0]), 1.0)
    0.4
    """
    whole = float(lengths @ radii**2)
    return float(lengths @ np.minimum(radii, radius) ** 2) / whole if whole > 0 else 1.0


def window_sums(counts: FloatArray, width: int) -> FloatArray:
    """Sums over all windows of that many neighbouring bins, along the last axis.

    >>> window_sums(np.array([1.0, 2.0, 3.0, 4.0]), 2)
    array([3., 5., 7.])
    """
    before = np.zeros((*counts.shape[:-1], 1))
    total = np.cumsum(np.concatenate([before, counts], axis=-1), axis=-1)
    return np.asarray(total[..., width:] - total[..., :-width])


def narrowest_half(counts: FloatArray, noise: float, n: float, widths: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """First and end bin, by row, of the narrowest window that surely holds half of n; end is 0 where none does.

    >>> narrowest_half(np.array([[0.0, 30.0, 40.0, 30.0]]), 1.0, 100.0, (1, 2))
    (array([1]), array([3]))
    """
    first, end = np.zeros(len(counts), dtype=np.int64), np.zeros(len(counts), dtype=np.int64)
    for width in widths:
        held = window_sums(counts, width)
        best = held.argmax(axis=1)
        found = (end == 0) & (held.max(axis=1) - HALF * noise * np.sqrt(width) > n / 2.0)
        first[found], end[found] = best[found], best[found] + width
    return first, end


def seen_bins(counts: FloatArray, noise: float, factor: FloatArray | float = SEEN) -> NDArray[np.bool_]:
    """Bins of windows whose counts are surely not zero; narrow windows first, and what they hold is then left out.

    Bins are along the last axis; `factor` may differ from histogram to histogram.

    >>> seen_bins(np.array([50.0, 0.0, 4.0, 4.0, 0.0, 0.0]), 1.0)
    array([ True, False,  True,  True, False, False])
    """
    rest, seen = counts.copy(), np.zeros(counts.shape, dtype=bool)
    needed = np.asarray(factor * noise)[..., None]
    for width in WINDOWS[:3]:
        found = window_sums(rest, width) > needed * np.sqrt(width)
        for first in range(width):
            seen[..., first : first + found.shape[-1]] |= found
        rest[seen] = 0.0
    return seen


def likely_end(
    counts: FloatArray, noise: float, mass: Estimate, usual: int, trust: float = 0.5, prior: FloatArray | None = None
) -> int:
    """Number of bins up to where records end that stand out nowhere, on the high side.

    The posterior over all windows, the records spread evenly over one of them; the part `trust` of the prior is on the
    single bin before `usual`, the rest on windows as the `prior` of their last bins has it, all alike if it is not
    given. How many there are is known within an error: what a window holds tells more of it.

    >>> counts = np.array([0.9, -0.4, 0.2, 4.2, 0.1, -1.1])
    >>> [likely_end(counts, 1.0, Estimate(3.8, error), 2, 0.9) for error in (0.1, 1.0)]
    [4, 4]
    >>> likely_end(counts, 1.0, Estimate(3.8, 0.1), 2, 0.9, np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
    2
    """
    prior = np.ones(len(counts)) if prior is None else prior
    logs = {w: _evidence(window_sums(counts, w), w * noise**2, mass) for w in WINDOWS if w <= len(counts)}
    highest = max(float(log.max()) for log in logs.values())
    posterior, whole = np.zeros(len(counts) + 1), 0.0
    for width, log in logs.items():
        last = prior[width - 1 :] / width
        posterior[width:] += np.exp(log - highest) * last
        whole += float(last.sum())
    posterior[usual] += trust / (1.0 - trust) * whole * np.exp(logs[1][usual - 1] - highest)
    return int(np.searchsorted(np.cumsum(posterior), LEVEL * posterior.sum()))


def _evidence(held: FloatArray, variance: float, mass: Estimate) -> FloatArray:
    """Log-likelihood of what windows hold, less that of no records, over all numbers of records m that `mass` leaves
    likely: ``(m held - m^2 / 2) / variance``, where m is normal and positive.
    """
    known, told = mass.error**-2, 1.0 / variance
    precision = known + told
    at = (mass.value * known + held * told) / precision
    return np.asarray(
        (at**2 * precision - mass.value**2 * known - np.log(precision / known)) / 2.0
        + log_ndtr(at * np.sqrt(precision))
    )
