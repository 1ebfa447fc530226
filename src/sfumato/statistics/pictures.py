"""The picture people want of a fit, as counts: direction against response."""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.statistics.histograms import Bins, Histogram
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray, IntArray

REACH = 3.0
"""The picture shows three standard deviations to each side; the outermost columns hold everything beyond."""


@dataclass(frozen=True, slots=True)
class ProjectionHistogram(Histogram):
    """Counts on a grid of (z . direction, group of y): each record is in exactly one cell, norm 1, diameter sqrt(2).

    The projection is a product of integers below 2**53, hence exact, and compared with fixed edges.
    """

    whitening: Whitening
    direction: FloatArray
    bins: Bins
    group_of: IntArray
    n_groups: int
    columns: int

    @property
    def edges(self) -> FloatArray:
        """Edges of the columns, in standard deviations of the projection."""
        return np.linspace(-REACH, REACH, self.columns + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.columns, self.n_groups)

    @property
    def describe(self) -> str:
        return f"histogram of first direction and response, {self.columns} x {self.n_groups} cells"

    def of(self, records: Records) -> IntArray:
        z = self.whitening.integers(records)[:, :-1]
        scale = 2.0 ** min(20, 36 - z.shape[1].bit_length())
        position = z @ np.rint(self.direction / np.linalg.norm(self.direction) * scale)
        inner = self.edges[1:-1] * (self.whitening.unit * scale)
        column = np.searchsorted(inner, position, side="right")
        cell = column * self.n_groups + self.group_of[self.bins.index(records)]
        return np.bincount(cell, minlength=self.columns * self.n_groups).reshape(self.shape)
