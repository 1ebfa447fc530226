"""Slices of the response from private quantiles: for small tables, where a histogram drowns in its own noise."""

import numpy as np

from sfumato.iterate.ranks import Ranks, find_ranks, plan_ranks
from sfumato.privacy.asking import Asking, ask, pick
from sfumato.privacy.plan import Line
from sfumato.records import Response
from sfumato.release import Release
from sfumato.statistics.histograms import OCTAVES, Bins, ResponseHistogram
from sfumato.statistics.quantiles import QuantileScores
from sfumato.typing import FloatArray, IntArray

SLICES = 8
PER_OCTAVE = 4
LINEAR = 128
COUNTS = 0.2
"""Part of the share that pays for the sizes of the slices."""
_ENDS = ((1, "lower end of the response"), (15, "upper end of the response"))  # sixteenths


def plan_quantiles(response: Response, share: float) -> tuple[Line, ...]:
    """The lines `find_quantiles` will use."""
    if response.categories is not None:
        return plan_ranks(response, share)
    each = share * (1.0 - COUNTS) / (SLICES + 1)
    levels = [(f"end {level}", purpose) for level, purpose in _ENDS]
    levels += [(f"quantile {level}", f"{level}/{SLICES} quantile of the response") for level in range(1, SLICES)]
    cuts = tuple(Line(name, purpose, each, "1 / 1", "selection") for name, purpose in levels)
    return (*cuts, Line("slices", "sizes of the slices", share * COUNTS, "sqrt(2) / 1"))


def find_quantiles(response: Response) -> Asking[Ranks]:
    """Slices of about equal size, each edge a private selection; the classes themselves if y is categorical.

    The error of a selected quantile is a few times 2 / epsilon *records*, whatever the scale and the tails of y and
    however many cut points there are. First the ends, among signed powers of 2**(1/4); then the quantiles, among
    these and equally spaced points between the ends, so that both a y of many magnitudes and one far from zero are
    cut finely.
    """
    if response.categories is not None:
        return (yield from find_ranks(response))
    coarse = signed_powers()
    ends = []
    for level, _ in _ENDS:
        ends.append((yield from _cut(coarse, f"end {level}", level, 16)))
    low, high = sorted(ends)
    fine = np.union1d(coarse[(coarse >= low) & (coarse <= high)], np.linspace(low, high, LINEAR))
    cuts = []
    for level in range(1, SLICES):
        cuts.append((yield from _cut(fine, f"quantile {level}", level, SLICES)))
    edges, repeats = np.unique(cuts, return_counts=True)
    bins = Bins(edges)
    counts = yield from ask(ResponseHistogram(bins), "slices")
    return Ranks(bins, _shares(counts, repeats), float(counts.value.sum()))


def signed_powers() -> FloatArray:
    """``+-2**(k/4)`` between 2**-40 and 2**40, and zero."""
    powers = 2.0 ** (np.arange(-OCTAVES * PER_OCTAVE, OCTAVES * PER_OCTAVE + 1) / PER_OCTAVE)
    return np.concatenate([-powers[::-1], [0.0], powers])


def _shares(counts: Release, repeats: IntArray) -> FloatArray:
    """Probabilities of the slices: as the quantiles have it, unless the counts clearly say otherwise.

    Cuts on the same edge mean that y is often equal to it, and such y lie in the slice that the edge begins.
    """
    wanted = np.concatenate([[1], repeats]) / SLICES
    total = max(float(counts.value.sum()), 1.0)
    released = np.maximum(counts.value, 0.0)
    differs = np.abs(counts.value - wanted * total) > 3.0 * counts.noise_std
    shares = np.where(differs, released / total, wanted)
    whole = float(shares.sum())
    return np.asarray(shares / whole if whole > 0 else wanted)


def _cut(edges: FloatArray, name: str, level: int, of_levels: int) -> Asking[float]:
    return float(edges[int((yield from pick(QuantileScores(Bins(edges), level, of_levels), name))[0])])
