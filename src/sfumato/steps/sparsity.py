"""Slopes of which many are zero: what each feature does along each direction, as far as it stands out of its error.

Features were named in noise, some of them by mistake, and one that matters to one direction need not matter to another:
then slopes are shrunk (`sparse_slopes`). Whoever believes that most features do nothing at all leaves them out
(`eliminate`). Post-processing of releases whose errors are known: nothing is asked of the records.
"""

from itertools import combinations

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from sfumato.steps.subspace import unit_rows
from sfumato.typing import FloatArray

MATTER = (np.arange(10) + 0.5) / 10
"""Parts of the slopes that are not zero, at first the likelier the larger: features were kept for what they showed."""
SIZES = np.geomspace(2.0, 64.0, 11)
"""Sizes of those that are not, in errors."""
WIDER = np.array([1.0, 2.0, 4.0])
"""Times the known variance of an error: that of a feature which was named for what chance made of it is larger."""
APART = np.array([0.0, 1.0])
"""Whether slopes that are not zero are as often near it as a normal law has it, or lie apart from it."""
SWEEPS = 10
"""Times that every pair of directions is turned; one is enough for two of them."""
EXACT = 1e-12
"""Part of a size that is none beside it."""
_LEAST = 1e-100
"""No length, or error, is less: its square is a number, and so is one over it."""


def sparse_slopes(slopes: FloatArray, errors: FloatArray) -> FloatArray:
    """The slopes (p, k) of k functions on p features, each shrunk towards zero as far as it may be zero.

    Which functions span the same is a matter of choice, so they are turned first until each depends on as few features
    as it can (`varimax`), and turned back at the end. Where no turn leaves zeros, little is shrunk.

    Parameters
    ----------
    slopes : ndarray of shape (p, k)
        In units of the features in which errors are alike.
    errors : ndarray of shape (k,)
        Standard error of the slopes of each function.

    Examples
    --------
    >>> found = np.array([[0.9, 0.3], [1.0, 0.4], [-0.4, 0.9], [-0.3, 0.9], [0.05, 0.06]])
    >>> sparse_slopes(found, np.full(2, 0.05)).round(2)
    array([[ 0.89,  0.32],
           [ 1.01,  0.37],
           [-0.37,  0.91],
           [-0.35,  0.88],
           [ 0.  ,  0.  ]])
    """
    lengths = np.maximum(np.linalg.norm(slopes, axis=0), _LEAST)
    turn = varimax(slopes / lengths)
    turned, error = slopes / lengths @ turn, np.sqrt((errors / lengths) ** 2 @ turn**2)
    return np.asarray(believed(turned / np.maximum(error, _LEAST)) * turned @ turn.T * lengths)


def believed(z: FloatArray) -> FloatArray:
    """What part of each estimate (p, k) is believed, given in units of their errors: the mean by Bayes' rule.

    An estimate is that of zero, or of a value v of the density ``exp(-v^2 / (2 s^2))`` or ``v^2 exp(-v^2 / (2 s^2))``:
    what matters is often not next to nothing (a moment prior: Johnson and Rossell 2010), but it may be. Which of them
    holds, how many are zero, s for each column, and how much larger errors are than they are known to be is learnt
    from all estimates together: averaged over, with the weights that Bayes' rule gives.

    >>> believed(np.array([[20.0], [-15.0], [1.0], [3.0]])).T.round(2)
    array([[0.99, 0.99, 0.2 , 0.5 ]])
    >>> believed(np.array([[3.0], [2.5], [3.5], [2.0]])).T.round(2)  # all of them alike
    array([[0.69, 0.66, 0.71, 0.62]])
    """
    part, wider, apart, size = (axis[..., None, None] for axis in np.ix_(MATTER, WIDER, APART, SIZES))
    square, variance = z**2 / wider, size**2
    left = variance / (1.0 + variance)
    mean_square = square * left**2
    odds = np.log(part / (1.0 - part)) + square * left / 2.0 - np.log1p(variance) / 2.0
    odds = odds + apart * np.log((mean_square + left) / variance)
    zero = np.log1p(-part) - square / 2.0 - np.log(wider) / 2.0
    column = (zero - log_expit(-odds)).sum(axis=-2, keepdims=True)
    sized = logsumexp(column, axis=3, keepdims=True)
    whole = sized.sum(axis=-1, keepdims=True) + np.log(part)
    weights = np.exp(whole - logsumexp(whole) + column - sized)
    kept = expit(odds) * left * (1.0 + apart * 2.0 * left / (mean_square + left))
    return np.asarray((weights * kept).sum(axis=(0, 1, 2, 3)))


def varimax(loadings: FloatArray) -> FloatArray:
    """The rotation (k, k) after which squared loadings (p, k) vary most within columns, pair by pair (Kaiser 1958).

    >>> mixed = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> np.abs(mixed @ varimax(mixed)).round(6)
    array([[0., 1.],
           [1., 0.]])
    """
    p, k = loadings.shape
    turn = np.eye(k)
    for i, j in SWEEPS * list(combinations(range(k), 2)):
        x, y = (loadings @ turn[:, [i, j]]).T
        # In the plane of two columns the best angle is known: that of the fourth power of x + iy, less its mean's part.
        square = (x + 1j * y) ** 2
        angle = np.angle((square**2).sum() - square.sum() ** 2 / p) / 4.0
        c, s = np.cos(angle), np.sin(angle)
        turn[:, [i, j]] = turn[:, [i, j]] @ np.array([[c, -s], [s, c]])
    return turn


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
    longest = np.abs(np.where(spread > _LEAST, directions / spread, 0.0)).max(axis=1, keepdims=True)
    b, left = directions / np.maximum(noise, np.maximum(EXACT * longest, _LEAST)), np.arange(p)
    least = np.maximum(EXACT * np.diag(inverse), _LEAST**2)  # of what others leave of a feature less is rounding
    each = k + 2.0 * np.log(p) if penalty is None else penalty
    spent, best = 0.0, (each * p, left, b)
    while len(left) > k:
        costs = (b**2).sum(axis=0) / np.maximum(np.diag(inverse), least[left])
        out = int(np.argmin(costs))
        spent += float(costs[out])
        # The inverse of the covariance without a row and column, and least squares without that feature.
        column, diagonal = inverse[:, out], max(float(inverse[out, out]), float(least[left[out]]))
        b = np.delete(b - np.outer(b[:, out], column) / diagonal, out, axis=1)
        inverse = np.delete(np.delete(inverse - np.outer(column, column) / diagonal, out, axis=0), out, axis=1)
        left = np.delete(left, out)
        if (score := spent + each * len(left)) < best[0]:
            best = (score, left, b)
    _, left, b = best
    sparse = np.zeros((k, p))
    sparse[:, left] = b
    return unit_rows(sparse)
