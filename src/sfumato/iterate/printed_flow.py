"""DP-Rayleigh Flow with the printed noise of Hu, Xiang, Liu and Wang: flagged, and never calibrated to a budget."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from sfumato.iterate.rayleigh import STEP, truncated
from sfumato.privacy.printed import Printed
from sfumato.solve.rayleigh import flow_step, initial_vector
from sfumato.solve.symmetric import upper_to_full
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray

FLOW_REASON = (
    "calibration='paper': the paper names no sensitivities, so those printed for sliced inverse regression are taken, "
    "whose proof assumes large slices; initial vector and flow spend rho each; use calibration='tight'."
)
COVARIANCE, KERNEL = 2.0, 7.0
"""Sensitivities printed for a covariance and for a kernel of slice means, in squared record lengths over n."""

Matrices = Callable[..., tuple[FloatArray, FloatArray]]
"""From exact sums to the exact pair (A, B)."""


def zcdp_of(epsilon: float, delta: float, rho: float | None = None) -> float:
    """rho itself if given, else that at which ``rho + 2 sqrt(rho log(1/delta))`` is epsilon: the paper's Lemma 1.

    >>> rho = zcdp_of(1.0, 1e-6)
    >>> round(rho + 2 * math.sqrt(rho * math.log(1e6)), 12)
    1.0
    """
    if rho is not None:
        return rho
    tail = math.log(1.0 / delta)
    return (math.sqrt(tail + epsilon) - math.sqrt(tail)) ** 2


def printed_flow(
    door: Printed,
    queries: Sequence[BoundedSum],
    pair: Matrices,
    scales: tuple[float, float],
    n: int,
    *,
    rho: float,
    start: FloatArray | None = None,
    sparsity: int | None = None,
) -> FloatArray:
    """Algorithms 1 and 3, from Algorithm 2's initial vector unless `start` is given; ``m = floor(log n)`` steps.

    `scales` are the sensitivities of A and B times n (zero for B: it is the identity). Noise has the same standard
    deviation on and off the diagonal, ``C sqrt(m / rho) / n`` in a step and ``C / (n sqrt(2 rho))`` at the start.
    """
    steps = max(int(math.log(n)), 1)

    def noisy(level: float, why: str) -> tuple[FloatArray, FloatArray]:
        A, B = (
            door.noised(queries, _upper(pair, which), scale * level / n, why).value if scale else None
            for which, scale in enumerate(scales)
        )
        assert A is not None
        size = int((math.sqrt(8 * len(A) + 1) - 1) / 2 + 0.5)
        return upper_to_full(A, size), np.eye(size) if B is None else upper_to_full(B, size)

    v = start
    if v is None:
        A, B = noisy(1.0 / math.sqrt(2.0 * rho), "initial vector")
        edge = 2.0 * max(scales) / (n * math.sqrt(2.0 * rho)) * math.sqrt(len(A))
        v = initial_vector(A, B, min(edge, 0.5 * float(np.linalg.norm(B, 2))), edge / len(A))
    v = truncated(v / max(float(np.linalg.norm(v)), 1e-300), sparsity)
    for _ in range(steps):
        A, B = noisy(math.sqrt(steps / rho), "matrices of a step")
        v = flow_step(v, A, B, STEP / max(float(np.linalg.norm(B, 2)), 1e-12), sparsity)
    return v


def _upper(pair: Matrices, which: int) -> Callable[..., FloatArray]:
    def of(*totals: FloatArray) -> FloatArray:
        matrix = pair(*totals)[which]
        return np.asarray(matrix[np.triu_indices(len(matrix))])

    return of
