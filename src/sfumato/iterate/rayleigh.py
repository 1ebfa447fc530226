"""DP-Rayleigh Flow and its truncated form: the pair (A, B) of a generalised eigenproblem noised afresh at every step.

Kept for comparison. Each of the m + 1 releases gets ``1 / (m + 1)`` of the budget, hence sqrt(m + 1) times the noise of
a single one. Short steps average part of that away again; one release that is solved exactly needs none of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.privacy.curator import Curator
from sfumato.privacy.plan import Line
from sfumato.solve.rayleigh import flow_step, initial_vector
from sfumato.solve.symmetric import noise_edge, upper_to_full
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray

STEPS = 10
STEP = 0.5

Pair = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From a released mean and covariance to (A, B): ``(S, I)`` for principal components, blocks of S for others."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The vector (p,), and mean and covariance of the last step with the noise of a diagonal entry."""

    vector: FloatArray
    mean: FloatArray
    covariance: FloatArray
    noise_std: float


def plan_flow(share: float, steps: int = STEPS) -> tuple[Line, ...]:
    """The lines `rayleigh_flow` will use: one for the initial vector, one for each step."""
    each = share / (steps + 1)
    names = ["matrices for the initial vector", *(f"matrices of step {t}" for t in range(1, steps + 1))]
    return tuple(Line(f"flow {t}", name, each, "1.48 r^2 / 1.04 r^2") for t, name in enumerate(names))


def rayleigh_flow(
    curator: Curator, query: BoundedSum, pair: Pair, n: float, *, steps: int = STEPS, sparsity: int | None = None
) -> Flow:
    """Leading generalised eigenvector; with `sparsity` only that many entries are kept at each step.

    `query` sums x (p numbers) and the upper triangle of ``x x^T``, of records clipped to a radius.
    """
    p = int((np.sqrt(9 + 8 * query.shape[0]) - 3) / 2 + 0.5)
    v = np.empty(0)
    for t in range(steps + 1):
        released = curator.answer(query, f"flow {t}")
        mean, noise_std = released.value[:p] / n, float(released.noise_std[p]) / n
        covariance = upper_to_full(released.value[p:] / n, p) - np.outer(mean, mean)
        A, B = pair(mean, covariance)
        if t == 0:
            edge = noise_edge(noise_std, p)
            v = initial_vector(A, B, edge, edge / p)
        else:
            v = flow_step(v, A, B, STEP / max(float(np.linalg.norm(B, 2)), 1e-12), sparsity)
    return Flow(v, mean, covariance, noise_std)
