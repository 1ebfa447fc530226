"""Slice labels under k-ary randomised response."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from sfumato.cells import as_cells, is_number, keys_of, kinds_of
from sfumato.errors import BudgetError, InputError
from sfumato.local.answers import MISSING, Answers, Randomiser, one_value_each, source_of
from sfumato.privacy.door import Asked, pass_on
from sfumato.privacy.events import RandomisedResponse
from sfumato.privacy.noise import Noise, randomised_response
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
