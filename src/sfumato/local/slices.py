"""Slice labels under k-ary randomised response, and slice edges from a small private sample.

In that sample some people answer one yes-or-no question instead of the main one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

from sfumato.cells import as_cells, is_number, keys_of, kinds_of
from sfumato.errors import BudgetError, InputError
from sfumato.local.answers import MISSING, Answers, Randomiser, one_value_each, source_of
from sfumato.privacy.door import Asked, pass_on
from sfumato.privacy.events import RandomisedResponse
from sfumato.privacy.noise import Noise, randomised_response
from sfumato.records import Response, is_finite
from sfumato.sources import encode_response
from sfumato.statistics.histograms import octave_edges
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
    def delta(self) -> float:
        return 0.0

    @property
    def noise_std(self) -> float:
        return 1.0 / self.shrinkage

    @property
    def question(self) -> str:
        return f"which of {self.n_slices} slices y lies in"

    def form(self) -> dict[str, Any]:
        return {
            "kind": "slices",
            "epsilon": self.epsilon,
            "edges": None if self.edges is None else list(self.edges),
            "classes": None if self.classes is None else list(self.classes),
            "others": self.others,
        }

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
        source, exact = source_of(noise), self.slices(y)
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


ROUNDS = 6
MOST_PEOPLE = 4000
_RAMP = 0.02
"""Share of questions spread evenly over all thresholds so far, whatever the answers."""


def split(n: int, share: float, noise: Noise) -> tuple[IntArray, IntArray]:
    """Who is asked where y lies, and who is asked the main question: drawn without a look at any value."""
    order = np.argsort(noise.words(n), kind="stable")
    pilot = min(round(share * n), MOST_PEOPLE, n // 2)
    return np.sort(order[:pilot]), np.sort(order[pilot:])


def find_edges(y: FloatArray, n_slices: int, epsilon: float, noise: Noise) -> list[float]:
    """Edges of about equal slices, from randomised answers to "is your y below t?", a public t for each person.

    Each person answers one such question by binary randomised response: pure epsilon, and their whole part. The
    first are asked about powers of two of either sign (so no scale need be known); the thresholds of each later
    round are spread evenly over the distribution that all answers so far show, lies cancelled on average and made
    to increase. Never raises on what y is: with nothing to see the edges are poor, not absent.
    """
    knots = octave_edges()
    below = _ramp(knots)
    asked, unbiased = np.empty(0), np.empty(0)
    for batch in np.array_split(y, ROUNDS):
        if len(batch) == 0:
            continue
        level = (np.arange(len(batch)) + 0.5) / len(batch)
        thresholds = np.interp(level, (1 - _RAMP) * below + _RAMP * _ramp(knots), knots)
        asked = np.concatenate([asked, thresholds])
        unbiased = np.concatenate([unbiased, answers_below(batch, thresholds, epsilon, noise)])
        knots, below = _distribution(asked, unbiased, epsilon)
    level = np.arange(1, n_slices) / n_slices
    return _increasing(np.interp(level, 0.999 * below + 0.001 * _ramp(knots), knots))


def answers_below(y: FloatArray, thresholds: FloatArray, epsilon: float, noise: Noise) -> FloatArray:
    """Randomised answers, scaled so that their mean is the share of people below."""
    exact = (y < thresholds).astype(np.int64)
    reported = pass_on(Asked((thresholds, epsilon), exact, 1.0), randomised_response(noise, exact, 2, epsilon))
    lie = 1.0 - SliceRandomiser(epsilon, [0.0]).kept
    return np.asarray((reported - lie) / (1.0 - 2.0 * lie))


def _distribution(asked: FloatArray, unbiased: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Thresholds in order and the share of people below each.

    One answer says almost nothing, and a jump put in the wrong place would draw all later questions there. So answers
    are averaged over a window wide enough for an error of 0.15, which blurs a jump rather than misplacing it.
    """
    order = np.argsort(asked, kind="stable")
    window = int(np.ceil((0.5 / np.tanh(epsilon / 2) / 0.15) ** 2))
    smooth = uniform_filter1d(unbiased[order], min(window, len(order)), mode="nearest")
    # Places instead of thresholds: isotonic regression uses the order alone, and 2**40 squared would lose digits.
    place = np.arange(len(order))
    return asked[order], IsotonicRegression(y_min=0.0, y_max=1.0).fit(place, smooth).predict(place)


def _ramp(knots: FloatArray) -> FloatArray:
    return (np.arange(len(knots)) + 0.5) / len(knots)


def _increasing(edges: FloatArray) -> list[float]:
    """The same edges, equal ones moved up by as little as a float can."""
    result: list[float] = []
    for edge in edges.tolist():
        result.append(edge if not result or edge > result[-1] else float(np.nextafter(result[-1], np.inf)))
    return result
