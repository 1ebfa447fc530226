"""Functions of the response whose regression on x spans the subspace."""

import numpy as np

from sfumato.typing import FloatArray


def cosines(probabilities: FloatArray, weights: FloatArray) -> FloatArray:
    """``w_j sqrt(2) cos(j pi u)`` averaged over each bin's interval of ranks: table (bins, q).

    The functions are orthonormal under the uniform distribution of ranks; the average over the interval (rather
    than the value at its middle) keeps every column's mean at exactly zero, ties or not.

    >>> table = cosines(np.full(4, 0.25), np.ones(2))
    >>> bool(np.abs(table.mean(axis=0)).max() < 1e-15)
    True
    """
    ends = np.concatenate([[0.0], np.cumsum(probabilities)])
    order = np.arange(1, len(weights) + 1)
    angle = np.pi * np.outer(ends, order)
    width = np.diff(ends)[:, None]
    middle = np.pi * np.outer((ends[1:] + ends[:-1]) / 2, order)
    mean = np.divide(np.diff(np.sin(angle), axis=0), np.pi * order * width, out=np.cos(middle), where=width > 1e-9)
    return np.asarray(np.sqrt(2.0) * weights * mean)


def indicators(probabilities: FloatArray) -> FloatArray:
    """Centred indicators of the classes in use, each over the root of its probability: table (bins, classes).

    ``E z (1_h - p_h) / sqrt(p_h) = sqrt(p_h) E[z | h]``: least squares on these is classical SIR with the classes
    as slices. Rare classes are scaled as if they had half their fair share, which bounds the table.
    """
    used = np.flatnonzero(probabilities > 0)
    p = probabilities[used]
    scale = 1.0 / np.sqrt(np.maximum(p, 0.5 / len(used)))
    table = np.tile(-p * scale, (len(probabilities), 1))
    table[used, np.arange(len(used))] += scale
    table[probabilities <= 0] = 0.0
    return table
