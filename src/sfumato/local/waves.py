"""A survey in waves: what the next people are asked follows from what earlier ones answered; each answers once.

And the model by which it follows: a response that rises with one index of x, fitted to randomised answers about
thresholds. Public numbers only.
"""

import hashlib
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

from sfumato.errors import InputError
from sfumato.local.answers import Answers
from sfumato.local.location import MOST_PEOPLE, Belief, believe, prior
from sfumato.local.randomisers import SliceRandomiser, ThresholdRandomiser, epsilon_of, join, thresholds_of
from sfumato.people import keys
from sfumato.privacy.noise import Noise
from sfumato.settings.central import one_blas_thread
from sfumato.typing import FloatArray, IntArray, is_whole

MOST_WAVES = 20
_MIDDLE = (0.25, 0.75)
"""The first look at x is asked between these quantiles of y."""
_JITTER = 0.3
"""Later thresholds lie about the person's own even odds, with this spread in standard deviations of the noise of y."""
_GOLDEN = 0.6180339887498949


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


@dataclass(frozen=True, slots=True)
class Survey:
    """The public plan of a survey in waves, about a number y that rises with one index of public features.

    Every person is asked one question, "is your y at least t?", in one wave. The first waves find where y lies; one
    asks about its middle half, and shows a first direction; each later one asks every person about the value that the
    answers so far predict for them. There the answer tells most of the direction, however far the person is from the
    median.

    Parameters
    ----------
    epsilon : float
        The whole cost to a person.
    shares : tuple of float
        Share of the people in each wave.
    search : int
        How many waves find where y lies.
    key : str
        Public; with a person's id it says in which wave they are.
    edges : tuple of float, optional
        Public values between which y lies, at equal shares as far as known, in place of the search.

    Notes
    -----
    *Proof of the guarantee.* Let y and y' differ in the label of one person, say of wave w. Who is in which wave is a
    function of the ids and the key, and ids, features and the number of people are public: none of it depends on a
    label. The answers of waves before w have the same law under y and y', as they are functions of other labels and of
    noise of their own. Given these answers the questions of wave w are the same under both, because `ask` is a function
    of x, the key and the earlier *answers* alone. Of the answers of wave w all but one have the same law, and that of
    the one changes by a factor of at most e^epsilon whatever its threshold is (`ThresholdRandomiser`). Given the
    answers so far, later questions are the same and later answers have the same law. The density of all answers is the
    product of these, so it changes by at most e^epsilon: parallel composition over disjoint waves, with questions that
    adapt. Pure epsilon for replace-one of a label; whatever is computed from the answers costs nothing more. A person
    with r rows gives r answers, possibly in different waves: at most r factors, and r times the epsilon of an answer
    (adaptive composition). There is no add-remove: taking part is public.

    Examples
    --------
    >>> survey = Survey.plan(epsilon=1.0, n_people=10_000, waves=4, key="2026")
    >>> survey.n_waves, survey.search
    (4, 2)
    >>> wave = survey.wave_of(range(10_000))
    >>> bool(abs((wave == 3).mean() - survey.shares[3]) < 0.02)
    True
    """

    epsilon: float
    shares: tuple[float, ...]
    search: int
    key: str
    edges: tuple[float, ...] | None = None

    @classmethod
    def plan(
        cls,
        epsilon: float,
        n_people: int,
        waves: int,
        key: str,
        *,
        pilot: float = 0.1,
        edges: Sequence[float] | None = None,
    ) -> "Survey":
        """A survey of so many people: half of the waves, of a share `pilot` in all, find where y lies."""
        if not is_whole(waves, 2) or waves > MOST_WAVES:
            raise InputError(f"waves must be an integer from 2 to {MOST_WAVES}, got {waves!r}.")
        if not isinstance(pilot, Real) or not 0.0 < float(pilot) <= 0.5:
            raise InputError(f"pilot must be a share of the people up to 0.5, got {pilot!r}.")
        known = None if edges is None else SliceRandomiser(1.0, edges).edges
        if known is not None and len(known) < 2:
            raise InputError("edges must be at least two values between which y lies; for instance edges=[0, 100].")
        search = 0 if known is not None else int(waves) // 2
        asked = min(float(pilot), MOST_PEOPLE / max(n_people, 1)) if search else 0.0
        parts = np.arange(1, int(waves) - search + 1)  # later waves are asked better questions: they are larger
        rest = (1.0 - asked) * parts / parts.sum()
        return cls(epsilon_of(epsilon), (*[asked / max(search, 1)] * search, *rest.tolist()), search, str(key), known)

    @property
    def n_waves(self) -> int:
        """Number of waves."""
        return len(self.shares)

    def is_sound(self) -> bool:
        """Whether a plan that somebody else wrote is one."""
        epsilon, shares = epsilon_of(self.epsilon), [isinstance(share, Real) and share >= 0 for share in self.shares]
        if not (2 <= len(shares) <= MOST_WAVES and all(shares) and abs(sum(self.shares) - 1.0) < 1e-6):
            return False
        known = 0 if self.edges is None else len(SliceRandomiser(epsilon, self.edges).edges or ())
        return is_whole(self.search, 0) and self.search < self.n_waves and (known >= 2) == (self.search == 0)

    def wave_of(self, ids: Iterable[Any]) -> IntArray:
        """The wave of each person, from 0: a keyed hash of the id. Devices check it, so nobody is in two."""
        key = hashlib.sha256(self.key.encode("utf-8", "surrogatepass")).digest()
        digests = (hashlib.blake2b(_text(each), digest_size=8, key=key).digest() for each in keys(list(ids), "person"))
        place = np.frombuffer(b"".join(digests), dtype=">u8") / 2.0**64
        return np.minimum(np.searchsorted(np.cumsum(self.shares), place, side="right"), self.n_waves - 1)

    @np.errstate(all="ignore")  # whatever the user asked numpy for, no answer raises or warns
    def ask(self, wave: int, x: FloatArray, asked: FloatArray, answers: Answers | None) -> ThresholdRandomiser:
        """The question to each person of a wave, with features x, from the answers of people with features `asked`.

        Everything here is public.
        """
        levels = _spread(len(x))
        if wave <= self.search:
            belief, (low, high) = self._belief(answers), _MIDDLE if self.search else (0.0, 1.0)
            if wave == self.search:
                levels = low + (high - low) * levels
            return ThresholdRandomiser(self.epsilon, belief.quantiles(levels))
        found = fit_answers(asked, answers, *_units(np.concatenate([asked, x])))
        return ThresholdRandomiser(self.epsilon, found.thresholds(x, _JITTER * ndtri(levels)))

    def _belief(self, answers: Answers | None) -> Belief:
        if self.edges is not None:
            return Belief(np.asarray(self.edges), np.linspace(0.0, 1.0, len(self.edges)))
        if answers is None or not len(answers):
            return prior()
        return believe(answers)


