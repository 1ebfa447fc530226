"""Screening: what is known of the few features that matter, and functions of the response that show them to voters."""

from dataclasses import dataclass

import numpy as np

from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Screen:
    """Features kept (in increasing order) and picked (best first), with the released scores of the picked."""

    kept: IntArray
    picked: IntArray
    scores: FloatArray
    threshold: float


def smooth_contrasts(probabilities: FloatArray) -> FloatArray:
    """``cos(pi u)`` and ``cos(2 pi u)`` of the ranks u, averaged over the bins: table (bins, 2).

    Their mean is zero whatever the bins: a feature that does not depend on y has score zero even if its centre is far
    from its median.

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


def _mean_over(ends: FloatArray, integral: FloatArray) -> FloatArray:
    width = np.diff(ends)
    return np.clip(np.divide(np.diff(integral), width, out=np.zeros_like(width), where=width > 1e-12), -1.0, 1.0)
