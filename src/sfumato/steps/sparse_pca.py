"""Which few of many features vary most, and principal directions that rest on them alone."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.privacy.asking import Asking, ask, pick
from sfumato.privacy.plan import Line
from sfumato.statistics.histograms import NormHistogram
from sfumato.statistics.moments import SquareSums
from sfumato.steps.noisy_histograms import likely_counts, quantile
from sfumato.steps.pca import Principal
from sfumato.typing import FloatArray, IntArray

REACH = 4.0
"""Features are clipped at this many times the typical size of an entry: one that varies more is far ahead anyway."""


@dataclass(frozen=True, slots=True)
class Loadings:
    """Principal directions as columns (len(support), k) on the features of `support`.

    `found` is about the `picked` features; `variance` is that of all features, roughly: the squared median length.
    """

    support: IntArray
    vectors: FloatArray
    picked: IntArray
    found: Principal
    variance: float


@dataclass(frozen=True, slots=True)
class VariancePicks:
    """The step that picks the features that vary most (as Johnstone and Lu 2009)."""

    picks: int
    scale_share: float
    pick_share: float

    @property
    def lines(self) -> tuple[Line, ...]:
        """The typical length of a record, then the picks."""
        return (
            Line("scale", "typical length of a record", self.scale_share, "sqrt(2) / 1", asks=NormHistogram),
            Line(
                "picks",
                "features that vary most",
                self.pick_share,
                "c^2 / 0.5 c^2",
                "selection",
                self.picks,
                asks=SquareSums,
            ),
        )

    def run(self, grid: Grid) -> Asking[tuple[IntArray, float]]:
        """Features with the largest sums of squares, best first, and the typical length."""
        lengths = NormHistogram(grid)
        counts = yield from ask(lengths, "scale")
        length = quantile(likely_counts(counts, max(float(counts.value.sum()), 1.0)), lengths.radii, 0.5)
        return (yield from pick(SquareSums(grid, typical_clip(grid, length)), "picks")), length


def typical_clip(grid: Grid, length: float) -> float:
    """Where entries are clipped, in half widths, if a typical record is that long."""
    return float(min(1.0, REACH * length / np.sqrt(grid.n_features)))


def some(grid: Grid, columns: IntArray) -> Grid:
    """The grid of some features."""
    return Grid(grid.centre[columns], grid.half_width[columns])
