"""Linear discriminant analysis from released class sums and a released second moment."""

from dataclasses import dataclass

import numpy as np

from sfumato.solve.symmetric import inverse_root, raised
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ClassMoments:
    """Shares (H,), means (H, p) about the overall mean, and covariance (p, p) of all records, as released.

    `mean_noise` (H,) is the standard deviation of each entry of the means, `floor` the edge of the covariance's
    noise.
    """

    shares: FloatArray
    means: FloatArray
    covariance: FloatArray
    mean_noise: FloatArray
    floor: float

    @property
    def between(self) -> FloatArray:
        """Covariance of the class means, with the expected square of their noise removed."""
        bias = float(self.shares @ self.mean_noise**2)
        return np.asarray((self.means.T * self.shares) @ self.means - bias * np.eye(self.means.shape[1]))

    @property
    def within(self) -> FloatArray:
        """Pooled covariance within classes, no eigenvalue below the edge of the noise."""
        return raised(self.covariance - self.between, self.floor)


@dataclass(frozen=True, slots=True)
class Rule:
    """The discriminant rule: class h has centre ``centres[h]``, spread ``root^-2`` and log prior ``priors[h]``."""

    centres: FloatArray
    root: FloatArray
    priors: FloatArray

    def scores(self, coordinates: FloatArray) -> FloatArray:
        """Log posterior of each class up to a constant: (n, H).

        >>> rule = Rule(np.array([[0.0], [2.0]]), np.eye(1), np.log([0.5, 0.5]))
        >>> rule.nearest(np.array([[0.4], [1.7]]))
        array([0, 1])
        """
        scaled, centres = coordinates @ self.root, self.centres @ self.root
        return np.asarray(scaled @ centres.T - (centres**2).sum(axis=1) / 2.0 + self.priors)

    def nearest(self, coordinates: FloatArray) -> IntArray:
        """Class with the highest score."""
        return np.asarray(self.scores(coordinates).argmax(axis=1), dtype=np.int64)


def rule(moments: ClassMoments, back: FloatArray, directions: FloatArray) -> Rule:
    """The rule in the coordinates of `directions` (k, p); ``x = back z`` maps the moments there."""
    to_t = directions @ back
    within = to_t @ moments.within @ to_t.T
    root = inverse_root(within, max(1e-12 * float(np.trace(within)), 1e-300))  # guarded against rounding only
    return Rule(moments.means @ to_t.T, root, np.log(np.maximum(moments.shares, 1e-12)))
