"""DP-Rayleigh Flow and its truncated form: the pair (A, B) of a generalised eigenproblem noised afresh at every step.

Kept for comparison. Each of the m + 1 releases gets ``1 / (m + 1)`` of the budget, hence sqrt(m + 1) times the noise of
a single one. Short steps average part of that away again; one release that is solved exactly needs none of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.privacy.door import SumDoor
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.solve.rayleigh import flow_step, initial_vector
from sfumato.solve.symmetric import noise_edge
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray

STEPS = 10
STEP = 0.5

Pair = Callable[[Release], tuple[FloatArray, FloatArray]]
"""From the released sums to (A, B): `sfumato.solve.pairs` has those of the usual problems."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The vector (p,), of length one, and the release of the last step."""

    vector: FloatArray
    last: Release


def plan_flow(share: float, sensitivity: str, steps: int = STEPS) -> tuple[Line, ...]:
    """The lines `rayleigh_flow` will use: one for the initial vector, one for each step."""
    each = share / (steps + 1)
    names = ["matrices for the initial vector", *(f"matrices of step {t}" for t in range(1, steps + 1))]
    return tuple(Line(f"flow {t}", name, each, sensitivity) for t, name in enumerate(names))


def rayleigh_flow(
    curator: SumDoor, query: BoundedSum, pair: Pair, n: float, *, steps: int = STEPS, sparsity: int | None = None
) -> Flow:
    """Leading generalised eigenvector; with `sparsity` only that many entries are kept at each step.

    `query` ends with the upper triangle of a second moment, so that the noise of its last entry, on the diagonal, is
    that of the matrices.
    """
    v = np.empty(0)
    for t in range(steps + 1):
        released = curator.answer(query, f"flow {t}")
        A, B = pair(released)
        if t == 0:
            edge = noise_edge(float(released.noise_std[-1]) / n, len(A))
            v = truncated(initial_vector(A, B, edge, edge / len(A)), sparsity)
        else:
            v = flow_step(v, A, B, STEP / max(float(np.linalg.norm(B, 2)), 1e-12), sparsity)
    return Flow(v, released)


def truncated(v: FloatArray, sparsity: int | None) -> FloatArray:
    """The largest entries of a vector, to unit length."""
    if sparsity is None or sparsity >= len(v):
        return v
    kept = np.zeros_like(v)
    largest = np.argsort(-np.abs(v), kind="stable")[:sparsity]
    kept[largest] = v[largest]
    return np.asarray(kept / max(float(np.linalg.norm(kept)), 1e-300))
