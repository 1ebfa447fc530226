"""Prospect: the fits that an estimator could make, on the records it is made for; which of them to expect most of."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sfumato.errors import InputError
from sfumato.forecast.loss import calibrated, forecast
from sfumato.forecast.populations import IndexResponse, Population
from sfumato.privacy.budget import Budget
from sfumato.privacy.plan import Plan
from sfumato.typing import Relation


@dataclass(frozen=True, slots=True)
class Prospect:
    """The honest methods of an estimator, the usual one first, and the population they are made for.

    Attributes
    ----------
    fits : tuple of (name, public facts of a fit)
        A single one needs no choice.
    population : Population
        With the number of features and of directions asked for.
    """

    fits: tuple[tuple[str, Any], ...]
    population: Population

    @property
    def wide(self) -> bool:
        """Whether there are more features than a forecast is quick for, or too few for a direction to be missed."""
        return not self.population.quick

    def fit(self, name: str) -> Any:
        """The fit of that name."""
        found = dict(self.fits)
        if name not in found:
            raise InputError(f"method must be one of {', '.join(map(repr, found))}, got {name!r}.")
        return found[name]

    def plans(self, budget: Budget, rows: int | None = None) -> dict[str, Plan]:
        """The plan of each method at a budget, with the noise of so many `rows` of a person."""
        return {name: calibrated(fit, budget, rows=rows) for name, fit in self.fits}

    def explaining(self, signal: float, n_directions: int | None = None) -> Population:
        """The population whose directions explain the part `signal`."""
        k = self.population.n_directions if n_directions is None else n_directions
        return replace(self.population, signal=signal, n_directions=k)

    def sized(self, n_features: int) -> "Prospect":
        """The same for another number of features."""
        return replace(self, population=self.population.sized(n_features))

    def best(
        self, budget: Budget, n: int | None, relation: Relation, noises: float = 1.0, rows: int | None = None
    ) -> str:
        """The method of least expected loss, for directions that explain half of the response (or variance).

        With few records or a tiny budget a descent has nothing to descend on, and one question with all of the budget
        does better; from a few thousand records on the first method, the descent, is at least as good.

        n is None where the number of records is private: it must not choose. Then it is the first method, because it
        has the smaller loss in the geometric mean over n, equally spaced in logarithm, or (components) one within a
        tenth: where the other is better, at the few n between seeing nothing and seeing well, it gains no more than
        what it loses at every larger n (tested over p and epsilon). Whoever can name a public guess of n asks
        `explain` and sets the method.

        >>> from sfumato import Bounds, PrivateSIR
        >>> few, many = (PrivateSIR(epsilon=1.0, bounds=Bounds(-3, 3)).explain(n, 5) for n in (300, 30_000))
        >>> few.recommended, many.recommended
        ('one-shot', 'descent')
        """
        if len(self.fits) == 1 or n is None or n < 10 or self.wide:
            return self.fits[0][0]
        return _choose(self, budget, n, relation, noises, rows, DRAWS)


DRAWS = 12
"""Stand-ins that a choice is made by; half as many where there are many features, a quarter for a first look."""
MARGIN = 0.9
"""The first fit is kept unless another is expected to lose a tenth less: forecasts are not more precise."""
GOOD = 0.15
"""An expected distance below which nothing else is tried: the signal stands out, and the usual noise is less."""
GOOD_COMPONENTS = 0.05
"""The same for components, whose forecasts are closer: methods differ by less than `MARGIN` there."""


@lru_cache(maxsize=256)
def _choose(
    prospect: Prospect, budget: Budget, n: int, relation: Relation, noises: float, rows: int | None, draws: int
) -> str:
    """A matter of milliseconds, and remembered."""
    population = prospect.population

    def loss(fit: Any, draws: int) -> float:
        return forecast(fit, budget, n, population, relation=relation, noises=noises, rows=rows, draws=draws).loss

    first, usual = prospect.fits[0]
    if loss(usual, max(draws // 4, 1)) < (GOOD if isinstance(population, IndexResponse) else GOOD_COMPONENTS):
        return first
    enough = draws if population.n_features <= 30 else draws // 2
    losses = {name: loss(fit, enough) for name, fit in prospect.fits}
    best = min(losses, key=lambda name: losses[name])
    return best if losses[best] < MARGIN * losses[first] else first
