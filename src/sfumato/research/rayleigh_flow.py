"""DP-Rayleigh Flow and its truncated form (Hu, Xiang, Liu and Wang): the pair (A, B) of ``A v = lambda B v``, A the
variance looked for and B the variance it is compared with, noised afresh at every step.

Kept for comparison. Each of the m + 1 releases gets ``1 / (m + 1)`` of the budget, hence sqrt(m + 1) times the noise of
a single one. Short steps average part of that away again; one release that is solved exactly needs none of it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from sfumato.methods.about import About
from sfumato.methods.base import Session
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.curator import PaperCurator
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.research.printed_noise import CALIBRATED, open_printed, paper_about
from sfumato.schema import Reader
from sfumato.settings.central import one_blas_thread
from sfumato.steps.symmetric import noise_edge, raised, split_moments, upper_to_full
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray

STEPS, STEP = 10, 0.5
SMALLEST = 1e-12
CONVERGED, ROUNDS = 1e-6, 1_000
"""Relative change at which ADMM stops, and its most rounds: a B of condition 1e4 takes some hundreds."""
FLOW = "Rayleigh flow of Hu, Xiang, Liu and Wang"
TRUNCATED_FLOW = f"truncated {FLOW}"
FLOW_REASON = (
    "calibration='paper': the paper names no sensitivities, so those printed for sliced inverse regression are taken, "
    "whose proof assumes large slices; the flow spends rho and the initial vector 2 rho; use calibration='tight'."
)
COVARIANCE, KERNEL = 2.0, 7.0
"""Sensitivities printed for a covariance and for a kernel of slice means, in squared record lengths over n."""

Pair = Callable[[Release], tuple[FloatArray, FloatArray]]
"""From the released sums to (A, B); those of the usual problems are below."""
Matrices = Callable[..., tuple[FloatArray, FloatArray]]
"""From exact sums to the exact pair (A, B)."""


@dataclass(eq=False, repr=False)
class Flowing:
    """Parameters of an estimator by this flow: there is no other method, and noise is correct or as printed."""

    method: str = field(default="rayleigh-flow", init=False)
    _: KW_ONLY
    calibration: str = "tight"


def flow_about(
    title: str,
    make: Callable[[], type],
    parameters: Mapping[str, Reader] = CALIBRATED,
    words: str = FLOW,
    **others: Any,
) -> About:
    """What an estimator by this flow says of itself."""
    return paper_about(title, words, "rayleigh-flow", make, parameters=parameters, **others)


def flow_step(v: FloatArray, A: FloatArray, B: FloatArray, step: float, sparsity: int | None = None) -> FloatArray:
    """``v + (step / q) (A v - q B v)``, q the Rayleigh quotient, to unit length; its largest entries alone if sparse.

    Under noise the quotient may be zero or negative; it is then taken as positive and small against A, so that the
    step is a power step (the paper divides by it unguarded).

    >>> v = np.ones(2) / np.sqrt(2)
    >>> for _ in range(50):
    ...     v = flow_step(v, np.diag([2.0, 1.0]), np.eye(2), 0.5)
    >>> v.round(4)
    array([1., 0.])
    """
    floor = max(float(np.abs(A).max()) * 1e-3, SMALLEST)
    quotient = max(float(v @ A @ v) / max(float(v @ B @ v), SMALLEST), floor)
    moved = v + step / quotient * (A @ v - quotient * (B @ v))
    if sparsity is not None and sparsity < len(moved):
        moved[np.argsort(-np.abs(moved), kind="stable")[sparsity:]] = 0.0
    length = float(np.linalg.norm(moved))
    return moved / length if length > SMALLEST else v


def initial_vector(A: FloatArray, B: FloatArray, floor: float, penalty: float) -> FloatArray:
    """The first of `initial_vectors`.

    >>> np.abs(initial_vector(np.diag([3.0, 1.0, 0.0]), np.eye(3), 0.1, 0.01)).round(3)
    array([1., 0., 0.])
    """
    with one_blas_thread():  # hundreds of rounds with small matrices
        return initial_vectors(A, B, floor, penalty, 1)[:, 0]


def initial_vectors(A: FloatArray, B: FloatArray, floor: float, penalty: float, k: int) -> FloatArray:
    """Leading k eigenvectors (p, k) of the P that maximises ``tr(A P) - penalty |P|_1``, P in B's Fantope.

    That is ``B^1/2 P B^1/2`` has eigenvalues from 0 to 1 that add up to k at most.

    B is noisy and may be indefinite, so its eigenvalues are raised to `floor` before the root is taken (the paper
    takes the root of B as it is). By ADMM, which stops as the paper's does, when P moves by less than `CONVERGED`, and
    what is split agrees. The lasso is split off, too (``P = Q``), so that P is found exactly in each round: its
    equations ``v B P B + u P = ...`` are diagonal in the eigenvectors of B, however ill-conditioned B is.
    """
    size = max(float(np.linalg.norm(A, 2)), SMALLEST)
    values, vectors = np.linalg.eigh(raised(B, max(floor, SMALLEST)))
    values = values / values[-1]
    root = (vectors * np.sqrt(values)) @ vectors.T
    squares = np.outer(values, values)
    P, H, Q, dual, lasso_dual = (np.zeros_like(A) for _ in range(5))
    v, u = 1.0, 1.0  # weights of the two splits, kept so that neither lags behind the other
    for t in range(ROUNDS):
        right = A / size + v * root @ (H - dual) @ root + u * (Q - lasso_dual)
        new = vectors @ ((vectors.T @ (right + right.T) @ vectors) / (2.0 * (v * squares + u))) @ vectors.T
        mapped, before = root @ new @ root, (H, Q)
        H = fantope(mapped + dual, k)
        Q = new + lasso_dual
        Q = np.sign(Q) * np.maximum(np.abs(Q) - penalty / (size * u), 0.0)
        dual, lasso_dual = dual + mapped - H, lasso_dual + new - Q
        apart = float(np.linalg.norm(mapped - H)), float(np.linalg.norm(new - Q))
        moved, P = float(np.linalg.norm(new - P)), new
        if max(moved, *apart) <= CONVERGED * max(float(np.linalg.norm(P)), SMALLEST):
            break
        if t % 20 == 19:
            lag = v * float(np.linalg.norm(root @ (H - before[0]) @ root)), u * float(np.linalg.norm(Q - before[1]))
            turn, lasso_turn = (
                2.0 if a > 10.0 * b else 0.5 if b > 10.0 * a else 1.0 for a, b in zip(apart, lag, strict=True)
            )
            v, u, dual, lasso_dual = v * turn, u * lasso_turn, dual / turn, lasso_dual / lasso_turn
    return np.asarray(np.linalg.eigh((P + P.T) / 2.0)[1][:, ::-1][:, :k])


def fantope(matrix: FloatArray, k: int) -> FloatArray:
    """Nearest symmetric matrix with eigenvalues in [0, 1] that add up to k at most.

    >>> fantope(np.diag([3.0, 0.5, -1.0]), 1).diagonal().round(6)
    array([1., 0., 0.])
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    # What is left of their sum after a shift is linear between these shifts.
    shifts = np.unique(np.maximum(np.concatenate([[0.0], values, values - 1.0]), 0.0))
    left = np.clip(values - shifts[:, None], 0.0, 1.0).sum(axis=1)
    shift = float(np.interp(-k, -left, shifts))
    return np.asarray((vectors * np.clip(values - shift, 0.0, 1.0)) @ vectors.T)


