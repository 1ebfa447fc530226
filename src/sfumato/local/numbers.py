"""Numbers with noise from the device: Gaussian, Laplace, or one of two points."""

import math
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.local.answers import Answers, Randomiser, one_value_each, source_of
from sfumato.local.slices import epsilon_of
from sfumato.privacy.accounting import gdp_mu
from sfumato.privacy.budget import Budget
from sfumato.privacy.door import Asked, pass_on
from sfumato.privacy.events import Event, Gaussian, Laplace, RandomisedResponse
from sfumato.privacy.noise import Noise, randomised_response, rounded_gaussian, rounded_laplace
from sfumato.typing import FloatArray, IntArray

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
        for name in options:
            if mechanism == name:
                if name == "gaussian" and self.delta == 0:
                    raise BudgetError("delta must be positive for Gaussian noise; choose 1e-6, or Laplace noise.")
                return name
        raise InputError(f"mechanism must be 'auto', 'gaussian', 'laplace' or 'two-point', got {mechanism!r}.")

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

    def form(self) -> dict[str, Any]:
        return {"kind": "numbers", **{name: getattr(self, name) for name in self.__slots__}}

    @np.errstate(all="ignore")  # whatever the user asked numpy for, no value raises or warns
    def integers(self, y: Any) -> IntArray:
        """Clipped values on the grid. For the device's own eyes."""
        centred = np.clip(one_value_each(y), self.lower, self.upper) - (self.lower / 2 + self.upper / 2)
        units = np.rint(centred / (self.upper / 2 - self.lower / 2) * UNITS)
        return np.clip(units, -UNITS, UNITS).astype(np.int64)

    def randomize(self, y: Any, noise: Noise | None = None) -> Answers:
        source, exact = source_of(noise), self.integers(y)
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
