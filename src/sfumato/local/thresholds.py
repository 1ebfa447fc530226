"""One threshold for each person: is your y at least t? Answered by randomised response."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.local.answers import Answers, Randomiser, one_value_each, source_of
from sfumato.local.slices import epsilon_of
from sfumato.privacy.door import Asked, pass_on
from sfumato.privacy.events import RandomisedResponse
from sfumato.privacy.noise import Noise, randomised_response
from sfumato.typing import FloatArray, IntArray


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
    def delta(self) -> float:
        return 0.0

    @property
    def noise_std(self) -> float:
        return 1.0 / math.tanh(self.epsilon / 2)

    @property
    def question(self) -> str:
        return "whether y is at least a threshold"

    def form(self) -> dict[str, Any]:
        return {"kind": "thresholds", "epsilon": self.epsilon, "thresholds": self.thresholds.tolist()}

    def truths(self, y: Any) -> IntArray:
        """The true answer of each person. For the device's own eyes."""
        values = one_value_each(y)
        if len(values) != len(self.thresholds):
            raise InputError(f"y must have one value for each of the {len(self.thresholds)} people asked.")
        return (values >= self.thresholds).astype(np.int64)

    def randomize(self, y: Any, noise: Noise | None = None) -> Answers:
        source, exact = source_of(noise), self.truths(y)
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