def mean_and_covariance(sums: FloatArray, n: float) -> tuple[FloatArray, FloatArray]:
    """Of the sum of records and the upper triangle of their second moment."""
    (mean,), second = split_moments(sums / n)
    return mean, second - np.outer(mean, mean)


def principal_pair(sums: FloatArray, n: float) -> tuple[FloatArray, FloatArray]:
    """Covariance against the identity."""
    covariance = mean_and_covariance(sums, n)[1]
    return covariance, np.eye(len(covariance))


def canonical_pair(sums: FloatArray, first: int, n: float) -> tuple[FloatArray, FloatArray]:
    """Cross-covariance of the first columns with the others, *both* ways, against the two covariances.

    >>> A, B = canonical_pair(np.array([0.0, 0.0, 1.0, 0.5, 1.0]), 1, 1.0)
    >>> A.tolist(), B.tolist()
    ([[0.0, 0.5], [0.5, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    """
    covariance = mean_and_covariance(sums, n)[1]
    crossed = covariance.copy()
    crossed[:first, :first] = 0.0
    crossed[first:, first:] = 0.0
    return crossed, covariance - crossed


def plan_flow(share: float, sensitivity: str) -> tuple[Line, ...]:
    """The lines `rayleigh_flow` will use: one for the initial vector, one for each step."""
    each = share / (STEPS + 1)
    names = ["matrices for the initial vector", *(f"matrices of step {t}" for t in range(1, STEPS + 1))]
    return tuple(Line(f"flow {t}", name, each, sensitivity) for t, name in enumerate(names))


def rayleigh_flow(
    query: BoundedSum, pair: Pair, n: float, *, sparsity: int | None = None
) -> Asking[tuple[FloatArray, Release]]:
    """Leading generalised eigenvector (p,), of length one, and the release of the last step.

    With `sparsity` only that many entries are kept at each step.

    `query` ends with the upper triangle of a second moment, so that the noise of its last entry, on the diagonal, is
    that of the matrices.
    """
    v = np.empty(0)
    for t in range(STEPS + 1):
        released = yield from ask(query, f"flow {t}")
        A, B = pair(released)
        if t == 0:
            edge = noise_edge(float(released.noise_std[-1]) / n, len(A))
            v = truncated(initial_vector(A, B, edge, edge / len(A)), sparsity)
        else:
            v = flow_step(v, A, B, STEP / max(float(np.linalg.norm(B, 2)), 1e-12), sparsity)
    return v, released


def truncated(v: FloatArray, sparsity: int | None) -> FloatArray:
    """The largest entries of a vector, to unit length."""
    if sparsity is None or sparsity >= len(v):
        return v
    kept = v.copy()
    kept[np.argsort(-np.abs(v), kind="stable")[sparsity:]] = 0.0
    return np.asarray(kept / max(float(np.linalg.norm(kept)), 1e-300))


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
    door: PaperCurator,
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


def flow_as_printed(
    session: Session, estimator: Any, queries: Sequence[BoundedSum], pair: Matrices, scales: tuple[float, float]
) -> FloatArray:
    """`printed_flow` of an estimator's own fit: records as they are, nothing promised."""
    door = open_printed(session, estimator, FLOW_REASON, takes_rho=True)
    rho = zcdp_of(estimator.epsilon, estimator.delta, estimator.rho)
    return printed_flow(door, queries, pair, scales, session.n_records or 0, rho=rho)


def _upper(pair: Matrices, which: int) -> Callable[..., FloatArray]:
    def of(*totals: FloatArray) -> FloatArray:
        matrix = pair(*totals)[which]
        return np.asarray(matrix[np.triu_indices(len(matrix))])

    return of
