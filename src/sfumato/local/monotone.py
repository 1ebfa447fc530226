"""A response that rises with one index of x, fitted to randomised answers about thresholds. Public numbers only."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import ndtr

from sfumato.settings.central import one_blas_thread
from sfumato.typing import FloatArray, IntArray

REACH = 5.0
"""Thresholds are told apart up to here, in the scale of `Axis`: 74 times its unit. What lies further tells nothing."""
LEVEL_KNOTS = np.linspace(-REACH, REACH, 7)
_BENDS = np.diff(np.eye(len(LEVEL_KNOTS) + 2), 2, axis=0)
SHARPNESS_KNOTS = np.linspace(-REACH, REACH, 4)
_STEEPEST = 4.0
_BEND, _SHRINK, _RIDGE = 0.01, 1.0, 0.01
"""Weights of the penalties: on bends of the level, on the log of the sharpness, on the slopes; in answers."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Thresholds on a scale that is linear about their middle and logarithmic far from it."""

    centre: float
    unit: float

    @classmethod
    def of(cls, thresholds: FloatArray) -> "Axis":
        """Middle and half the distance of the quartiles of the thresholds that were asked."""
        lower, centre, upper = np.quantile(thresholds, [0.25, 0.5, 0.75]).tolist()
        return cls(centre, max((upper - lower) / 2, 1e-9 * abs(centre), 1e-100))

    def position(self, thresholds: FloatArray) -> FloatArray:
        return np.arcsinh((thresholds - self.centre) / self.unit)

    def threshold(self, position: FloatArray) -> FloatArray:
        return self.centre + self.unit * np.sinh(position)


_ROWS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class MonotoneIndex:
    """``P(y >= t | x) = Phi(kappa(t) b'z - a(t))``: how a response that rises with b'z passes each threshold.

    z is x, centred and in units of its spread; a (cubic) and log kappa (linear) are splines of the threshold. Both
    free, the model holds for every ``y = g(b'z + noise)``, g increasing and the noise normal, and follows one whose
    noise grows or falls with y. `ends` are the thresholds, on the axis, between which the answers lie.
    """

    axis: Axis
    mean: FloatArray
    spread: FloatArray
    slopes: FloatArray
    level: FloatArray
    sharpness: FloatArray
    ends: tuple[float, float]

    @property
    def direction(self) -> FloatArray:
        """Unit vector in the units of x, along which y rises."""
        raw = self.slopes / self.spread
        largest = float(np.abs(raw).max())
        if not 0.0 < largest < np.inf:
            return np.asarray(np.eye(len(raw))[0])
        return np.asarray(raw / largest / np.linalg.norm(raw / largest))

    def index(self, x: FloatArray) -> FloatArray:
        return np.asarray(standardised(x, self.mean, self.spread) @ self.slopes)

    @np.errstate(all="ignore")
    def thresholds(self, x: FloatArray, scores: FloatArray) -> FloatArray:
        """For each person the threshold at which the argument of Phi is nearest to a score; 0 is even odds."""
        grid = np.linspace(*self.ends, 201)
        steep, level = _steepness(grid, self.sharpness), _level_basis(grid) @ self.level
        index, found = self.index(x), np.empty(len(x))
        for i in range(0, len(x), _ROWS):
            rows = slice(i, i + _ROWS)
            gap = np.abs(steep * index[rows, None] - level - scores[rows, None])
            found[rows] = grid[gap.argmin(axis=1)]
        return self.axis.threshold(found)

    @np.errstate(all="ignore")
    def explained(self, x: FloatArray, thresholds: FloatArray) -> float:
        """Part of the variance of the index that y shows, ``s^2 / (1 + s^2)``, averaged over the thresholds asked.

        s is the spread of kappa(t) b'z, whose noise is standard normal: the index has a mean given y whose variance is
        that part of its own, SIR's eigenvalue.
        """
        position = np.clip(self.axis.position(thresholds), -REACH, REACH)
        signal = _steepness(position, self.sharpness) ** 2 * self.index(x).var()
        return float((signal / (1.0 + signal)).mean())


_STEPS = 300


