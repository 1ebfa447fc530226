"""Linear discriminant analysis from released class sums and a released second moment."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line, OneLine
from sfumato.release import Release
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.dimension import Choice, choose
from sfumato.steps.ranks import MOST_CLASSES, Ranks
from sfumato.steps.symmetric import inverse_root, noise_edge, raised, split_moments
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


CLASS_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class Discriminant:
    """Coefficients on ``root z`` whose left singular vectors are the discriminant directions.

    `used` are the codes of the classes found, in the order of `moments`.
    """

    coefficients: FloatArray
    root: FloatArray
    noise_std: float
    eigenvalues: FloatArray
    choice: Choice
    moments: ClassMoments
    mean: FloatArray
    used: IntArray


@dataclass(frozen=True, slots=True)
class ClassMeans(OneLine):
    """The step that finds the directions in which class means differ most."""

    line: ClassVar[Line] = Line("classes", "class sums and second moment", 1.0, "2.12 r / 1.41 r", asks=SlicedMoments)

    def run(
        self, whitening: Whitening, ranks: Ranks, n_codes: int, n: float, n_directions: int | None
    ) -> Asking[Discriminant]:
        """Class means and covariance from one release, and the directions in which the means differ most.

        The first `n_codes` codes are classes; records of any other code count for the covariance only. A class is
        taken to have at least a quarter of its fair share of records, so that noise over its size stays bounded.
        """
        used, query = class_question(whitening, ranks, n_codes)
        released = yield from ask(query, "classes")
        moments, mean = class_moments(released, ranks, used, n)
        root = inverse_root(moments.covariance, moments.floor)
        coefficients = root @ (moments.means.T * np.sqrt(moments.shares))
        coefficients = np.pad(coefficients, ((0, 0), (0, max(0, (n_directions or 1) - len(used)))))
        noise_std = float(np.sqrt((moments.shares * moments.mean_noise**2).mean()))
        choice = choose(coefficients, noise_std, n, n_directions)
        explained = np.clip(choice.singular_values**2 - noise_std**2 * len(used), 0.0, 1.0)[: choice.n_directions]
        return Discriminant(coefficients, root, noise_std, explained, choice, moments, mean, used)


def class_question(whitening: Whitening, ranks: Ranks, n_codes: int) -> tuple[IntArray, SlicedMoments]:
    """Codes of the classes found, and the sums by class and second moment to ask for."""
    used, slice_of = _in_use(ranks, n_codes)
    return used, SlicedMoments(whitening, ranks.bins, slice_of, len(used) + 1, CLASS_WEIGHT)


def class_moments(released: Release, ranks: Ranks, used: IntArray, n: float) -> tuple[ClassMoments, FloatArray]:
    """Class moments and the mean, from class sums (others last) and the second moment."""
    sums, second = split_moments(released.value, len(used) + 1)
    mean = sums.sum(axis=0) / n
    shares = np.maximum(ranks.probabilities[used], 1e-12)
    sizes = n * np.maximum(shares, 0.25 / len(used))
    moments = ClassMoments(
        shares / shares.sum(),
        # centred before it is divided: a class that nobody has differs from the others by noise alone
        (sums[:-1] - n * shares[:, None] * mean) / sizes[:, None],
        second / n - np.outer(mean, mean),
        float(released.noise_std[0]) / sizes,
        noise_edge(float(released.noise_std[sums.size]) / n, len(mean)),
    )
    return moments, mean


def _in_use(ranks: Ranks, n_codes: int) -> tuple[IntArray, IntArray]:
    """Classes whose released share is positive, the likeliest 64 at most, and the slice of every code.

    The records of all other codes are in a slice of their own, the last, which nobody looks at.
    """
    order = np.argsort(-ranks.probabilities[:n_codes], kind="stable")[:MOST_CLASSES]
    used = np.sort(order[ranks.probabilities[order] > 0])
    used = used if len(used) else np.zeros(1, dtype=np.int64)
    slice_of = np.full(len(ranks.probabilities), len(used), dtype=np.int64)
    slice_of[used] = np.arange(len(used))
    return used, slice_of
