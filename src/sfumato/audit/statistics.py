"""Statistics an attacker may use to tell outputs on D from outputs on D', learnt from examples."""

from collections import Counter
from collections.abc import Callable

import numpy as np

from sfumato.typing import FloatArray

Statistic = Callable[[FloatArray], FloatArray]
"""Maps outputs (runs, k) to scores (runs,): large on D, small on D'."""

_WIDEST = 60  # features up to which a full covariance is learnt


def learn(a: FloatArray, b: FloatArray, hint: FloatArray | None = None) -> dict[str, Statistic]:
    """Candidate statistics from outputs `a` on D and `b` on D'.

    Parameters
    ----------
    a, b : ndarray of shape (runs, k)
    hint : ndarray of shape (k,), optional
        Difference of the outputs under equal noise: for additive noise, exactly what one record changes.
    """
    spread = _spread(a, b)
    found: dict[str, Statistic] = {}  # the first of equals is taken
    if hint is not None:
        found["coupled difference"] = _linear(hint / spread)
    found["mean difference"] = _linear((a.mean(0) - b.mean(0)) / spread)
    if 1 < a.shape[1] <= _WIDEST and len(a) > 10 * a.shape[1]:
        pooled = (np.cov(a.T) + np.cov(b.T)) / 2
        pooled += 1e-6 * np.diag(spread)
        found["linear discriminant"] = _linear(np.linalg.solve(pooled, a.mean(0) - b.mean(0)))
    found["quadratic"] = _quadratic(a, b)
    found["spread"] = _spread_ratio(a, b)
    if len(np.unique(np.concatenate([a, b]), axis=0)) < len(a) // 2:
        found["exact values"] = _atoms(a, b)
    return found


def _spread(a: FloatArray, b: FloatArray) -> FloatArray:
    both = (a.var(0) + b.var(0)) / 2
    shift = (a.mean(0) - b.mean(0)) ** 2
    # A coordinate without noise would divide by zero; if it also differs, it decides everything.
    floor = 1e-12 * max(float(both.max()), float(shift.max()), 1e-300)
    return np.asarray(np.maximum(both, floor))


def _linear(weights: FloatArray) -> Statistic:
    return lambda outputs: np.asarray(outputs @ weights)


def _quadratic(a: FloatArray, b: FloatArray) -> Statistic:
    """Log-likelihood ratio of independent Gaussians."""
    both = _spread(a, b)
    va, vb = (np.maximum(v.var(0), 1e-9 * both) for v in (a, b))
    ma, mb = a.mean(0), b.mean(0)
    return lambda outputs: np.asarray(((outputs - mb) ** 2 / vb - (outputs - ma) ** 2 / va).sum(axis=1))


def _spread_ratio(a: FloatArray, b: FloatArray) -> Statistic:
    """How far an output lies from the common middle along the direction whose spread differs most."""
    middle = (a.mean(0) + b.mean(0)) / 2
    scale = np.sqrt(_spread(a, b))
    if a.shape[1] > _WIDEST or len(a) <= 10 * a.shape[1]:
        directions = np.eye(a.shape[1])
    else:
        difference = np.cov((a / scale).T) - np.cov((b / scale).T)
        directions = np.linalg.eigh(np.atleast_2d(difference))[1]
    gap = ((((a - middle) / scale) @ directions) ** 2).mean(0) - ((((b - middle) / scale) @ directions) ** 2).mean(0)
    j = int(np.abs(gap).argmax())
    sign = 1.0 if gap[j] > 0 else -1.0
    return lambda outputs: np.asarray(sign * np.abs(((outputs - middle) / scale) @ directions[:, j]))


def _atoms(a: FloatArray, b: FloatArray) -> Statistic:
    """Log-ratio of how often exactly this output was seen: for index sets, labels and other discrete outputs."""
    seen_a, seen_b = (Counter(row.tobytes() for row in np.ascontiguousarray(v)) for v in (a, b))

    def score(outputs: FloatArray) -> FloatArray:
        keys = [row.tobytes() for row in np.ascontiguousarray(outputs)]
        return np.array([np.log((seen_a[key] + 0.5) / (seen_b[key] + 0.5)) for key in keys])

    return score
