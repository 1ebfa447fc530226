"""What the user asks of the estimator, still as text, and the estimator that follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.cli.failures import as_usage
from sfumato.cli.family import Member, member
from sfumato.errors import InputError

EPSILON, DELTA = 1.0, 1e-6
PARAMETERS = {"method": "method", "classes": "classes", "max_features": "max_features", "slices": "n_slices"}
"""Options that some estimators take, and what they call them."""


@dataclass(frozen=True)
class Wishes:
    """The options of a fit that are about the estimator; None is what was not given."""

    estimator: str = "sir"
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    relation: str = "replace"
    seed: int | None = None
    directions: str | None = None
    method: str | None = None
    classes: Sequence[str] | None = None
    picture: bool | None = None
    max_features: str | None = None
    slices: int | None = None
    rows_per_person: int | None = None

    @property
    def member(self) -> Member:
        """The estimator's place in the family."""
        return member(self.estimator)

    def options(self) -> dict[str, Any]:
        """The options that not every estimator takes."""
        return {name: getattr(self, name) for name in ("method", "classes", "picture", "max_features", "slices")}

    def build(self) -> Any:
        """The estimator, its parameters checked; it has no bounds yet."""
        from sfumato.privacy.parameters import budget_of, noise_of, relation_of
        from sfumato.privacy.unit import unit_of

        if self.rho is not None and (self.epsilon is not None or self.delta is not None):
            raise InputError("rho: give either --rho, or --epsilon and --delta, not both.")
        epsilon = EPSILON if self.epsilon is None else self.epsilon
        delta = DELTA if self.delta is None else self.delta
        with as_usage():
            budget_of(epsilon, delta, self.rho)
        if self.method is not None:
            self.member.check_method(self.method)
        seed = self.seed if noise_of(self.seed) else None
        budget = {"epsilon": epsilon, "delta": delta, "rho": self.rho, "relation": relation_of(self.relation)}
        unit_of(self.rows_per_person, has_ids=False)  # refuses what is no number of rows
        budget |= {"rows_per_person": self.rows_per_person}
        return self.member.make(**budget, random_state=seed, **self._own())

    def _own(self) -> dict[str, Any]:
        """Parameters besides the budget, as far as they were given; a picture is bought where one can be."""
        values = {name: getattr(self, option) for option, name in PARAMETERS.items()}
        if "picture" in self.member.takes:
            values["picture"] = self.picture is not False
        if self.directions is not None:
            values["n_directions"] = how_many(self.directions, "directions")
        if self.max_features is not None:
            values["max_features"] = how_many(self.max_features, "max-features")
        return {name: value for name, value in values.items() if value is not None}


def how_many(text: str, option: str) -> int | str:
    """A number of directions or features, or "auto"."""
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{option}: {text!r} is neither 'auto' nor a whole number from 1 on.")
    return int(text)
