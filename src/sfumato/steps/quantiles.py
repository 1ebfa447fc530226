"""Slices of the response from private quantiles: for small tables, where a histogram drowns in its own noise."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Bounds
from sfumato.privacy.asking import Asking, ask, pick
from sfumato.privacy.plan import Line
from sfumato.records import Response
from sfumato.release import Release
from sfumato.statistics.histograms import OCTAVES, Bins, ResponseHistogram
from sfumato.statistics.parts import OfColumn
from sfumato.statistics.scores import QuantileScores
from sfumato.steps.ranks import Ranking, Ranks
from sfumato.typing import FloatArray, IntArray

SLICES = 8
PER_OCTAVE = 4
LINEAR = 128
COUNTS = 0.2
"""Part of the share that pays for the sizes of the slices."""
_ENDS = ((1, "lower end of the response"), (15, "upper end of the response"))  # sixteenths


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The step that cuts the response into slices of about equal size, at a share of the budget."""

    response: Response
    share: float = 1.0

    @property
    def classes(self) -> Ranking:
        """What is done instead where the response has classes."""
        return Ranking(self.response, self.share)

    @property
    def lines(self) -> tuple[Line, ...]:
        """A selection for each end and each cut, and the sizes of the slices."""
        if self.response.categories is not None:
            return self.classes.lines
        each = self.share * (1.0 - COUNTS) / (SLICES + 1)
        levels = [(f"end {level}", purpose) for level, purpose in _ENDS]
        levels += [(f"quantile {level}", f"{level}/{SLICES} quantile of the response") for level in range(1, SLICES)]
        cuts = tuple(Line(name, purpose, each, "1 / 1", "selection", asks=QuantileScores) for name, purpose in levels)
        sizes = Line("slices", "sizes of the slices", self.share * COUNTS, "sqrt(2) / 1", asks=ResponseHistogram)
        return (*cuts, sizes)

    def run(self) -> Asking[Ranks]:
        """Slices of about equal size, each edge a private selection; the classes themselves if y is categorical.

        The error of a selected quantile is a few times 2 / epsilon *records*, whatever the scale and the tails of y and
        however many cut points there are. First the ends, among signed powers of 2**(1/4); then the quantiles, among
        these and equally spaced points between the ends, so that both a y of many magnitudes and one far from zero are
        cut finely.
        """
        if self.response.categories is not None:
            return (yield from self.classes.run())
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


FINE = 64
WIDTH = 4.0
"""Half width of the bounds found, in standard deviations."""
_SD = 1.4826
"""Standard deviations per median distance from the median, of a normal distribution."""
_ROUNDS = ("rough", "fine")


@dataclass(frozen=True, slots=True)
class Spans:
    """The step that finds bounds of a few selected features: works for tables too small for histograms."""

    features: int
    share: float

    @property
    def lines(self) -> tuple[Line, ...]:
        """Four selections for each feature that may be kept."""
        whats = [(time, what, j) for j in range(self.features) for time in _ROUNDS for what in ("median", "spread")]
        each = self.share / len(whats)
        return tuple(
            Line(
                f"{time} {what} {j}", f"{time} {what} of a selected feature", each, "1 / 1", "selection", asks=OfColumn
            )
            for time, what, j in whats
        )

    def run(self, columns: IntArray) -> Asking[Bounds]:
        """Bounds ``median +- 4 sd`` of each column, sd from the median distance to the median.

        Every cut point beyond the data is half the records away from a median, so that hundreds of them do not tempt
        the selection; an outer quantile would lose to them in a small table. Roughly among signed powers of 2**(1/4)
        first, then among equal steps around what was found. Lines of features that were not kept stay unused.
        """
        spans = []
        for j, column in enumerate(columns):
            spans.append((yield from _span(int(column), j)))
        found = np.array(spans)
        return Bounds(found[:, 0] - WIDTH * found[:, 1], found[:, 0] + WIDTH * found[:, 1])


def _span(column: int, j: int) -> Asking[tuple[float, float]]:
    """Median and standard deviation of a feature."""
    powers = signed_powers()
    edges, distances = powers, powers[powers > 0]
    for time in _ROUNDS:
        centre = yield from _median(column, edges, f"{time} median {j}", None)
        sd = _SD * (yield from _median(column, distances, f"{time} spread {j}", centre))
        sd = max(sd, abs(centre) * 2.0**-30)  # floats around a huge centre must still tell both ends apart
        edges = np.linspace(centre - WIDTH * sd, centre + WIDTH * sd, FINE)
        distances = np.asarray(sd * np.arange(1.0, FINE + 1.0) / (FINE / 2.0))
    return centre, sd


def _median(column: int, edges: FloatArray, name: str, centre: float | None) -> Asking[float]:
    query = OfColumn(QuantileScores(Bins(edges), 1, 2), np.array([column]), centre)
    return float(edges[int((yield from pick(query, name))[0])])
