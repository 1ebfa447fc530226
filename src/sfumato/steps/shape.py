"""Rough shape of the records: a radius, then clipped moments, then the whitening map."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.statistics.histograms import NormHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.noisy_histograms import kept_share, likely_counts, quantile
from sfumato.steps.symmetric import noise_edge, sparse_correlations, upper_to_full
from sfumato.typing import FloatArray

RADIUS_LEVEL = 0.5
VISIBLE = 1.5
"""Largest edge of the noise, beside the mean variance, at which correlations are told from noise: beyond it the
variances themselves, in units of which they are, are noise."""
LEAST_LEFT = 0.3
"""Least part of the noise that is believed to be left among correlations."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A whitening, and how wrong it may be: ``q_i' z`` and ``q_j' z`` have a covariance that is off by a variance of
    ``doubts_i doubts_j``, for the columns q of `axes` (p, p), the axes of the rough covariance."""

    whitening: Whitening
    axes: FloatArray
    doubts: FloatArray


@dataclass(frozen=True, slots=True)
class RoughShape:
    """The step that finds a whitening: a radius, then moments of records clipped there; z is kept up to
    ``cap sqrt(p)``. Where it is `sparse`, correlations that are noise are left out."""

    radius_share: float
    shape_share: float
    cap: float = 1.0
    sparse: bool = False

    @property
    def lines(self) -> tuple[Line, ...]:
        """Lengths of records, then their moments."""
        return (
            Line("radius", "typical length of a record", self.radius_share, "sqrt(2) / 1", asks=NormHistogram),
            Line("shape", "centre and rough covariance", self.shape_share, "1.48 r^2 / 1.04 r^2", asks=Moments),
        )

    def run(self, grid: Grid, n: float) -> Asking[Whitening]:
        """The whitening alone."""
        return (yield from self.measure(grid, n)).whitening

    def measure(self, grid: Grid, n: float) -> Asking[Shape]:
        """Whitening from moments of records clipped to their median length.

        Clipping shrinks the second moment; the released lengths say by how much on average, and the map is scaled
        back so that ``E |z|^2`` is about p. Eigenvalues below the known edge of the noise are raised to it: beyond
        it there is nothing to see, and dividing by noise would blow records up.
        """
        lengths = NormHistogram(grid)
        counts = likely_counts((yield from ask(lengths, "radius")), n)
        radius = quantile(counts, lengths.radii, RADIUS_LEVEL)
        released = yield from ask(Moments(grid, radius), "shape")
        p = grid.n_features
        mean = np.clip(released.value[:p] / n, -1.0, 1.0)
        covariance = upper_to_full(released.value[p:] / n, p) - np.outer(mean, mean)
        noise = float(released.noise_std[p]) / n
        if self.sparse and noise_edge(noise, p) < VISIBLE * float(covariance.trace()) / p:
            covariance, left = sparse_correlations(covariance, noise)
            noise *= max(left, LEAST_LEFT)
        variances, axes = np.linalg.eigh(covariance)
        variances = np.maximum(variances, noise_edge(noise, p))
        matrix = (axes / np.sqrt(variances)) @ axes.T * np.sqrt(kept_share(counts, lengths.radii, radius))
        whitening = Whitening(grid, matrix, mean, self.cap * float(np.sqrt(p)))
        return Shape(whitening, axes, noise / np.sqrt(2.0) / variances)
