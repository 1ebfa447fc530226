"""Law: what is assumed about records that nobody has collected yet, in a few public numbers."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from sfumato.bounds import Grid
from sfumato.errors import InputError
from sfumato.planner.crowd import Crowd
from sfumato.privacy.plan import Plan
from sfumato.records import Records
from sfumato.typing import Relation

WIDEST = 100
"""Most features for which a forecast is quick enough to precede a fit."""
BOX = 8.0
"""Assumed half width of the bounds, in standard deviations of the widest feature: generous, as they cost nothing."""


@dataclass(frozen=True, slots=True)
class Law(ABC):
    """Typical records of an estimator's kind, its fit on a crowd of them, and the same without privacy.

    Parameters
    ----------
    n_features : int
        Columns of all tables.
    n_directions : int
        True directions.
    signal : float
        Part of a variance that they explain; `meaning` says of which, after "by".
    """

    meaning: ClassVar[str]

    n_features: int
    n_directions: int = 1
    signal: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.signal < 1.0:
            raise InputError(f"signal must be between 0 and 1, got {self.signal!r}; 0.5 is typical.")

    @property
    def useless(self) -> float:
        """Root mean square distance of directions drawn at random."""
        return useless(self.n_features, self.n_directions)

    @property
    def quick(self) -> bool:
        """Whether there is something to find, in few enough features for a quick forecast."""
        return self.n_features <= WIDEST and self.n_directions < self.n_features

    def sized(self, n_features: int) -> Self:
        """The same law for another number of features."""
        return replace(self, n_features=max(n_features, self.n_directions + 1))

    @property
    def grid(self) -> Grid:
        """Of features measured in half widths."""
        return Grid(np.zeros(self.n_features), np.ones(self.n_features))

    @abstractmethod
    def points(self, rng: np.random.Generator) -> Records:
        """Points that stand for the law, x in half widths of its bounds."""

    @abstractmethod
    def private(self, crowd: Crowd) -> float:
        """Distance between the directions that the fit finds in the crowd and the true ones."""

    @abstractmethod
    def plain(self, crowd: Crowd) -> float:
        """The same of the method without privacy."""

    def crowd(self, plan: Plan, relation: Relation, n: float, rng: np.random.Generator) -> Crowd:
        """A fresh draw of everything random in a fit on n records."""
        points = self.points(rng)
        counts = rng.multinomial(max(round(n), 2), np.full(len(points), 1.0 / len(points)))
        return Crowd(points, counts.astype(np.float64), plan, relation, rng)


def useless(p: int, k: int) -> float:
    """Root mean square distance of a random k-dimensional subspace: ``sqrt(2 k (1 - k / p))``.

    >>> round(useless(10, 1), 3)
    1.342
    """
    return math.sqrt(2.0 * k * (1.0 - k / p))
