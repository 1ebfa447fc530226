"""Principal directions: rough moments first, then moments in the coordinates that tell the subspace apart.

Clipping records along their radius keeps the eigenvectors of an elliptical distribution, so the radius may be as
small as the median length. The rough covariance then says in which coordinates a second release of the same kind
blurs the leading subspace least (`revealing_map`): at p = 100 its noise there is half that of the first kind. Where
it does not show the subspace (`VISIBLE`) the second release repeats the first about the centre found, and both count.

Of many features the few that vary most are picked first (`VariancePicks`); directions then rest on them alone.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfumato.bounds import Grid
from sfumato.privacy.asking import Asking, ask, pick
from sfumato.privacy.plan import Line
from sfumato.statistics.histograms import NormHistogram
from sfumato.statistics.moments import Moments, SquareSums
from sfumato.statistics.whitening import Whitening
from sfumato.steps.covariance import CENTRE_WEIGHT, Measuring
from sfumato.steps.noisy_histograms import kept_share, likely_counts, quantile
from sfumato.steps.symmetric import noise_edge, split_moments
from sfumato.typing import FloatArray, IntArray

RADIUS_LEVEL = 0.5
VISIBLE = 4.0
"""Gaps of the rough covariance must be this many times the edge of its noise, or it chooses no coordinates: below that
a map made from it is expected to lose more than none, up to eight times (p = 100, 3,000 records, epsilon = 1)."""
SHARES = {"radius": 0.03, "rough": 0.15, "refined": 0.82}


@dataclass(frozen=True, slots=True)
class Principal:
    """Mean and covariance in half widths, with the noise of each pair of eigenvectors.

    Attributes
    ----------
    values, vectors : ndarray of shape (p,), (p, p)
        Eigenvalues, largest first, of the covariance before clipping; eigenvectors as columns.
    noise : ndarray of shape (p, p)
        Standard deviation of what the noise adds between each two eigenvectors, in the scale of `values`.
    edge : float
        What the largest eigenvalue of the noise alone would be.
    total : float
        Number of records, public or released.
    """

    mean: FloatArray
    values: FloatArray
    vectors: FloatArray
    noise: FloatArray
    edge: float
    total: float


@dataclass(frozen=True, slots=True)
class _Rough:
    mean: FloatArray
    covariance: FloatArray
    noise_std: float
    shrinkage: float
    fill: float


Method = Literal["refined", "one-shot"]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Number of records, public or released; median length; mean squared part of a record that clipping there keeps."""

    total: float
    radius: float
    kept: float


def measure_lengths(grid: Grid, n_records: int | None) -> Asking[Lengths]:
    """What the line "radius" buys; where it is private it also tells the number of records."""
    lengths = NormHistogram(grid)
    counts = yield from ask(lengths, "radius")
    n = float(n_records) if n_records is not None else max(float(counts.value.sum()), 10.0 * grid.n_features)
    likely = likely_counts(counts, n)
    radius = quantile(likely, lengths.radii, RADIUS_LEVEL)
    return Lengths(n, radius, kept_share(likely, lengths.radii, radius))


