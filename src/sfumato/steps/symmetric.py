"""Repair of noisy symmetric matrices, with a noise level that is known."""

import numpy as np

from sfumato.sums import upper_pairs
from sfumato.typing import FloatArray

LEVELS = np.arange(0.0, 3.01, 0.25)
"""Standard errors below which correlations may be taken for noise."""


def noise_edge(noise_std: float, size: int) -> float:
    """Largest eigenvalue of pure symmetric noise: diagonal std `noise_std`, off-diagonal ``noise_std / sqrt(2)``.

    Wigner's semicircle of variance ``noise_std^2 / 2`` per entry ends at ``2 sqrt(size) noise_std / sqrt(2)``.
    """
    return noise_std * float(np.sqrt(2.0 * size))


def without_noise(values: FloatArray, edge: float) -> FloatArray:
    """What the variances along noisy eigenvectors are without the noise, whose own eigenvalues end at `edge`.

    Noise pushes eigenvalues apart and turns their vectors. Along the vector that shows the value v the matrix itself
    has ``v - (edge^2 / 2) mean_j 1 / (v - v_j)`` (Bun, Allez, Bouchaud and Potters 2016, for noise that is added); the
    mean is smoothed over the distance between neighbours in pure noise.

    >>> noise = np.random.default_rng(0).normal(size=(50, 50)) / 10.0
    >>> shown = np.linalg.eigvalsh(np.eye(50) + (noise + noise.T) / 2.0)
    >>> bool(without_noise(shown, 1.0).std() < 0.3 * shown.std())  # the identity has none
    True
    """
    gap = values[:, None] - values[None, :]
    width = edge / np.sqrt(len(values))
    push = (gap / np.maximum(gap**2 + width**2, 1e-300)).mean(axis=1)
    return np.asarray(values - edge**2 / 2.0 * push)


def sparse_correlations(matrix: FloatArray, noise_std: float) -> tuple[FloatArray, float]:
    """A noisy covariance without the correlations that are noise, and the part of the noise that is left.

    Correlations below a number of standard errors are set to zero, and others shrunk by the less the larger they are:
    the non-negative garrote of Gao (1998). The number, 0 to leave all alone, is where Stein's unbiased estimate of the
    squared error is least; its root over that of the noise is the second value. `noise_std` is that of the diagonal.

    >>> noise = np.random.default_rng(0).normal(size=(50, 50)) / 10.0
    >>> found, left = sparse_correlations(np.eye(50) + (noise + noise.T) / 2.0, 0.1)
    >>> bool(np.abs(np.triu(found, 1)).mean() < 0.02), left < 0.4  # the identity has none
    (True, True)
    >>> sparse_correlations(np.array([[1.0, 0.5], [0.5, 1.0]]), 0.001)[1] > 0.99
    True
    """
    if len(matrix) < 2:
        return matrix, 1.0
    deviation = np.sqrt(np.maximum(matrix.diagonal(), max(noise_std, 1e-30)))
    units = np.outer(deviation, deviation)
    above = upper_pairs(len(matrix), 1)
    variances = (noise_std / np.sqrt(2.0) / units[above]) ** 2
    squares = np.maximum((matrix[above] / units[above]) ** 2 / np.maximum(variances, 1e-300), 1e-300)
    cuts = LEVELS[:, None] ** 2
    risks = np.where(squares > cuts, 1.0 + (2.0 * cuts + cuts**2) / squares, squares - 1.0) @ variances
    best = int(risks.argmin())
    found = np.diag(deviation**2)
    found[above] = matrix[above] * np.maximum(0.0, 1.0 - LEVELS[best] ** 2 / squares)
    found.T[above] = found[above]
    return found, float(np.sqrt(np.clip(risks[best] / max(float(variances.sum()), 1e-300), 0.0, 1.0)))


def inverse_root(matrix: FloatArray, floor: float) -> FloatArray:
    """``matrix^(-1/2)`` with eigenvalues raised to `floor` first.

    >>> inverse_root(np.diag([4.0, -1.0]), 1.0).diagonal()
    array([0.5, 1. ])
    """
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.sqrt(np.maximum(values, floor))) @ vectors.T)


def raised(matrix: FloatArray, floor: float) -> FloatArray:
    """The matrix with eigenvalues raised to `floor`.

    >>> raised(np.diag([4.0, -1.0]), 1.0).diagonal()
    array([4., 1.])
    """
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def upper_to_full(upper: FloatArray, size: int) -> FloatArray:
    """Full symmetric matrix from its upper triangle, row by row.

    >>> upper_to_full(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    matrix = np.zeros((size, size))
    matrix[upper_pairs(size)] = upper
    return matrix + np.triu(matrix, 1).T


def split_moments(values: FloatArray, slices: int = 1) -> tuple[FloatArray, FloatArray]:
    """Sums by slice (slices, p) and the second moment (p, p), of which the upper triangle was released after them.

    >>> sums, second = split_moments(np.array([1.0, 2.0, 5.0, 6.0, 7.0]))
    >>> sums.tolist(), second.tolist()
    ([[1.0, 2.0]], [[5.0, 6.0], [6.0, 7.0]])
    """
    half = slices + 0.5  # there are slices p + p (p + 1) / 2 values
    p = int(np.sqrt(half**2 + 2.0 * len(values)) - half + 0.5)
    return values[: slices * p].reshape(slices, p), upper_to_full(values[slices * p :], p)