@np.errstate(all="ignore")  # whatever the user asked numpy for, no answer raises or warns
def fit_index(
    x: FloatArray, thresholds: FloatArray, answers: IntArray, lie: float, mean: FloatArray, spread: FloatArray
) -> MonotoneIndex:
    """Maximum likelihood through the lies: each answer is "yes" with probability ``l + (1 - 2 l) P(y >= t | x)``.

    Lightly penalised, so that it exists whatever the answers are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.standard_normal((4_000, 3)), rng.standard_normal(4_000)
    >>> answers = (x[:, 1] >= t).astype(np.int64)
    >>> found = fit_index(x, t, answers, 0.0, np.zeros(3), np.ones(3))
    >>> bool(found.direction[1] > 0.99)
    True
    """
    axis = Axis.of(thresholds) if len(thresholds) else Axis(0.0, 1.0)
    position = axis.position(thresholds)
    near = np.abs(position) <= REACH
    z, position, answers = standardised(x[near], mean, spread), position[near], answers[near]
    with one_blas_thread():
        likelihood = _Likelihood(z, _level_basis(position), _sharpness_basis(position), answers, max(lie, 1e-9))
        found = minimize(
            likelihood, likelihood.start(position), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
        ).x
    slopes, level, sharpness = likelihood.parts(np.nan_to_num(found))
    low, high = np.quantile(position, [0.01, 0.99]).tolist() if len(position) else (-REACH, REACH)
    return MonotoneIndex(axis, mean, spread, slopes, level, sharpness, (low, high))


def standardised(x: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """x, centred and in units of its spread, kept in reach of floats whatever its units are."""
    return np.clip(np.nan_to_num((x - mean) / spread), -1e6, 1e6)


@dataclass(frozen=True, slots=True, eq=False)
class _Likelihood:
    """Minus the penalised log likelihood per answer, with its gradient."""

    z: FloatArray
    levels: FloatArray
    sharpnesses: FloatArray
    answers: IntArray
    lie: float

    def parts(self, unknowns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        p, knots = self.z.shape[1], self.levels.shape[1]
        return unknowns[:p], unknowns[p : p + knots], unknowns[p + knots :]

    def start(self, position: FloatArray) -> FloatArray:
        """The direction by least squares of the answers on x and the threshold."""
        design = np.column_stack([np.ones(len(position)), position, self.z])
        slopes = np.linalg.lstsq(design, self.answers / 1.0, rcond=1e-6)[0][2:]
        slopes /= max(float((self.z @ slopes).std()) if len(self.z) else 0.0, 1e-9)
        level = np.linspace(-REACH, REACH, self.levels.shape[1])
        return np.concatenate([slopes, level, np.zeros(self.sharpnesses.shape[1])])

    def __call__(self, unknowns: FloatArray) -> tuple[float, FloatArray]:
        slopes, level, sharpness = self.parts(unknowns)
        n, index = max(len(self.z), 1), self.z @ slopes
        steep = np.exp(np.clip(self.sharpnesses @ sharpness, -_STEEPEST, _STEEPEST))
        argument = steep * index - self.levels @ level
        yes = self.lie + (1.0 - 2.0 * self.lie) * ndtr(argument)
        told = np.where(self.answers == 1, yes, 1.0 - yes)
        density = np.exp(-0.5 * argument**2) / math.sqrt(2.0 * math.pi)
        pull = np.where(self.answers == 1, -1.0, 1.0) * (1.0 - 2.0 * self.lie) * density / told
        bends = _BENDS @ level
        penalty = _BEND * bends @ bends + _SHRINK * sharpness @ sharpness + _RIDGE * slopes @ slopes
        gradient = np.concatenate(
            [
                self.z.T @ (pull * steep) + _RIDGE * slopes,
                -self.levels.T @ pull + _BEND * _BENDS.T @ bends,
                self.sharpnesses.T @ (pull * steep * index) + _SHRINK * sharpness,
            ]
        )
        return float(-np.log(told).sum() + 0.5 * penalty) / n, gradient / n


def _basis(position: FloatArray, knots: FloatArray, degree: int) -> FloatArray:
    padded = np.pad(knots, degree, mode="edge")
    if not len(position):
        return np.empty((0, len(knots) + degree - 1))
    return np.asarray(BSpline.design_matrix(position, padded, degree).toarray())


def _level_basis(position: FloatArray) -> FloatArray:
    return _basis(position, LEVEL_KNOTS, 3)


def _sharpness_basis(position: FloatArray) -> FloatArray:
    return _basis(position, SHARPNESS_KNOTS, 1)


def _steepness(position: FloatArray, sharpness: FloatArray) -> FloatArray:
    return np.exp(np.clip(_sharpness_basis(position) @ sharpness, -_STEEPEST, _STEEPEST))
