"""Bounds bought from the budget: location and scale of every feature from three rounds of histograms."""

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds import Bounds
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.solve.counts import standing_out
from sfumato.statistics.histograms import OCTAVES, LinearHistograms, OctaveHistograms
from sfumato.typing import FloatArray

WIDTH = 4.0
"""Half width of the bounds found, in standard deviations."""


def plan_location(share: float) -> tuple[Line, ...]:
    """The lines `find_bounds` will use."""
    levels = (("magnitude", "order of magnitude of each feature", 0.3), ("span", "span of each feature", 0.3))
    last = ("spread", "location and spread of each feature", 0.4)
    return tuple(Line(name, purpose, share * part, "sqrt(2 p) / sqrt(p)") for name, purpose, part in (*levels, last))


def find_bounds(n_features: int) -> Asking[Bounds]:
    """Bounds ``mean +- 4 sd`` of each feature, from noisy histograms alone.

    Signed octaves first, then 32 equal bins on the span of octaves that stand out of the noise, then 16 on the
    refined span. Each level has a public fallback for a feature where nothing stands out, so that what the data
    look like never decides whether an error is raised.
    """
    counts = yield from ask(OctaveHistograms(n_features), "magnitude")
    lower, upper = _octave_span(counts)
    for bins, name in ((32, "span"), (16, "spread")):
        counts = yield from ask(LinearHistograms(lower, upper, bins), name)
        edges = lower[:, None] + (upper - lower)[:, None] * np.arange(bins + 1) / bins
        if name == "span":
            lower, upper = _linear_span(counts, edges)
    mean, sd = _mean_and_sd(counts, edges)
    return Bounds(mean - WIDTH * sd, mean + WIDTH * sd)


def _octave_span(counts: Release) -> tuple[FloatArray, FloatArray]:
    heavy = standing_out(counts, _reach(counts)) > 0
    heavy[~heavy.any(axis=1)] = True
    first, last = heavy.argmax(axis=1), heavy.shape[1] - 1 - heavy[:, ::-1].argmax(axis=1)
    centre = 2 * OCTAVES + 1
    return _magnitude(first - centre, "low"), _magnitude(last - centre, "high")


def _reach(counts: Release) -> float:
    """What the largest of that many noises reaches, and one more: a bin of pure noise would stretch a span."""
    return float(np.sqrt(2.0 * np.log(counts.value.size))) + 1.0


def _magnitude(octave: np.ndarray[tuple[int], np.dtype[np.int64]], end: str) -> FloatArray:
    """The end of signed octave k farther down ("low") or up ("high")."""
    size = np.abs(octave).astype(float)
    outer, inner = 2.0 ** (size - OCTAVES), np.where(size > 0, 2.0 ** (size - OCTAVES - 1), -(2.0**-OCTAVES))
    if end == "high":
        return np.where(octave >= 0, outer, -inner)
    return np.where(octave > 0, inner, -outer)


def _linear_span(counts: Release, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One bin more on each side than the bins that stand out, but at least four bins."""
    inner = Release(counts.value[:, 1:-1], counts.noise_std[:, 1:-1])
    heavy = standing_out(inner, _reach(inner)) > 0
    heavy[_is_spike(inner, heavy)] = True
    bins = heavy.shape[1]
    first = np.maximum(heavy.argmax(axis=1) - 1, 0)
    last = np.minimum(bins - heavy[:, ::-1].argmax(axis=1) + 1, bins)
    rows = np.arange(len(edges))
    return edges[rows, first], edges[rows, last]


def _is_spike(counts: Release, heavy: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Features of which the bins that stand out hold less than 0.7 of all records; or nothing.

    Many equal values stand out while the others, more of them but spread, do not: the span must not shrink to the
    spike. Wide bounds cost next to nothing, since lengths are found privately later; narrow ones clip.
    """
    seen = np.where(heavy, counts.value, 0.0).sum(axis=1)
    return np.asarray(seen <= 0.7 * np.maximum(counts.value.sum(axis=1), 0.0))


def _mean_and_sd(counts: Release, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Moments of the binned distribution, by the bins that stand out; never narrower than a bin."""
    width = edges[:, 1] - edges[:, 0]
    middle = edges[:, :-1] + width[:, None] / 2
    inner = Release(counts.value[:, 1:-1], counts.noise_std[:, 1:-1])
    heavy = standing_out(inner)
    heavy[_is_spike(inner, heavy > 0)] = 1.0
    weight = heavy / heavy.sum(axis=1, keepdims=True)
    mean = (weight * middle).sum(axis=1)
    variance = (weight * (middle - mean[:, None]) ** 2).sum(axis=1)
    return mean, np.sqrt(np.maximum(variance, width**2 / 12))
