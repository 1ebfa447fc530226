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
from sfumato.steps.symmetric import noise_edge, sparse_correlations, split_moments
from sfumato.typing import FloatArray

FEWEST_WHOLE, MOST_WHOLE = 0.5, 0.9
"""Part of the records that are left whole where the shape is measured: half of them, or as many as noise allows."""
CLEAR = 0.06
"""Edge of the noise of the shape, beside the mean variance, up to which more records are left whole."""
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
        """Whitening from moments of records clipped to their median length, or to more where there is little noise.

        Clipping shrinks the second moment; the released lengths say by how much on average, and the map is scaled
        back so that ``E |z|^2`` is about p. Eigenvalues below the known edge of the noise are raised to it: beyond
        it there is nothing to see, and dividing by noise would blow records up.
        """
        p, lengths = grid.n_features, NormHistogram(grid)
        seen = yield from ask(lengths, "radius")
        counts = likely_counts(seen, n)
        # Costs add up as squares of the noise: that of the shape of records of length one follows from the shares.
        noise = float(seen.noise_std.max()) * float(np.sqrt(self.radius_share / self.shape_share)) / n
        radius = clip_length(counts, lengths.radii, noise_edge(noise, p), p)
        released = yield from ask(Moments(grid, radius), "shape")
        (mean,), second = split_moments(released.value / n)
        mean = np.clip(mean, -1.0, 1.0)
        covariance = second - np.outer(mean, mean)
        noise = float(released.noise_std[p]) / n
        if self.sparse and noise_edge(noise, p) < VISIBLE * float(covariance.trace()) / p:
            covariance, left = sparse_correlations(covariance, noise)
            noise *= max(left, LEAST_LEFT)
        variances, axes = np.linalg.eigh(covariance)
        variances = np.maximum(variances, noise_edge(noise, p))
        matrix = (axes / np.sqrt(variances)) @ axes.T * np.sqrt(kept_share(counts, lengths.radii, radius))
        whitening = Whitening(grid, matrix, mean, self.cap * float(np.sqrt(p)))
        return Shape(whitening, axes, noise / np.sqrt(2.0) / variances)


def clip_length(counts: FloatArray, radii: FloatArray, edge: float, n_features: int) -> float:
    """Length to which records are clipped before their shape is measured: that of half of them, or up to nine in ten.

    Noise grows with its square, and the shape of clipped records is bent: where features add up to a constant, as
    indicators of all categories do, long records seem to break it, and the more is made of it the less noise there is.
    So the clip is as wide as the `edge` of the noise, of records of length one, leaves `CLEAR`.

    >>> counts, radii = np.array([0.0, 50.0, 30.0, 20.0]), np.array([0.5, 1.0, 1.5, 4.0])
    >>> [round(clip_length(counts, radii, edge, 2), 2) for edge in (1.0, 0.01, 1e-6)]
    [1.0, 1.73, 4.0]
    """
    least, most = (quantile(counts, radii, level) for level in (FEWEST_WHOLE, MOST_WHOLE))
    variance = float(counts @ np.minimum(radii, least) ** 2) / max(float(counts.sum()), 1.0) / n_features
    return float(np.clip(np.sqrt(CLEAR * variance / max(edge, 1e-300)), least, most))
