"""Targets: every released gradient says where the descent should end; the best of their averages.

With C where a step began and G its gradient, ``C + G / (kappa n)`` is where least squares would end if records were
white and clipping took the part ``1 - kappa`` of a gradient. Three things are wrong with it, all of about known size:
the noise of the gradient; ``E (C* - C)`` with the error E of the whitening, which is the same for all steps and
vanishes as C approaches the end C*; and an error of kappa, which differs from step to step. So targets of early steps
are off by the whitening, those of late steps by the noise of a small share, and all of them together tell more than
the last.

Along some axes all of them stop short in the same proportion: where records vary less than the noise of the whitening
shows, or where it is long records that vary, which are clipped. This *pace* of an axis shows as the descent goes on, by
how much less there is to go after each piece of the way. Post-processing of releases.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.steps.shape import Shape
from sfumato.typing import FloatArray

WRONG = 1.5
"""Error of the whitening beside that of its noise alone: what raises small variances and clears correlations adds."""
BENT = 0.05
"""Least error of the whitening, however little noise: clipping bends the shape of records that are not spherical."""
OWN = 0.4
"""Error of each target by itself, as part of how far it points: how much clipping takes is known roughly, and differs
from step to step. Without it targets with hardly any noise are believed to differ by the whitening alone, and averages
with large weights of both signs end anywhere."""
PACE = 0.5
"""How far the pace of an axis is from one, before anything is known of it."""
PACES = (0.1, 2.0)
"""Slowest and fastest pace that is believed."""
ROUNDS = 2
_LEAST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Where every step so far began and what it pointed to, for q functions of y.

    Attributes
    ----------
    shape : Shape
    began, ends : ndarray of shape (q, steps, p + 1)
        Coefficients along the axes of the rough covariance, intercept last.
    noise : ndarray of shape (q, steps)
        Variance of the noise of a target.
    """

    shape: Shape
    began: FloatArray
    ends: FloatArray
    noise: FloatArray

    @classmethod
    def none(cls, shape: Shape, q: int) -> Self:
        """Before the first step."""
        empty = np.zeros((q, 0, len(shape.doubts) + 1))
        return cls(shape, empty, empty, np.zeros((q, 0)))

    def and_one(self, began: FloatArray, end: FloatArray, noise: FloatArray) -> Self:
        """With one more step: coefficients (p + 1, q), and a variance for each of the q columns."""
        return type(self)(
            self.shape,
            np.concatenate([self.began, self._turned(began)], axis=1),
            np.concatenate([self.ends, self._turned(end)], axis=1),
            np.concatenate([self.noise, noise[:, None]], axis=1),
        )

    def compressed(self, v: FloatArray) -> Self:
        """The same about the functions ``f v``."""
        size = self.ends.shape[1:]
        began, ends = (
            (v.T @ what.reshape(len(v), size[0] * size[1])).reshape(-1, *size) for what in (self.began, self.ends)
        )
        return type(self)(self.shape, began, ends, v.T**2 @ self.noise)

    def average(self) -> FloatArray:
        """The average of all targets with the least error, by generalised least squares: (p + 1, q).

        Along the axis i of the rough covariance the errors of targets s and t have the covariance
        ``doubt_i sum_j doubt_j d_sj d_tj`` (d: what is left from where each began to the end), and each has its noise
        and an error of its own in proportion to how far it points, as far as that is not noise. The end is not known:
        it is where the last step began at first (of two steps, what the second points to), then the average itself.
        Weights add up to one along each axis; an intercept is taken for an axis of mean doubt.

        An error in proportion to d, which is much the same elsewhere, would let the descent stop anywhere: where
        records vary several times as much along an axis as they were whitened for, early targets are far beyond the
        end, and an average of them that happens to be where the last step began would have no error left.
        """
        doubts = self.shape.doubts
        doubts = np.hypot(WRONG * np.append(doubts, doubts.mean()), BENT)
        steps, way = self.ends.shape[1], self.ends - self.began
        squares = np.einsum("qtp,qtp->qt", way, way) / len(doubts)
        own = self.noise + OWN**2 * np.maximum(squares - self.noise, 0.0)
        found = self.began[:, -1] if steps > 2 else self.ends[:, -1]
        for _ in range(ROUNDS if steps > 1 else 0):
            left = found[:, None] - self.began
            found = _averaged(self.began, way, (left * doubts) @ left.transpose(0, 2, 1), doubts, own)
        return np.concatenate([self.shape.axes @ found[:, :-1].T, found[:, -1:].T])

    def _turned(self, coefficients: FloatArray) -> FloatArray:
        """Along the axes of the rough covariance, the intercept left alone: (q, 1, p + 1)."""
        along = np.concatenate([self.shape.axes.T @ coefficients[:-1], coefficients[-1:]])
        return np.asarray(along.T[:, None])


def _averaged(
    began: FloatArray, way: FloatArray, shared: FloatArray, doubts: FloatArray, noise: FloatArray
) -> FloatArray:
    """Targets, ``began + way`` (q, steps, p + 1), averaged over steps with weights ``S_i^-1 1`` over their sum, along
    every axis i, where ``S_i = doubt_i shared + diag(noise)``, each with its way over the pace of the axis: (q, p + 1).

    With these weights the slope of ways on where they began, over all functions, is less the pace, known with the
    precision of what the beginnings vary by; the prior is one, within `PACE`. One set of eigenvectors serves all axes,
    and weights need not be written down.
    """
    largest = noise.max(axis=1) + np.einsum("qtt->q", shared) * doubts.max()
    root = 1.0 / np.sqrt(noise + _LEAST * largest[:, None] + 1e-300)[:, :, None]
    values, vectors = np.linalg.eigh(root * shared * root.transpose(0, 2, 1))
    turned = vectors.transpose(0, 2, 1)
    ones, starts, ways = turned @ root, turned @ (root * began), turned @ (root * way)
    known = 1.0 / (1.0 + np.maximum(values, 0.0)[:, :, None] * doubts)
    along, varied = known * ones, known * starts
    whole = np.einsum("qtp,qtu->qp", along, ones)
    start, onward = (np.einsum("qtp,qtp->qp", along, what) / whole for what in (starts, ways))
    variance, covariance = (
        (np.einsum("qtp,qtp->qp", varied, what) - whole * start * mean).sum(axis=0)
        for what, mean in ((starts, start), (ways, onward))
    )
    pace = (PACE**-2 - covariance) / (PACE**-2 + np.maximum(variance, 0.0))
    return np.asarray(start + onward / np.clip(pace, *PACES))
