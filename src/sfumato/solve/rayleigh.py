"""Rayleigh flow and the Fantope start of Hu, Wang and others (DP-GEP): pure steps on noisy pairs (A, B)."""

import numpy as np

from sfumato.solve.symmetric import raised
from sfumato.typing import FloatArray

SMALLEST = 1e-12


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


def initial_vector(A: FloatArray, B: FloatArray, floor: float, penalty: float, rounds: int = 200) -> FloatArray:
    """Leading eigenvector of P, which maximises ``tr(A P) - penalty |P|_1`` with ``B^1/2 P B^1/2`` in the Fantope.

    B is noisy and may be indefinite, so its eigenvalues are raised to `floor` before the root is taken (the paper
    takes the root of B as it is). By ADMM; the lasso step is linearised: one proximal gradient step each round.

    >>> np.abs(initial_vector(np.diag([3.0, 1.0, 0.0]), np.eye(3), 0.1, 0.01)).round(3)
    array([1., 0., 0.])
    """
    size = max(float(np.linalg.norm(A, 2)), SMALLEST)
    root = _root(raised(B, max(floor, SMALLEST)))
    weight = size / max(float(np.linalg.norm(root, 2)) ** 2, SMALLEST)  # ADMM's own parameter, in the units of A
    pace = weight * float(np.linalg.norm(root, 2)) ** 4
    P, H, dual = (np.zeros_like(A) for _ in range(3))
    for _ in range(rounds):
        gradient = weight * root @ (root @ P @ root - H + dual) @ root - A
        P = P - gradient / pace
        P = np.sign(P) * np.maximum(np.abs(P) - penalty / pace, 0.0)
        mapped = root @ P @ root
        H = fantope(mapped + dual, 1)
        dual = dual + mapped - H
    return np.asarray(np.linalg.eigh((P + P.T) / 2.0)[1][:, -1])


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


def _root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(values)) @ vectors.T)
