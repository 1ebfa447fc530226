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
from sfumato.steps.symmetric import inverse_root, noise_edge, upper_to_full

RADIUS_LEVEL = 0.5


@dataclass(frozen=True, slots=True)
class RoughShape:
    """The step that finds a whitening: a radius, then moments of records clipped there; z is kept up to
    ``cap sqrt(p)``."""

    radius_share: float
    shape_share: float
    cap: float = 1.0

    @property
    def lines(self) -> tuple[Line, ...]:
        """Lengths of records, then their moments."""
        return (
            Line("radius", "typical length of a record", self.radius_share, "sqrt(2) / 1", asks=NormHistogram),
            Line("shape", "centre and rough covariance", self.shape_share, "1.48 r^2 / 1.04 r^2", asks=Moments),
        )

    def run(self, grid: Grid, n: float) -> Asking[Whitening]:
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
        floor = noise_edge(float(released.noise_std[p]) / n, p)
        matrix = inverse_root(covariance, floor) * np.sqrt(kept_share(counts, lengths.radii, radius))
        return Whitening(grid, matrix, mean, self.cap * float(np.sqrt(p)))
