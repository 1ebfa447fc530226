"""The pair (A, B) of each generalised eigenproblem, from released sums: principal, canonical, discriminant directions.

``A v = lambda B v`` with A the variance looked for and B the variance it is compared with.
"""

import numpy as np

from sfumato.solve.symmetric import upper_to_full
from sfumato.typing import FloatArray


def mean_and_covariance(sums: FloatArray, p: int, n: float) -> tuple[FloatArray, FloatArray]:
    """Of slice sums (one slice or several) and the upper triangle of the second moment."""
    mean = sums[: -p * (p + 1) // 2].reshape(-1, p).sum(axis=0) / n
    return mean, upper_to_full(sums[-p * (p + 1) // 2 :] / n, p) - np.outer(mean, mean)


def principal_pair(sums: FloatArray, p: int, n: float) -> tuple[FloatArray, FloatArray]:
    """Covariance against the identity."""
    return mean_and_covariance(sums, p, n)[1], np.eye(p)


def canonical_pair(sums: FloatArray, size: int, first: int, n: float) -> tuple[FloatArray, FloatArray]:
    """Cross-covariance of the first columns with the others, *both* ways, against the two covariances.

    >>> A, B = canonical_pair(np.array([0.0, 0.0, 1.0, 0.5, 1.0]), 2, 1, 1.0)
    >>> A.tolist(), B.tolist()
    ([[0.0, 0.5], [0.5, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    """
    covariance = mean_and_covariance(sums, size, n)[1]
    crossed = covariance.copy()
    crossed[:first, :first] = 0.0
    crossed[first:, first:] = 0.0
    return crossed, covariance - crossed
