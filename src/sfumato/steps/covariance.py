"""A covariance by successive whitening: every release is made in coordinates that the last one made rounder.

Clipping along the radius keeps the shape of a spherical distribution and bends that of any other a little; and the
noise of a release is the same in every direction, so it is small against the variance only where all variances are
alike. Both mend themselves when the records are whitened again by what was just released (as in Biswas, Dong,
Kamath and Ullman 2020): what is left to find is closer to the identity each time.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.statistics.histograms import Bins
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.symmetric import inverse_root, noise_edge, split_moments
from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Covariance:
    """Mean and covariance of z, the coordinates of `whitening`, as released; the noise of a diagonal entry."""

    whitening: Whitening
    mean: FloatArray
    matrix: FloatArray
    noise_std: float


CENTRE_WEIGHT = 0.3
"""Of the sum, beside the second moment of the same release."""


def whole(whitening: Whitening) -> SlicedMoments:
    """Sum and second moment of all whitened records: one slice that everybody is in."""
    return SlicedMoments(whitening, Bins(np.empty(0)), np.zeros(1, dtype=np.int64), 1, CENTRE_WEIGHT)


@dataclass(frozen=True, slots=True)
class Measuring:
    """The step that measures a covariance once, under a name of its own."""

    name: str
    purpose: str
    share: float

    @property
    def lines(self) -> tuple[Line, ...]:
        """Sum and second moment in one release."""
        return (Line(self.name, self.purpose, self.share, "1.48 r^2 / 1.04 r^2", asks=SlicedMoments),)

    def run(self, whitening: Whitening, n: float) -> Asking[Covariance]:
        """Mean and covariance of the whitened, clipped records."""
        p = len(whitening.mean)
        released = yield from ask(whole(whitening), self.name)
        (mean,), second = split_moments(released.value / n)
        return Covariance(whitening, mean, second - np.outer(mean, mean), float(released.noise_std[p]) / n)


def rounder(found: Covariance) -> Whitening:
    """The whitening with what was found made round, scaled so that the mean squared length is p again."""
    old, p = found.whitening, len(found.mean)
    root = inverse_root(found.matrix, noise_edge(found.noise_std, p))
    matrix = root @ old.exact_matrix
    size = float(np.clip(np.trace(found.matrix) / p, 0.25, 4.0))
    back = old.inverse
    mean = np.clip(old.mean + back @ found.mean, -1.0, 1.0)
    return Whitening(old.source, matrix * np.sqrt(size), mean, old.cap)
