"""Canonical pairs from the joint covariance of two tables, measured in coordinates that earlier releases made round."""

import numpy as np

from sfumato.bounds import Grid
from sfumato.iterate.covariance import measure, plan_covariance, rounder
from sfumato.iterate.shape import plan_shape, rough_shape
from sfumato.privacy.asking import Asking
from sfumato.privacy.plan import Line
from sfumato.solve.canonical import Canonical, canonical
from sfumato.solve.symmetric import noise_edge, raised
from sfumato.typing import FloatArray

SHARES = {"radius": 0.03, "shape": 0.16, "rounder": 0.24, "joint": 0.48}


def plan_pairs() -> tuple[Line, ...]:
    """The lines `joint_pairs` will use."""
    return (
        *plan_shape(SHARES["radius"], SHARES["shape"]),
        *plan_covariance("rounder", "better covariance of both tables", SHARES["rounder"]),
        *plan_covariance("joint", "joint covariance of both tables", SHARES["joint"]),
    )


def joint_pairs(grid: Grid, p: int, n: float, k: int | None) -> Asking[tuple[FloatArray, Canonical]]:
    """Mean of both tables (the first p columns are x) and canonical weights, in their units.

    Whitening both tables *together* makes the noise of the last release proportional to the sampling error of every
    covariance, whatever the correlations: that of nearly equal combinations is as small as they are.
    """
    rough = yield from rough_shape(grid, n, 1.0)
    whitening = rounder((yield from measure(rough, n, "rounder")))
    joint = yield from measure(whitening, n, "joint")
    back = np.linalg.pinv(whitening.exact_matrix / grid.half_width)
    repaired = raised(joint.matrix, noise_edge(joint.noise_std, grid.n_features))
    found = canonical(back @ repaired @ back.T, p, joint.noise_std, n, k)
    return grid.centre + whitening.mean * grid.half_width + back @ joint.mean, found
