"""What to believe of the other fits: directions along which y changes the spread of x, components, and pairs."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.forecast.assessment import PILOTS, Assessment, first_of, sampled, seeded
from sfumato.forecast.belief import Belief
from sfumato.forecast.described import (
    HIDDEN,
    ROUNDS,
    SHAPE,
    TAMEST,
    Curves,
    Groups,
    describe_curves,
    heavy,
    lengths_of,
    possible_kurtosis,
    power_of,
    skewed,
    stretched,
)
from sfumato.forecast.evidence import Evidence, Seen
from sfumato.forecast.populations import POINTS
from sfumato.privacy.asking import drive
from sfumato.records import Records
from sfumato.steps.dimension import Choice
from sfumato.steps.subspace import orthonormal_rows, unit_rows
from sfumato.steps.symmetric import without_noise
from sfumato.typing import FloatArray

STRONGEST = 0.97
"""Largest correlation of a pair."""
POSSIBLE = 1e-4, 4.0
"""Square of what changes of a score are multiplied by, over what was seen."""


def orthonormal_in_order(rows: FloatArray) -> FloatArray:
    """Rows of length one at right angles, each on its side; the first j span what they spanned before.

    >>> orthonormal_in_order(np.array([[2.0, 0.0], [1.0, -3.0]]))
    array([[ 1.,  0.],
           [ 0., -1.]])
    """
    return orthonormal_rows(unit_rows(rows)) + 0.0


@dataclass(frozen=True, eq=False)
class DiscriminantBelief(Belief):
    """Of directions that tell classes apart, at right angles in the units of x."""

    def in_x(self, found: Seen) -> FloatArray:
        return orthonormal_in_order(found.rows(self._k) / self.half_width)


@dataclass(frozen=True, slots=True)
class Factors:
    """What the signal of a pilot is multiplied by, so that about the observed numbers come out.

    Attributes
    ----------
    squares : ndarray of shape (r,)
        Their squares, as they came out.
    errors : ndarray of shape (fits, r)
        By which such numbers are off, from fit to fit.
    """

    squares: FloatArray
    errors: FloatArray

    @property
    def likely(self) -> FloatArray:
        """The factors, within what is possible."""
        return _root_within(self.squares)

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """Factors that the releases leave possible: of two directions the second may be the stronger."""
        return _root_within(self.squares - self.errors[rng.integers(len(self.errors))])


def _root_within(squares: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.clip(squares, *POSSIBLE)))


@dataclass(frozen=True, eq=False)
class RowsFound(Assessment):
    """An assessment whose fits give directions as they are, (k, p) in half widths, and the numbers to be tested.

    Parameters
    ----------
    evidence : Evidence
    choice : Choice
    half_width : ndarray of shape (p,)
        What half a width is worth in the units of x; of two tables, the columns of both.
    testable : bool
    """

    evidence: Evidence
    choice: Choice
    half_width: FloatArray
    testable: bool = field(default=True, kw_only=True)

    def look(self, points: Records, rng: np.random.Generator) -> FloatArray:
        shown: FloatArray = drive(self.evidence.refit.look(), sampled(self.evidence, points, rng))
        return shown

    def rows(self, found: FloatArray) -> FloatArray:
        return found

    def in_x(self, found: FloatArray) -> FloatArray:
        return orthonormal_in_order(found / self.half_width)

    def mended(self, observed: FloatArray, nothing: Records, pilot: Records, power: float) -> Factors:
        """What the signal of a pilot is multiplied by.

        What comes out, to some power, is about ``a signal^2 + b``: b on stand-ins without signal.
        """
        rng, k = seeded(self.evidence), len(observed)
        none, some = (
            np.maximum([first_of(self.look(points, rng), k) for _ in range(PILOTS)], 0.0) ** power
            for points in (nothing, pilot)
        )
        least, middle = np.median(none, axis=0), np.median(some, axis=0)
        gain = np.maximum(middle - least, 0.05 * np.maximum(middle, 1e-12))
        return Factors((np.maximum(observed, 0.0) ** power - least) / gain, (some - middle) / gain)


@dataclass(frozen=True, eq=False)
class CurvedBelief(RowsFound):
    """Of directions along which mean and spread of x depend on y: SAVE, directional regression, Hessian directions.

    Parameters
    ----------
    curves : Curves
        Of the directions found and of the next one, as they were released.
    power : float
        Of the tested numbers that is quadratic in the changes.
    """

    curves: Curves
    power: float = 1.0

    @property
    def own(self) -> FloatArray:
        return self.curves.directions[:, : self._k].T

    @property
    def most(self) -> int:
        """Kernels are seen above their middle eigenvalue."""
        return max(len(self.half_width) // 2, 1)

    def null(self, j: int, rng: np.random.Generator) -> Records:
        factors = np.zeros(len(self.curves.directions.T))
        factors[:j] = self._factors.likely[:j]
        return describe_curves(self.evidence, rng, self.curves.times(factors), tested=True, least=HIDDEN).points

    @cached_property
    def _factors(self) -> Factors:
        """By how much the released changes of each score are to be multiplied."""
        rng, k = seeded(self.evidence), len(self.curves.directions.T)
        nothing, pilot = (
            describe_curves(self.evidence, rng, self.curves.times(np.full(k, f))).points for f in (0.0, 1.0)
        )
        return self.mended(self.choice.singular_values[:k], nothing, pilot, self.power)

    def possible(self, rng: np.random.Generator, flat: bool) -> Records:
        curves = self.curves.times(self._factors.drawn(rng))
        return describe_curves(self.evidence.doubted(rng), rng, curves, least=HIDDEN, flat=flat).points


@dataclass(frozen=True, slots=True)
class Known:
    """Released mean (p,) and covariance, in half widths, and how noisy that is.

    The covariance is ``root (values + noise) root'``: `noise` (p, p) is the standard deviation of each entry off the
    diagonal; on it, times sqrt(2).
    """

    mean: FloatArray
    values: FloatArray
    root: FloatArray
    noise: FloatArray

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """A covariance that the releases leave possible."""
        error = np.triu(rng.standard_normal(self.noise.shape))
        error = error + np.triu(error, 1).T
        error[np.diag_indices(len(error))] *= np.sqrt(2.0)
        return positive(self.root @ (self.values + self.noise * error) @ self.root.T)


def positive(matrix: FloatArray) -> FloatArray:
    """The matrix with no variance below a thousandth of the mean one."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    floor = max(1e-3 * float(np.abs(values).mean()), 1e-300)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def spread_points(
    evidence: Evidence, mean: FloatArray, covariance: FloatArray, rng: np.random.Generator, tested: bool = False
) -> Records:
    """Points with that mean and covariance, in half widths, and the released lengths; there is no response.

    Where something is `tested` tails are as heavy as the released distances leave likely, or strongly skewed where
    there are none: bounds alone would leave any tail possible.
    """
    p, size = len(mean), max((4 if tested else 1) * POINTS, 20 * len(mean))
    noise = _tailed(size, _kurtosis(evidence, covariance, rng), rng) if tested else skewed(size, p, SHAPE, rng)
    lengths, root = lengths_of(evidence, size), power_of(covariance, 0.5)
    stretch, together = np.ones(size), Groups.of(np.zeros(size, dtype=np.int64))
    for left in reversed(range(ROUNDS)):
        x = mean + together.standardised(noise * stretch[:, None]) @ root
        if left and lengths is not None:
            stretch = stretched(stretch, np.linalg.norm(x, axis=1), lengths)
    return Records(np.clip(x, -1.0, 1.0), np.zeros(size))


