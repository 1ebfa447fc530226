"""FSIR with noise shaped by an earlier private release: what the MVG mechanism of its paper wants, safely.

He, Zhang and Chen shape the noise of the slice means by the singular vectors of those means, which are private: their
Theorem 3 does not cover it. Here a first release tells the vectors. In their coordinates, divided by the root of the
singular values, a second release gets equal noise everywhere: back in x it is large along the leading vectors, where it
does not turn the subspace, and small across them. Both releases are bounded sums, so the guarantee is that of any plan;
and as both are known with their noise, they are averaged by precision.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.iterate.picture import groups
from sfumato.iterate.ranks import Ranks
from sfumato.privacy.door import SumDoor
from sfumato.privacy.plan import Line
from sfumato.solve.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray

LARGEST = 3.0
"""Noise along the leading vector is at most this many times that across it."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Released slice means (p, H) and second moment (p, p) in the coordinates of one release, with their noise."""

    means: FloatArray
    second: FloatArray
    mean_std: float
    second_std: float


def plan_shaped(share: float) -> tuple[Line, ...]:
    """The lines `fsir_shaped` will use."""
    formula = "2 R / R"
    return (
        Line("slices", "slice sums and second moment, equal noise", 0.4 * share, formula),
        Line("shaped slices", "slice sums and second moment, shaped noise", 0.6 * share, formula),
    )


def fsir_shaped(curator: SumDoor, grid: Grid, ranks: Ranks, n: float, radius: float, slices: int, k: int) -> FloatArray:
    """Directions (k, p), orthonormal, in the units of x; parameters as in `fsir_iid`."""
    p = grid.n_features
    scale = float(grid.half_width.max()) * float(np.sqrt(p)) / radius  # a record of length `radius` becomes sqrt(p)
    first = _ask(curator, grid, ranks, np.eye(p) * scale, n, slices, "slices")
    vectors, shape = _shape(first)
    # clipped to the same length, so the second release has the same sensitivity; mean squared length p stays p
    matrix = (vectors / shape).T * np.sqrt(p / np.sum(shape**-2.0))
    second = _ask(curator, grid, ranks, matrix * scale, n, slices, "shaped slices")
    back = np.linalg.inv(matrix)
    means = _averaged(vectors, first.means, first.mean_std, back @ second.means, second.mean_std, matrix)
    covariance = (first.second / first.second_std**2 + back @ second.second @ back.T / second.second_std**2) / (
        first.second_std**-2.0 + second.second_std**-2.0
    )
    mean = means.sum(axis=1)
    root = inverse_root(covariance - np.outer(mean, mean), noise_edge(min(first.second_std, second.second_std), p))
    share = np.full(means.shape[1], 1.0 / means.shape[1])
    u = np.linalg.svd(means - np.outer(mean, share), full_matrices=False)[0][:, :k]
    return np.asarray(np.linalg.qr(root @ root @ u)[0].T)


def _ask(curator: SumDoor, grid: Grid, ranks: Ranks, matrix: FloatArray, n: float, slices: int, name: str) -> Sums:
    p = grid.n_features
    slice_of, edges = groups(ranks, slices)
    query = SlicedMoments(Whitening(grid, matrix, np.zeros(p), float(np.sqrt(p))), ranks.bins, slice_of, len(edges) - 1)
    released, h = curator.answer(query, name), query.n_slices
    means, second = released.value[: h * p].reshape(h, p).T / n, upper_to_full(released.value[h * p :] / n, p)
    return Sums(means, second, float(released.noise_std[0]) / n, float(released.noise_std[h * p]) / n)


def _shape(first: Sums) -> tuple[FloatArray, FloatArray]:
    """Left singular vectors and the relative size of the noise along each: the root of its singular value."""
    vectors, values, _ = np.linalg.svd(first.means, full_matrices=True)
    padded = np.zeros(len(vectors))
    padded[: len(values)] = values
    floor = max(float(padded[0]) / LARGEST**2, 1e-12)
    return vectors, np.sqrt(np.maximum(padded, floor) / floor)


def _averaged(
    vectors: FloatArray, one: FloatArray, one_std: float, other: FloatArray, other_std: float, matrix: FloatArray
) -> FloatArray:
    """Both estimates averaged by precision, vector by vector, where the noise of both is uncorrelated."""
    lengths = np.linalg.norm(matrix, axis=1)  # row j measures along vector j, this many times enlarged
    precision = (lengths / other_std) ** 2
    weight = (precision / (precision + one_std**-2.0))[:, None]
    return np.asarray(vectors @ ((1.0 - weight) * (vectors.T @ one) + weight * (vectors.T @ other)))
