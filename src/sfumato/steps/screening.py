"""Screening: what is known of the few features that matter, and functions of classes that show them to voters."""

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
