"""Functions of the response with values in [-1, 1] and mean zero, for screening."""

import numpy as np

from sfumato.typing import FloatArray


def rank_contrasts(probabilities: FloatArray) -> FloatArray:
    """Upper against lower half, and middle against outer halves, of the ranks: table (bins, 2).

    Each function is averaged over a bin's interval of ranks, so its mean is zero whatever the bins: a feature that
    does not depend on y has score zero even if its centre is far from its median.

    >>> rank_contrasts(np.full(4, 0.25)).T
    array([[-1., -1.,  1.,  1.],
           [-1.,  1.,  1., -1.]])
    """
    ends = np.concatenate([[0.0], np.cumsum(probabilities)])
    return np.column_stack([_mean_over(ends, np.abs(ends - 0.5)), _mean_over(ends, _tent(ends))])


def smooth_contrasts(probabilities: FloatArray) -> FloatArray:
    """``cos(pi u)`` and ``cos(2 pi u)`` of the ranks u, averaged over the bins: table (bins, 2).

    They follow a feature as `rank_contrasts` do, with half the variance where it does not depend on y: chance moves
    them less, privacy noise somewhat more.

    >>> smooth_contrasts(np.full(4, 0.25)).T.round(2) + 0.0
    array([[ 0.9 ,  0.37, -0.37, -0.9 ],
           [ 0.64, -0.64, -0.64,  0.64]])
    """
    ends = np.concatenate([[0.0], np.cumsum(probabilities)])
    return np.column_stack([_mean_over(ends, np.sin(j * np.pi * ends) / (j * np.pi)) for j in (1, 2)])


def class_contrasts(probabilities: FloatArray) -> FloatArray:
    """Each class in use against all others, scaled to mean zero and largest value one: table (bins, classes).

    >>> class_contrasts(np.array([0.5, 0.0, 0.5]))
    array([[ 1.],
           [ 0.],
           [-1.]])
    """
    used = np.flatnonzero(probabilities > 0)
    own = np.zeros((len(probabilities), len(used)))
    own[used, np.arange(len(used))] = 1.0
    table = own - probabilities[used]
    table /= np.maximum(np.abs(table).max(axis=0), 1e-12)
    table[probabilities <= 0] = 0.0
    return table[:, :1] if len(used) == 2 else table  # the second of two is minus the first


def _tent(u: FloatArray) -> FloatArray:
    """Integral of the function that is -1, 1, 1, -1 on the quarters of [0, 1]."""
    return np.asarray(np.where(u < 0.25, -u, np.where(u < 0.75, u - 0.5, 1.0 - u)))


def _mean_over(ends: FloatArray, integral: FloatArray) -> FloatArray:
    width = np.diff(ends)
    return np.clip(np.divide(np.diff(integral), width, out=np.zeros_like(width), where=width > 1e-12), -1.0, 1.0)
