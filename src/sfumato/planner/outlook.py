"""Outlook: what the planner must know of a fit to look ahead, whatever estimator it belongs to."""

from dataclasses import dataclass, replace

from sfumato.iterate.descent import Schedule
from sfumato.planner.law import WIDEST, Law
from sfumato.planner.population import Population
from sfumato.planner.recommend import recommend
from sfumato.privacy.budget import Budget
from sfumato.privacy.plan import Plan
from sfumato.typing import Relation


@dataclass(frozen=True, slots=True)
class Outlook:
    """The honest methods of an estimator, the usual one first, and the records it is made for.

    Attributes
    ----------
    methods : tuple of (name, Plan)
        Not calibrated. A single one needs no choice.
    n_features : int
    n_directions : int
    law : Law or None
        None: a response explained by an index, `Population.typical`.
    schedule : Schedule or None
        Of a descent.
    """

    methods: tuple[tuple[str, Plan], ...]
    n_features: int
    n_directions: int = 1
    law: Law | None = None
    schedule: Schedule | None = None

    @property
    def wide(self) -> bool:
        """Whether there are more features than a forecast is quick for, or too few for a direction to be missed."""
        return not (self.n_directions < self.n_features <= WIDEST if self.law is None else self.law.quick)

    def population(self, signal: float, n_directions: int | None = None) -> Population | Law:
        """Typical records whose directions explain the part `signal`."""
        k = self.n_directions if n_directions is None else n_directions
        if self.law is None:
            return Population.typical(self.n_features, k, signal)
        return replace(self.law, signal=signal, n_directions=k)

    def sized(self, n_features: int) -> "Outlook":
        """The same for another number of features."""
        return replace(self, n_features=n_features, law=None if self.law is None else self.law.sized(n_features))

    def plans(self, budget: Budget, noises: float = 1.0) -> tuple[tuple[str, Plan], ...]:
        """The methods at a budget, with `noises` times the variance of a central fit's noise (`Plan.merged`)."""
        return tuple((name, plan.calibrate(budget).merged(noises)) for name, plan in self.methods)

    def best(self, budget: Budget, n: int | None, relation: Relation, noises: float = 1.0) -> str:
        """The method of least expected loss; n is None where the number of records is private."""
        if len(self.methods) == 1 or n is None or n < 10 or self.wide:
            return self.methods[0][0]
        plans = self.plans(budget, noises)
        return recommend(plans, n, self.n_features, self.n_directions, relation, self.schedule, self.law)
