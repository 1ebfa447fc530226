"""Targets: every released gradient says where the descent should end; the best of their averages.

With C where a step began and G its gradient, ``C + G / (kappa n)`` is where least squares would end if records were
white and clipping took the part ``1 - kappa`` of a gradient. Two things are wrong with it, both of known size: the
noise of the gradient, and ``E (C* - C)`` with the error E of the whitening, which is the same for all steps and
vanishes as C approaches the end C*. So targets of early steps are off by the whitening, those of late steps by the
noise of a small share, and all of them together tell more than the last. Post-processing of releases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.steps.shape import Shape
from sfumato.typing import FloatArray

WRONG = 2.8
"""Error of the whitening beside that of its noise alone: what raises small variances and clears correlations adds."""
BENT = 0.05
"""Least error of the whitening, however little noise: clipping bends the shape of records that are not spherical."""
ROUNDS = 3
_LEAST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Coefficients (p + 1, q) where a step began, those it pointed to, and the variance of its noise, by column."""

    began: FloatArray
    end: FloatArray
    noise: FloatArray

    def compressed(self, v: FloatArray) -> Self:
        """The same about the functions ``f v``."""
        return type(self)(self.began @ v, self.end @ v, v.T**2 @ self.noise)


def combine(targets: Sequence[Target], shape: Shape) -> FloatArray:
    """The average of all targets with the least error, by generalised least squares.

    Along the axis i of the rough covariance the errors of targets s and t have the covariance
    ``doubt_i sum_j doubt_j d_sj d_tj`` (d: what is left from where each began to the end) and each has its noise. The
    end is not known: it is the last target at first, then the average itself. Weights add up to one along each axis;
    an intercept is taken for an axis of mean doubt.
    """
    if len(targets) == 1:
        return targets[0].end
    began = np.stack([_turned(target.began, shape) for target in targets])
    ends = np.stack([_turned(target.end, shape) for target in targets])
    doubts = np.hypot(WRONG * np.append(shape.doubts, shape.doubts.mean()), BENT)
    noises = np.stack([target.noise for target in targets])
    found = ends[-1]
    for _ in range(ROUNDS):
        left = found - began
        columns = []
        for j, noise in enumerate(noises.T):
            shared = (left[:, :, j] * doubts) @ left[:, :, j].T
            columns.append((_weights(shared, doubts, noise) * ends[:, :, j].T).sum(axis=1))
        found = np.stack(columns, axis=1)
    return _turned(found, shape, back=True)


def _weights(shared: FloatArray, doubts: FloatArray, noise: FloatArray) -> FloatArray:
    """``S_i^-1 1`` over its sum, for ``S_i = doubt_i shared + diag(noise)`` and every i: (p, targets)."""
    root = 1.0 / np.sqrt(noise + _LEAST * (noise.max() + np.trace(shared) * doubts.max()) + 1e-300)
    values, vectors = np.linalg.eigh(root[:, None] * shared * root)
    inner = (vectors.T @ root) / (1.0 + np.outer(doubts, np.maximum(values, 0.0)))
    weights = inner @ vectors.T * root
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _turned(coefficients: FloatArray, shape: Shape, *, back: bool = False) -> FloatArray:
    """Coefficients along the axes of the rough covariance, the intercept left alone; or back."""
    axes = shape.axes if back else shape.axes.T
    return np.concatenate([axes @ coefficients[:-1], coefficients[-1:]])