@dataclass(frozen=True, slots=True)
class Components:
    """The step that finds principal directions, at a share of the budget."""

    share: float
    method: Method = "refined"

    @property
    def refined(self) -> Measuring:
        """The second look at the covariance."""
        return Measuring("refined", "covariance across the leading subspace", self.share * SHARES["refined"])

    @property
    def lines(self) -> tuple[Line, ...]:
        """Lengths, a rough covariance and a refined one; one shot has all it would spend on both in the rough one."""
        one_shot = self.method == "one-shot"
        rough = self.share * (SHARES["rough"] + SHARES["refined"] * one_shot)
        lengths = Line("radius", "typical length of a record", self.share * SHARES["radius"], "sqrt(2) / 1")
        moments = Line("rough", "centre and rough covariance", rough, "1.48 r^2 / 1.04 r^2", asks=Moments)
        return (replace(lengths, asks=NormHistogram), moments, *(() if one_shot else self.refined.lines))

    def run(self, grid: Grid, n_records: int | None, k: int) -> Asking[Principal]:
        """Eigenvectors of the covariance; the number of records is read off the first release where it is private."""
        p, lengths = grid.n_features, (yield from measure_lengths(grid, n_records))
        n, radius, kept = lengths.total, lengths.radius, lengths.kept
        rough = yield from _rough(grid, n, radius, kept)
        if self.method == "one-shot":
            return _spectrum(rough.covariance, rough.noise_std, np.eye(p), rough.mean, rough.shrinkage, n)
        if not _stands_out(rough, k):
            return (yield from _again(grid, rough, n, self.refined))
        whitening = _revealing(grid, rough, k)
        refined = yield from self.refined.run(whitening, n)
        back = whitening.inverse
        mean = np.clip(rough.mean + back @ refined.mean, -1.0, 1.0)
        found = back @ refined.matrix @ back.T
        whole_variance = max(float(np.trace(rough.covariance)), rough.noise_std) / rough.shrinkage
        shrinkage = max(float(np.trace(found)) / whole_variance, 1e-3)
        return _spectrum(found, refined.noise_std, back, mean, shrinkage, n)


def _rough(grid: Grid, n: float, radius: float, kept: float) -> Asking[_Rough]:
    p = grid.n_features
    released = yield from ask(Moments(grid, radius, CENTRE_WEIGHT), "rough")
    (mean,), second = split_moments(released.value / n)
    mean = np.clip(mean, -1.0, 1.0)
    noise_std = float(released.noise_std[p]) / n
    fill = float(np.trace(second)) / radius**2  # mean squared length of clipped records, over the longest
    return _Rough(mean, second - np.outer(mean, mean), noise_std, kept, float(np.clip(fill, 0.1, 1.0)))


def _stands_out(rough: _Rough, k: int) -> bool:
    """Whether the rough covariance shows the leading subspace: gaps of `VISIBLE` times what noise alone reaches."""
    values, _ = descending(rough.covariance)
    rest = float(values[k:].mean()) if k < len(values) else -np.inf
    return bool(values[k - 1] - rest > VISIBLE * noise_edge(rough.noise_std, len(values)))


def _revealing(grid: Grid, rough: _Rough, k: int) -> Whitening:
    """The map, scaled so that a record as long as the clip radius of the rough moments has length sqrt(p)."""
    p = grid.n_features
    floor = noise_edge(rough.noise_std, p)
    to_t = revealing_map(rough.covariance, k, floor)
    values, _ = descending(to_t @ rough.covariance @ to_t)
    squared_reach = float(np.maximum(values, 0.0).sum()) / rough.fill
    to_t *= np.sqrt(p / max(squared_reach, floor * float(np.abs(to_t).max()) ** 2))
    return Whitening(grid, to_t, rough.mean, float(np.sqrt(p)))


def _again(grid: Grid, rough: _Rough, n: float, refined: Measuring) -> Asking[Principal]:
    """The second release in plain coordinates about the centre found, and the mean of both, weighted by precision.

    Coordinates chosen by noise would hide what there is to see; so nothing is lost against a single release.
    """
    p = grid.n_features
    squared_reach = max(float(np.trace(rough.covariance)) / rough.fill, noise_edge(rough.noise_std, p))
    unit = float(np.sqrt(squared_reach / p))
    second = yield from refined.run(Whitening(grid, np.eye(p) / unit, rough.mean, float(np.sqrt(p))), n)
    noise_std = second.noise_std * unit**2
    weight = rough.noise_std**2 / (rough.noise_std**2 + noise_std**2)
    both = weight * unit**2 * second.matrix + (1.0 - weight) * rough.covariance
    mean = np.clip(rough.mean + unit * second.mean, -1.0, 1.0)
    return _spectrum(both, float(np.sqrt(weight)) * noise_std, np.eye(p), mean, rough.shrinkage, n)