def run_survey(survey: Survey, x: FloatArray, y: FloatArray, noise: Noise | None = None) -> tuple[Answers, IntArray]:
    """All waves at once, by whoever holds the labels and acts for every device: the answers, and whose row each is."""
    wave = survey.wave_of(range(len(x)))
    answers: Answers | None = None
    rows = np.empty(0, dtype=np.int64)
    for number in np.unique(wave).tolist():  # of a few people some waves have none
        new = np.flatnonzero(wave == number)
        form = survey.ask(number, x[new], x[rows], answers)
        answers = join(answers, form.randomize(y[new], noise))
        rows = np.concatenate([rows, new])
    assert answers is not None
    return answers, rows


@np.errstate(all="ignore")
def fit_answers(
    x: FloatArray, answers: Answers | None, mean: FloatArray | None = None, spread: FloatArray | None = None
) -> MonotoneIndex:
    """The index that all answers so far show."""
    if mean is None or spread is None:
        mean, spread = _units(x)
    if answers is None:
        return fit_index(x[:0], np.empty(0), np.empty(0, dtype=np.int64), 0.5, mean, spread)
    form = thresholds_of(answers)
    return fit_index(x, form.thresholds, np.asarray(answers.values, dtype=np.int64), form.lie, mean, spread)


def _units(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centre and spread of each feature; a constant one has a spread that leaves nothing of it."""
    mean, spread = x.mean(axis=0), x.std(axis=0)
    return np.nan_to_num(mean), np.where(spread > 1e-12 * np.abs(mean), spread, np.inf)


def _spread(count: int) -> FloatArray:
    """Levels from 0 to 1 that are spread evenly over any run of people: multiples of the golden section."""
    return np.asarray((0.5 + _GOLDEN * np.arange(count)) % 1.0)


def _text(key: Hashable) -> bytes:
    """The same for ids that are equal: 7 and 7.0."""
    same = int(key) if isinstance(key, float) and key.is_integer() else key
    return str(same).encode("utf-8", "surrogatepass")
