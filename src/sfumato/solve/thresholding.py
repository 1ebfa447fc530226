"""Iterative hard thresholding: sparse least squares on numbers that are already public."""

from dataclasses import dataclass

import numpy as np

from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Squares:
    """Everything least squares needs of a table: ``x^T x``, ``x^T y``, ``y^T y``. Parts of a table add up."""

    gram: FloatArray
    cross: FloatArray
    square: float

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> "Squares":
        """Of rows x (n, p) and y (n,)."""
        return cls(x.T @ x, x.T @ y, float(y @ y))

    def __add__(self, other: "Squares") -> "Squares":
        return Squares(self.gram + other.gram, self.cross + other.cross, self.square + other.square)

    def __sub__(self, other: "Squares") -> "Squares":
        return Squares(self.gram - other.gram, self.cross - other.cross, self.square - other.square)

    def loss(self, theta: FloatArray) -> float:
        """``|y - x theta|^2``."""
        return float(self.square - 2.0 * (self.cross @ theta) + theta @ (self.gram @ theta))


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Coefficients and how many steps they took."""

    theta: FloatArray
    steps: int


def threshold(data: Squares, s: int, steps: int = 50, radius: float | None = None) -> Sparse:
    """Coefficients (p,) with at most s non-zero, by hard thresholding pursuit (Foucart 2011).

    Each step moves downhill, ``theta + eta x^T (y - x theta)`` (the printed DP-IHT has the opposite sign), keeps the
    s largest entries and fits them by least squares. The length eta is what exact line search along the s best
    newcomers asks for, ``|g|^2 / |x g|^2``: it comes from the features' own spectrum. The best fit seen is
    returned, shortened to `radius` if that is given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((200, 30))
    >>> threshold(Squares.of(x, 2.0 * x[:, 4] - x[:, 9]), 2).theta.nonzero()[0]
    array([4, 9])
    """
    best, least, done = np.zeros(len(data.cross)), np.inf, 0
    support = _largest(data.cross, s)
    for _ in range(max(steps, 1)):
        theta = _fitted(data, support)
        loss = data.loss(theta)
        done += 1
        if not loss < least:
            break
        best, least = theta, loss
        gradient = data.cross - data.gram[:, support] @ theta[support]
        newcomers = _largest(gradient, s)  # on the support itself the gradient of a least-squares fit is zero
        g = gradient[newcomers]
        curvature = float(g @ data.gram[np.ix_(newcomers, newcomers)] @ g)
        eta = float(g @ g) / curvature if curvature > 0 else 0.0
        support = _largest(theta + eta * gradient, s)
    return Sparse(_shortened(best, radius), done)


def _fitted(data: Squares, support: IntArray) -> FloatArray:
    theta = np.zeros(len(data.cross))
    theta[support] = np.linalg.lstsq(data.gram[np.ix_(support, support)], data.cross[support], rcond=1e-10)[0]
    return theta


def _largest(values: FloatArray, s: int) -> IntArray:
    return np.sort(np.argpartition(-np.abs(values), min(s, len(values)) - 1)[:s])


def _shortened(theta: FloatArray, radius: float | None) -> FloatArray:
    length = float(np.linalg.norm(theta))
    return theta if radius is None or length <= radius else theta * (radius / length)
