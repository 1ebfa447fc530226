"""Randomisers: what a device is asked about its y, and how it lies.

Slice labels under k-ary randomised response; one threshold for each person (is your y at least t?); numbers with noise:
Gaussian, Laplace, or one of two points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, assert_never

import numpy as np
from scipy.stats import norm

from sfumato.cells import as_cells, is_number, keys_of, kinds_of
from sfumato.errors import BudgetError, InputError
from sfumato.local.answers import MISSING, Answers, Randomiser, one_value_each
from sfumato.privacy.accounting import gdp_mu
from sfumato.privacy.budget import Budget
from sfumato.privacy.door import Asked, pass_on
from sfumato.privacy.events import Event, Gaussian, Laplace, RandomisedResponse
from sfumato.privacy.noise import Noise, SecureNoise, randomised_response, rounded_gaussian, rounded_laplace
from sfumato.records import Response, is_finite
from sfumato.sources import encode_response
from sfumato.typing import FloatArray, IntArray

MOST_SLICES = 64


def epsilon_of(epsilon: Any) -> float:
    """A positive epsilon that randomised response can use."""
    try:
        value = float(epsilon)
    except (TypeError, ValueError):
        value = math.nan
    if isinstance(epsilon, bool) or not 1e-6 <= value <= 1e6:
        raise BudgetError(f"epsilon must be a number from 1e-6 to 1e6, got {epsilon!r}; choose for instance 1.")
    return value


@dataclass(frozen=True, slots=True, init=False)
class SliceRandomiser(Randomiser):
    """In which slice does your y lie? The answer is kept with odds e^epsilon to 1 against every other slice.

    Parameters
    ----------
    epsilon : float
        The whole cost of the answer, to the person who gives it.
    edges : sequence of float, optional
        Public edges between slices of a number y; ``len(edges) + 1`` slices.
    classes : sequence, optional
        Public classes of y instead.
    others : bool
        Whether anything else has an answer of its own, one more, at the price of more lies about all. False: it is
        told as the last class.

    Notes
    -----
    *Proof of the guarantee.* The slice is a function of the person's own y, one of k. For any two slices a, b and
    any answer c, ``P(c | a) / P(c | b)`` is one of 1, e^epsilon and e^-epsilon, because a slice is reported with
    probability ``e^eps / (e^eps + k - 1)`` if it is the true one and ``1 / (e^eps + k - 1)`` if not. The draws are
    exact (`sfumato.privacy.noise.randomised_response`), so the bound holds to the last bit: pure epsilon.

    Examples
    --------
    >>> form = SliceRandomiser(epsilon=2.0, edges=[0.0])
    >>> form.n_slices, round(form.kept, 3)
    (2, 0.881)
    >>> len(form.randomize([-1.2, 0.3, 4.0]))
    3
    """

    kind: ClassVar[str] = "slices"
    epsilon: float
    edges: tuple[float, ...] | None
    classes: tuple[Any, ...] | None
    others: bool

    def __init__(
        self,
        epsilon: float,
        edges: Sequence[float] | None = None,
        classes: Sequence[Any] | None = None,
        *,
        others: bool = False,
    ) -> None:
        if (edges is None) == (classes is None):
            raise InputError("edges or classes must be given, one of them; for instance edges=[0.0].")
        object.__setattr__(self, "epsilon", epsilon_of(epsilon))
        object.__setattr__(self, "edges", None if edges is None else _edges(edges))
        object.__setattr__(self, "classes", None if classes is None else tuple(as_cells(classes).tolist()))
        object.__setattr__(self, "others", bool(others))
        if not 2 <= self.n_slices <= MOST_SLICES:
            raise InputError(f"edges or classes must make 2 to {MOST_SLICES} slices, got {self.n_slices}.")
        keys_of(self.classes or (), "classes")

    @property
    def n_slices(self) -> int:
        """Number of possible answers."""
        return len(self.edges) + 1 if self.edges is not None else len(self.classes or ()) + self.others

    @property
    def kept(self) -> float:
        """Probability that the answer is the truth."""
        return 1.0 / (1.0 + (self.n_slices - 1) * math.exp(-self.epsilon))

    @property
    def shrinkage(self) -> float:
        """Factor by which differences between slices shrink: ``(e^eps - 1) / (e^eps + k - 1)``."""
        return -math.expm1(-self.epsilon) * self.kept

    @property
    def event(self) -> RandomisedResponse:
        return RandomisedResponse(self.epsilon, self.n_slices)

    @property
    def noise_std(self) -> float:
        return 1.0 / self.shrinkage

    @property
    def question(self) -> str:
        return f"which of {self.n_slices} slices y lies in"

    def slices(self, y: Any) -> IntArray:
        """The true slice of each value. For the device's own eyes."""
        if self.edges is not None:
            return np.searchsorted(np.asarray(self.edges), one_value_each(y), side="right")
        raw = np.atleast_1d(as_cells(y))
        if raw.ndim != 1:
            raise InputError("y must be one class per person; give a single class or a 1-d array.")
        if "missing" in kinds_of(raw) or (is_number(raw) and not is_finite(raw)):
            raise InputError(MISSING)
        known = Response(categories=len(self.classes or ()) + 1)
        codes = np.asarray(encode_response(raw, known, self.classes), dtype=np.int64)
        return np.minimum(codes, self.n_slices - 1)

    def randomize(self, y: Any, noise: Noise | None = None) -> Answers:
        source, exact = noise or SecureNoise(), self.slices(y)
        values = randomised_response(source, exact, self.n_slices, self.epsilon)
        return Answers(pass_on(Asked(self, exact, self.n_slices - 1), values), self, source.rehearsal)


