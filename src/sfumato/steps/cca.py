"""Canonical correlations from a released joint covariance."""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.bounds import Grid
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.steps.covariance import Covariance, Measuring, rounder
from sfumato.steps.dimension import Choice
from sfumato.steps.shape import RoughShape
from sfumato.steps.subspace import unit_rows
from sfumato.steps.symmetric import inverse_root, noise_edge, raised
from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Canonical:
    """Canonical weights as unit rows, (k, p) and (k, q), their correlations, and the evidence for k."""

    x_weights: FloatArray
    y_weights: FloatArray
    correlations: FloatArray
    choice: Choice


def canonical(covariance: FloatArray, p: int, noise_std: float, n: float, k: int | None) -> Canonical:
    """Singular vectors of ``Sxx^(-1/2) Sxy Syy^(-1/2)``.

    Parameters
    ----------
    covariance : ndarray of shape (p + q, p + q)
        Joint, x first; positive definite.
    noise_std : float
        Noise of an entry of the whitened cross-covariance.
    k : int or None
        None counts the correlations above the edge of noise and sampling, whose entries have variance ``1 / n``.

    Examples
    --------
    >>> joint = np.array([[4.0, 1.0], [1.0, 1.0]])
    >>> canonical(joint, 1, 0.0, 1e6, 1).correlations
    array([0.5])
    """
    x_root, y_root = (_root(block) for block in (covariance[:p, :p], covariance[p:, p:]))
    u, s, vt = np.linalg.svd(x_root @ covariance[:p, p:] @ y_root, full_matrices=False)
    q = len(covariance) - p
    edge = 1.1 * float(np.hypot(noise_std, 1.0 / np.sqrt(n)) * (np.sqrt(p) + np.sqrt(q)))
    found = max(1, int((s > edge).sum())) if k is None else k
    choice = Choice(found, s, edge, k is not None)
    x_weights, y_weights = unit_rows((x_root @ u[:, :found]).T), unit_rows((y_root @ vt[:found].T).T)
    return Canonical(x_weights, y_weights, np.clip(s[:found], 0.0, 1.0), choice)


def _root(block: FloatArray) -> FloatArray:
    """Inverse root, guarded against rounding only."""
    return inverse_root(block, max(1e-12 * float(np.trace(block)), 1e-300))


@dataclass(frozen=True, slots=True)
class Counting:
    """The step that buys the number of records where it is private, about tables of so many columns."""

    size: int

    @property
    def lines(self) -> tuple[Line, ...]:
        """One count."""
        return (Line("count", "number of records", 0.01, "sqrt(2) / 1", asks=ResponseHistogram),)

    def run(self) -> Asking[float]:
        """The number, kept away from zero."""
        released = yield from ask(ResponseHistogram(Bins(np.empty(0))), "count")
        return max(float(released.value[0]), 10.0 * self.size)


SHAPE = RoughShape(0.03, 0.16)
ROUNDER = Measuring("rounder", "better covariance of both tables", 0.24)
JOINT = Measuring("joint", "joint covariance of both tables", 0.48)


@dataclass(frozen=True, slots=True)
class JointPairs:
    """The step that finds canonical pairs: shape, a rounder covariance, and the joint one."""

    shape: RoughShape = SHAPE
    rounder: Measuring = ROUNDER
    joint: Measuring = JOINT

    @property
    def lines(self) -> tuple[Line, ...]:
        """Those of the three."""
        return (*self.shape.lines, *self.rounder.lines, *self.joint.lines)

    def run(self, grid: Grid, p: int, n: float, k: int | None) -> Asking[tuple[FloatArray, Canonical, Covariance]]:
        """Mean of both tables (the first p columns are x) and canonical weights, in their units; and what they follow
        from, no eigenvalue below the edge of the noise.

        Whitening both tables *together* makes the noise of the last release proportional to the sampling error of every
        covariance, whatever the correlations: that of nearly equal combinations is as small as they are.
        """
        rough = yield from self.shape.run(grid, n)
        whitening = rounder((yield from self.rounder.run(rough, n)))
        joint = yield from self.joint.run(whitening, n)
        back = grid.half_width[:, None] * whitening.inverse
        repaired = raised(joint.matrix, noise_edge(joint.noise_std, grid.n_features))
        found = canonical(back @ repaired @ back.T, p, joint.noise_std, n, k)
        mean = grid.centre + whitening.mean * grid.half_width + back @ joint.mean
        return mean, found, replace(joint, matrix=repaired)