def _spectrum(
    covariance: FloatArray, noise_std: float, back: FloatArray, mean: FloatArray, shrinkage: float, n: float
) -> Principal:
    """Noise of std s on the diagonal and ``s / sqrt(2)`` off it, before the map back, reaches pairs of eigenvectors.

    ``v_i^T B E B^T v_j`` has standard deviation at most ``s / sqrt(2) |B^T v_i| |B^T v_j|`` for i different from j.
    """
    values, vectors = descending(covariance)
    reach = np.linalg.norm(back.T @ vectors, axis=0)
    noise = noise_std / np.sqrt(2.0) * np.outer(reach, reach)
    edge = noise_edge(noise_std, len(values)) * float(reach.max()) ** 2
    return Principal(mean, values / shrinkage, vectors, noise / shrinkage, edge / shrinkage, n)


SPREAD = 8.0
"""Largest ratio between the weights of two directions: a rough spectrum is not to be trusted beyond that."""


BALANCE = 0.5
"""Share of the leading coordinates in the squared length, over that of the others. Noise alone asks for 1; but the
few leading coordinates vary most from record to record, and clipping them wastes information: 0.5 measured best."""


def descending(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, largest first, and eigenvectors as columns.

    >>> descending(np.diag([1.0, 3.0]))[0]
    array([3., 1.])
    """
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(values[::-1]), np.asarray(vectors[:, ::-1])


def revealing_map(covariance: FloatArray, k: int, floor: float) -> FloatArray:
    """The map ``T`` (p, p), symmetric, after which noise blurs the leading k-subspace least.

    A second moment of ``t = T x`` is released with noise ``R^2 / (mu n)`` per entry, ``R^2 = E |t|^2``. Divided by
    the weights of both directions and by their gap, that moves direction j toward the rest by
    ``R^2 / (w_j w_rest g_j)``. With ``w_j = c / g_j`` all j are moved alike, and ``c`` is best where the leading
    and the other coordinates have about the same share of ``R^2`` (`BALANCE`).

    Parameters
    ----------
    covariance : ndarray of shape (p, p)
        Rough, released.
    k : int
        Number of leading directions.
    floor : float
        Edge of the noise of `covariance`: no variance and no gap is believed to be smaller.

    Examples
    --------
    >>> np.diag(revealing_map(np.diag([5.0, 3.0, 0.5, 0.5, 0.5]), 2, 0.01)).round(2)
    array([0.23, 0.41, 1.  , 1.  , 1.  ])
    """
    values, vectors = descending(covariance)
    values = np.maximum(values, floor)
    if k >= len(values):
        return np.eye(len(values))
    rest = values[k:]
    gap = np.maximum(values[:k] - rest.mean(), floor)
    lead = 1.0 / np.maximum(gap, gap.max() / SPREAD)
    lead *= np.sqrt(BALANCE * rest.sum() / (lead**2 @ values[:k]))
    weights = np.concatenate([lead, np.ones(len(rest))])
    return np.asarray((vectors * weights) @ vectors.T)


def standard_errors(values: FloatArray, vectors: FloatArray, noise: FloatArray, k: int) -> FloatArray:
    """What noise adds to the entries of the leading k eigenvectors, to first order: (k, p), none above 1.

    Noise of standard deviation ``noise_ij`` between eigenvectors i and j turns one toward the other by that over
    the gap of their eigenvalues, and by no more than all the way.
    """
    gap = np.abs(values[:k, None] - values[None, :])
    turn = noise[:k] / np.maximum(np.maximum(gap, noise[:k]), 1e-300)
    turn[np.arange(k), np.arange(k)] = 0.0
    return np.asarray(np.minimum(np.sqrt(turn**2 @ vectors.T**2), 1.0))


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