def best_number_of_slices(epsilon: float, least: int = 2) -> int:
    """Slices at which randomised response keeps most of what SIR sees, for a response that x orders.

    With k equal slices SIR's eigenvalue is the variance of the slice means of a normal index; randomised response
    multiplies it by ``shrinkage^2``. More slices see more and are lied about more.

    >>> [best_number_of_slices(epsilon) for epsilon in (0.5, 1.0, 3.0, 6.0)]
    [2, 2, 3, 11]
    """
    candidates = range(max(least, 2), max(least, 2) + 15)
    return max(candidates, key=lambda k: kept_signal(epsilon, k))


def kept_signal(epsilon: float, k: int) -> float:
    """Variance of the means of k equal slices of a normal index, after randomised response."""
    ends = norm.pdf(norm.ppf(np.arange(k + 1) / k))
    means = k * np.diff(ends)
    return float((means**2).mean() * SliceRandomiser(epsilon, list(range(k - 1))).shrinkage ** 2)


def _edges(edges: Sequence[float]) -> tuple[float, ...]:
    values: FloatArray = one_value_each(edges)
    if len(values) == 0 or not (np.diff(values) > 0).all():
        raise InputError("edges must increase from one to the next; for instance edges=[-1.0, 0.0, 1.0].")
    return tuple(values.tolist())


@dataclass(frozen=True, slots=True, init=False, eq=False)
class ThresholdRandomiser(Randomiser):
    """Is your y at least t? A public t for each person; the answer, 1 or 0, is true with odds e^epsilon to 1.

    Parameters
    ----------
    epsilon : float
        The whole cost of the answer, to the person who gives it.
    thresholds : sequence of float
        One for each person, in the order of the people.

    Notes
    -----
    *Proof of the guarantee.* The true answer is a bit, a function of the person's own y and of t. For any two values of
    y and any answer c, ``P(c | y) / P(c | y')`` is one of 1, e^epsilon and e^-epsilon, because the bit is told as it is
    with probability ``e^eps / (e^eps + 1)`` (exactly: `sfumato.privacy.noise.randomised_response`): pure epsilon,
    replace-one of a label. The bound holds for *every* t. So t may depend in any way on public features and on the
    answers of other people that were given before: see `sfumato.local.waves` for the composition.

    Examples
    --------
    >>> form = ThresholdRandomiser(epsilon=2.0, thresholds=[0.0, 10.0])
    >>> form.truths([0.5, 0.5])
    array([1, 0])
    >>> len(form.randomize([0.5, 0.5]))
    2
    """

    kind: ClassVar[str] = "thresholds"
    epsilon: float
    thresholds: FloatArray

    def __init__(self, epsilon: float, thresholds: Sequence[float] | FloatArray) -> None:
        object.__setattr__(self, "epsilon", epsilon_of(epsilon))
        object.__setattr__(self, "thresholds", one_value_each(thresholds))

    @property
    def lie(self) -> float:
        """Probability that an answer is not the truth."""
        return 1.0 / (1.0 + math.exp(min(self.epsilon, 700.0)))

    @property
    def event(self) -> RandomisedResponse:
        return RandomisedResponse(self.epsilon, 2)

    @property
    def noise_std(self) -> float:
        return 1.0 / math.tanh(self.epsilon / 2)

    @property
    def question(self) -> str:
        return "whether y is at least a threshold"

    def truths(self, y: Any) -> IntArray:
        """The true answer of each person. For the device's own eyes."""
        values = one_value_each(y)
        if len(values) != len(self.thresholds):
            raise InputError(f"y must have one value for each of the {len(self.thresholds)} people asked.")
        return (values >= self.thresholds).astype(np.int64)

    def randomize(self, y: Any, noise: Noise | None = None) -> Answers:
        source, exact = noise or SecureNoise(), self.truths(y)
        values = randomised_response(source, exact, 2, self.epsilon)
        return Answers(pass_on(Asked(self, exact, 1.0), values), self, source.rehearsal)


