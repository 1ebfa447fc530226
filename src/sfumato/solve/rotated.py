"""Coordinates in which a second release says more about the leading subspace for the same noise."""

import numpy as np

from sfumato.typing import FloatArray

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