def _kurtosis(evidence: Evidence, covariance: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Of each feature, as its distances and, with that variance, its box leave it likely."""
    if evidence.reading is None:
        return np.full(len(covariance), TAMEST)
    kurtosis, farthest = possible_kurtosis(evidence, rng)
    return np.minimum(kurtosis, farthest**2 / covariance.diagonal())


def _tailed(size: int, kurtosis: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Coordinates with tails as heavy as that, each rare events or skewed amounts: the releases do not tell which.

    Clipping lengths makes skewed features of two tables look related. If all were rare events hardly anything could be
    announced; if none were, a rare event would be.
    """
    amounts = skewed(size, len(kurtosis), 6.0 / (np.maximum(kurtosis, TAMEST) - 3.0), rng)
    return np.where(rng.random(len(kurtosis)) < 0.5, heavy(size, kurtosis, rng), amounts)


@dataclass(frozen=True, eq=False)
class ComponentBelief(RowsFound):
    """Of principal components.

    What is tested is whether a component has more than its fair share of the variance that the earlier ones leave.

    Parameters
    ----------
    known : Known
        Its `root` has the eigenvectors as columns, and its `values` are diagonal.
    edge : float
        What the largest eigenvalue of the noise alone would be.
    """

    known: Known
    edge: float
    noun: ClassVar[str] = "component"

    @property
    def own(self) -> FloatArray:
        return self.known.root[:, : self._k].T

    @property
    def most(self) -> int:
        """The last one has nothing to be compared with."""
        return max(len(self.half_width) - 1, 1)

    def null(self, j: int, rng: np.random.Generator) -> Records:
        values = self._variances.copy()
        values[j:] = values[j:].mean()
        covariance = (self.known.root * values) @ self.known.root.T
        return spread_points(self.evidence, self.known.mean, covariance, rng)

    @cached_property
    def _variances(self) -> FloatArray:
        """Eigenvalues without what noise adds to them."""
        values = without_noise(np.diag(self.known.values), self.edge)
        return np.asarray(np.maximum(values, 1e-3 * max(float(np.abs(values).mean()), 1e-300)))

    def possible(self, rng: np.random.Generator, flat: bool) -> Records:
        shrunk = Known(self.known.mean, np.diag(self._variances), self.known.root, self.known.noise)
        return spread_points(self.evidence, self.known.mean, shrunk.drawn(rng), rng)


def shares_of_rest(values: FloatArray) -> FloatArray:
    """Each of some variances, over the sum of it and the later ones.

    >>> shares_of_rest(np.array([2.0, 1.0, 1.0]))
    array([0.5, 0.5, 1. ])
    """
    positive_part = np.maximum(values, 0.0)
    return np.asarray(positive_part / np.maximum(np.cumsum(positive_part[::-1])[::-1], 1e-300))


@dataclass(frozen=True, eq=False)
class PairBelief(RowsFound):
    """Of canonical pairs: of either table a row, those of x first; columns are those of both tables.

    Parameters
    ----------
    known : Known
        Of both tables side by side.
    weights : ndarray of shape (2 r, p + q)
        Canonical weights of the pairs found and of the next one, in half widths: of x, zero on y; then of y, zero on x.
    p : int
        Columns of x.
    """

    known: Known
    weights: FloatArray
    p: int
    noun: ClassVar[str] = "pair"

    @property
    def own(self) -> FloatArray:
        return np.concatenate([half[: self._k] for half in np.split(self.weights, 2)])

    def null(self, j: int, rng: np.random.Generator) -> Records:
        correlations = self._correlations(self._factors.likely)
        correlations[j:] = 0.0
        covariance = positive(self.known.root @ self.known.values @ self.known.root.T)
        return spread_points(self.evidence, self.known.mean, self._joint(covariance, correlations), rng, tested=True)

    @property
    def _shown(self) -> FloatArray:
        return np.clip(self.choice.singular_values[: len(self.weights) // 2], 0.0, STRONGEST)

    def _correlations(self, factors: FloatArray) -> FloatArray:
        """Of the pairs, noise accounted for."""
        return np.clip(self._shown * factors, 0.0, STRONGEST)

    @cached_property
    def _factors(self) -> Factors:
        """By how much the correlations that were seen are to be multiplied."""
        rng = seeded(self.evidence)
        covariance = positive(self.known.root @ self.known.values @ self.known.root.T)
        nothing, pilot = (
            spread_points(self.evidence, self.known.mean, self._joint(covariance, self._shown * f), rng)
            for f in (0.0, 1.0)
        )
        return self.mended(self.choice.singular_values[: len(self._shown)], nothing, pilot, 2.0)

    def _joint(self, covariance: FloatArray, correlations: FloatArray) -> FloatArray:
        """The covariance with other correlations between the tables: those of the first pairs alone."""
        p, r, joint = self.p, len(correlations), covariance.copy()
        blocks = covariance[:p, :p], covariance[p:, p:]
        x, y = self.weights[:r, :p], self.weights[r:, p:]
        # Scores of variance one at right angles: S w' for the weights w is their covariance with all columns.
        loads = [
            block @ weights.T @ power_of(weights @ block @ weights.T, -0.5)
            for block, weights in zip(blocks, (x, y), strict=True)
        ]
        joint[:p, p:] = (loads[0] * correlations) @ loads[1].T
        joint[p:, :p] = joint[:p, p:].T
        return joint

    def possible(self, rng: np.random.Generator, flat: bool) -> Records:
        joint = self._joint(self.known.drawn(rng), self._correlations(self._factors.drawn(rng)))
        return spread_points(self.evidence, self.known.mean, joint, rng)

    def in_x(self, found: FloatArray) -> FloatArray:
        k, p = len(found) // 2, self.p
        scaled = found / self.half_width
        wide = np.zeros_like(scaled)
        wide[:k, :p], wide[k:, p:] = orthonormal_in_order(scaled[:k, :p]), orthonormal_in_order(scaled[k:, p:])
        return wide

    def pairs(self, x: FloatArray, fits: list[FloatArray]) -> FloatArray:
        """Of each canonical pair: the less alike of its two scores."""
        of_x, of_y = np.split(super().pairs(x, fits), 2)
        return np.minimum(of_x, of_y)