def thresholds_of(answers: Answers) -> ThresholdRandomiser:
    """The form of answers about thresholds."""
    if not isinstance(answers.form, ThresholdRandomiser):
        raise InputError("answers: these are not about thresholds; take those of a survey in waves.")
    return answers.form


def join(first: Answers | None, second: Answers) -> Answers:
    """The answers of two waves, one after another."""
    if first is None:
        return second
    forms = thresholds_of(first), thresholds_of(second)
    if forms[0].epsilon != forms[1].epsilon:
        raise InputError("answers: these waves have different epsilons; take the answers of one survey.")
    together = ThresholdRandomiser(forms[0].epsilon, np.concatenate([form.thresholds for form in forms]))
    values = np.concatenate([first.values, second.values])
    return Answers(values, together, first.rehearsal or second.rehearsal)


Mechanism = Literal["gaussian", "laplace", "two-point"]
UNITS = 2**20
"""Grid units of half the range: clipped values are integers from -2**20 to 2**20."""


@dataclass(frozen=True, slots=True, init=False)
class NumberRandomiser(Randomiser):
    """What is your y, within a public range? The answer is unbiased for the clipped value.

    Parameters
    ----------
    lower, upper : float
        Public range; a value outside is moved to its nearer end *before* anything else.
    epsilon : float
    delta : float, default=0
        0 asks for a pure guarantee. Only the Gaussian mechanism uses a positive one.
    mechanism : {"auto", "gaussian", "laplace", "two-point"}
        "auto": the one with the smallest worst variance at this (epsilon, delta).

    Notes
    -----
    *Proofs of the guarantee.* A clipped value is an integer v with ``|v| <= 2**20``; two values differ by at most
    D = 2**21 units, whatever y was.

    gaussian
        ``v + rint(sigma Z)`` is an ideal Gaussian mechanism, rounded: (D / sigma)-GDP. sigma is D over the largest
        mu whose GDP curve passes below (epsilon, delta): the analytic, not the classical, calibration.
    laplace
        ``v + rint(b L)`` is the Laplace mechanism, rounded: (D / b)-DP, and b >= D / epsilon.
    two-point
        The device first rounds v at random to one of the two ends (with the probability that keeps the mean), and
        reports which by binary randomised response. Whatever is fed to it, randomised response is epsilon-DP; the
        random rounding happens before it and is no part of the proof (Duchi, Jordan and Wainwright 2018).

    Examples
    --------
    >>> form = NumberRandomiser(-2.0, 2.0, epsilon=1.0)
    >>> form.mechanism, round(form.noise_std, 2)
    ('two-point', 4.33)
    >>> round(NumberRandomiser(-2.0, 2.0, epsilon=1.0, delta=1e-6, mechanism="gaussian").noise_std, 1)
    16.9
    """

    kind: ClassVar[str] = "numbers"
    lower: float
    upper: float
    epsilon: float
    delta: float
    mechanism: Mechanism

    def __init__(self, lower: float, upper: float, epsilon: float, delta: float = 0.0, mechanism: str = "auto") -> None:
        ends = one_value_each([lower, upper])
        if not 1e-100 < ends[1] - ends[0] < 1e100:
            raise InputError(f"lower must be below upper, got {lower!r} and {upper!r}; swap or widen them.")
        if isinstance(delta, bool) or not isinstance(delta, int | float | np.number) or not 0.0 <= delta < 1.0:
            raise BudgetError(f"delta must be from 0 to below 1, got {delta!r}; 0 asks for a pure guarantee.")
        for name, value in (("lower", float(ends[0])), ("upper", float(ends[1])), ("delta", float(delta))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "epsilon", epsilon_of(epsilon))
        object.__setattr__(self, "mechanism", self._choose(mechanism))

    def one_of(self, answers: int) -> "NumberRandomiser":
        """The form for each of several answers of a person that together cost what one answer to this form does.

        Epsilons of pure answers add up, so each gets its part of epsilon; of Gaussian ones the squared mus do
        (`Budget.per_answer`). The mechanism stays.

        >>> NumberRandomiser(-2.0, 2.0, epsilon=1.0).one_of(4).epsilon
        0.25
        """
        if answers == 1:
            return self
        if self.mechanism == "gaussian":
            each = Budget.approximate(self.epsilon, self.delta).per_answer(answers)
            return NumberRandomiser(self.lower, self.upper, each.epsilon or 0.0, self.delta, self.mechanism)
        return NumberRandomiser(self.lower, self.upper, self.epsilon / answers, self.delta, self.mechanism)

    def _choose(self, mechanism: str) -> Mechanism:
        options: tuple[Mechanism, ...] = ("two-point", "laplace", "gaussian")
        if mechanism == "auto":
            possible = options if self.delta > 0 else options[:2]
            return min(possible, key=lambda name: _worst_std(name, self.epsilon, self.delta))
        if mechanism not in options:
            raise InputError(f"mechanism must be 'auto', 'gaussian', 'laplace' or 'two-point', got {mechanism!r}.")
        if mechanism == "gaussian" and self.delta == 0:
            raise BudgetError("delta must be positive for Gaussian noise; choose 1e-6, or Laplace noise.")
        return mechanism

    @property
    def event(self) -> Event:
        match self.mechanism:
            case "gaussian":
                return Gaussian(gdp_mu(self.epsilon, self.delta))
            case "laplace":
                return Laplace(self.epsilon)
            case "two-point":
                return RandomisedResponse(self.epsilon, 2)
        assert_never(self.mechanism)

    @property
    def noise_std(self) -> float:
        """Largest standard deviation of an answer given y, in the units of y."""
        return _worst_std(self.mechanism, self.epsilon, self.delta) * (self.upper - self.lower) / 2

    @property
    def question(self) -> str:
        return f"y within [{self.lower:g}, {self.upper:g}], {self.mechanism} noise"

    @np.errstate(all="ignore")  # whatever the user asked numpy for, no value raises or warns
    def integers(self, y: Any) -> IntArray:
        """Clipped values on the grid. For the device's own eyes."""
        centred = np.clip(one_value_each(y), self.lower, self.upper) - (self.lower / 2 + self.upper / 2)
        units = np.rint(centred / (self.upper / 2 - self.lower / 2) * UNITS)
        return np.clip(units, -UNITS, UNITS).astype(np.int64)

    def randomize(self, y: Any, noise: Noise | None = None) -> Answers:
        source, exact = noise or SecureNoise(), self.integers(y)
        units = pass_on(Asked(self, exact, 2.0 * UNITS), self._noisy(exact, source))
        middle, half = self.lower / 2 + self.upper / 2, self.upper / 2 - self.lower / 2
        return Answers(middle + half * units, self, source.rehearsal)

    def _noisy(self, v: IntArray, source: Noise) -> FloatArray:
        match self.mechanism:
            case "gaussian":
                sigma = math.ceil(2 * UNITS / gdp_mu(self.epsilon, self.delta))
                return np.asarray((v + rounded_gaussian(source, sigma, v.shape)) / UNITS)
            case "laplace":
                scale = math.ceil(2 * UNITS / self.epsilon)
                return np.asarray((v + rounded_laplace(source, scale, v.shape)) / UNITS)
            case "two-point":
                # 21 random bits are below v + 2**20 with probability (v + 2**20) / 2**21, exactly.
                up = (source.words(v.size) >> np.uint64(43)).astype(np.int64) < v + UNITS
                reported = randomised_response(source, up.astype(np.int64), 2, self.epsilon)
                return np.asarray((2.0 * reported - 1.0) * _reach(self.epsilon))
        assert_never(self.mechanism)


def _reach(epsilon: float) -> float:
    """The points are so far apart, in half ranges, that the lies cancel: (e^eps + 1) / (e^eps - 1)."""
    return 1.0 / math.tanh(epsilon / 2)


def _worst_std(mechanism: Mechanism, epsilon: float, delta: float) -> float:
    """In half ranges."""
    match mechanism:
        case "gaussian":
            return 2.0 / gdp_mu(epsilon, delta)
        case "laplace":
            return math.sqrt(8.0) / epsilon
        case "two-point":
            return _reach(epsilon)
    assert_never(mechanism)
