"""Backward elimination: directions without the features that do nothing, from estimates whose errors are known.

Post-processing of estimates: nothing is asked of the records.
"""

import numpy as np

from sfumato.steps.links import unit_rows
from sfumato.typing import FloatArray


def eliminate(
    directions: FloatArray, errors: FloatArray, covariance: FloatArray, penalty: float | None = None
) -> FloatArray:
    """Directions in which features that do not show are left out, one after the other, and the others make up for it.

    Errors of a direction are taken for those of least squares, which noise of equal size in whitened coordinates makes,
    too: of covariance ``s^2 Sigma^-1``, with s from all errors of the direction. With b the directions and S the
    inverse of the covariance of the features that are left, leaving out feature j costs
    ``sum over directions (b_j / s)^2 / S_jj``. That which costs least goes first; the set with the least sum of
    costs and of a penalty for each feature kept is taken.

    Parameters
    ----------
    directions, errors : ndarray of shape (k, p)
        Estimates in any length, and their standard errors.
    covariance : ndarray of shape (p, p)
        Of the features.
    penalty : float, optional
        For each feature; by default ``k + 2 log p``, about the largest of p squared errors by chance (Foster and
        George 1994).

    Returns
    -------
    ndarray of shape (k, p)
        Rows of length one, zero in the same features; at least k features stay.

    Examples
    --------
    >>> found = np.array([[1.0, 0.1, -0.7, 0.05]])
    >>> eliminate(found, np.full((1, 4), 0.1), np.eye(4)).round(2)
    array([[ 0.82,  0.  , -0.57,  0.  ]])
    """
    k, p = directions.shape
    inverse = np.linalg.pinv(covariance, hermitian=True)
    spread = np.sqrt(np.maximum(np.diag(inverse), 1e-300))
    noise = np.sqrt(np.nanmean((errors / spread) ** 2, axis=1, keepdims=True))
    b, left = directions / np.maximum(noise, 1e-300), np.arange(p)
    each = k + 2.0 * np.log(p) if penalty is None else penalty
    spent, best = 0.0, (each * p, left, b)
    while len(left) > k:
        costs = (b**2).sum(axis=0) / np.maximum(np.diag(inverse), 1e-300)
        out = int(np.argmin(costs))
        spent += float(costs[out])
        # The inverse of the covariance without a row and column, and least squares without that feature.
        column, diagonal = inverse[:, out], max(float(inverse[out, out]), 1e-300)
        b = np.delete(b - np.outer(b[:, out], column) / diagonal, out, axis=1)
        inverse = np.delete(np.delete(inverse - np.outer(column, column) / diagonal, out, axis=0), out, axis=1)
        left = np.delete(left, out)
        if (score := spent + each * len(left)) < best[0]:
            best = (score, left, b)
    _, left, b = best
    sparse = np.zeros((k, p))
    sparse[:, left] = b
    return unit_rows(sparse)
