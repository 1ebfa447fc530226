"""Screening before a descent: which features the known noise of the picks lets through, then the descent on them."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sfumato.iterate.descent import Schedule
from sfumato.iterate.quantiles import SLICES
from sfumato.iterate.ranks import Ranks
from sfumato.iterate.screening import Rule, contrasts, screen
from sfumato.planner.crowd import Crowd
from sfumato.planner.draws import Draw, draw
from sfumato.planner.evolution import descent_loss, plain_loss
from sfumato.planner.law import Law
from sfumato.planner.population import Population
from sfumato.privacy.events import Gaussian, Selection
from sfumato.privacy.mechanisms import gaussian_std
from sfumato.records import Records
from sfumato.release import Release
from sfumato.statistics.columns import OnColumns
from sfumato.statistics.histograms import Bins
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation

ACTIVE = 3
WIDEST = 50_000
"""Most features for which a forecast is quick."""
_POINTS = 800


@dataclass(frozen=True, slots=True)
class Screened(Law):
    """Independent features, three of which make up an index that explains the part `signal` of the response.

    The loss without privacy is that of SIR on those three alone: with more features than records there is no other.
    """

    meaning: ClassVar[str] = "how much of y three features explain"

    schedule: Schedule = field(default_factory=Schedule)

    @property
    def quick(self) -> bool:
        return ACTIVE < self.n_features <= WIDEST

    def points(self, rng: np.random.Generator) -> Records:
        """The active features and the rank of the response; the other features are all alike and need no points."""
        x, noise = rng.standard_normal((_POINTS, ACTIVE)), rng.standard_normal(_POINTS)
        y = math.sqrt(self.signal / ACTIVE) * x.sum(axis=1) + math.sqrt(1.0 - self.signal) * noise
        return Records(x, (np.argsort(np.argsort(y)) + 0.5) / _POINTS)

    def private(self, crowd: Crowd) -> float:
        ranks = Ranks(Bins(np.arange(1, SLICES) / SLICES), np.full(SLICES, 1.0 / SLICES), float(crowd.n))
        centre = np.zeros(self.n_features)
        door = _Scores(crowd, _sign_scores(crowd, ranks, self.n_features))
        kept = screen(door, centre, ranks, float(crowd.n), 1, Rule()).kept
        found = int((kept < ACTIVE).sum())
        if found == 0 or len(kept) == 1:
            return within(found, ACTIVE, 0.0)
        # What the features that were missed would have explained is noise to the descent.
        drawn = _draw(crowd, len(kept), self.signal * found / ACTIVE)
        return within(found, ACTIVE, descent_loss(drawn, self.schedule))

    def plain(self, crowd: Crowd) -> float:
        return plain_loss(_draw(crowd, ACTIVE, self.signal))


def within(found: int, active: int, distance: float) -> float:
    """Distance to a direction of which `found` of `active` equal parts were seen, at `distance` from those.

    >>> within(4, 4, 0.1), round(within(2, 4, 0.0), 6), round(within(0, 4, 0.0), 6)
    (0.1, 1.0, 1.414214)
    """
    missed = 1.0 - found / active * (1.0 - min(distance**2 / 2.0, 1.0))
    return distance if found == active else math.sqrt(2.0 * missed)


def _draw(crowd: Crowd, features: int, signal: float) -> Draw:
    population = Population.typical(features, 1, signal, seed=int(crowd.rng.integers(2**31)), points=_POINTS)
    return draw(population, crowd.plan, crowd.relation, float(crowd.n), crowd.rng)


def _sign_scores(crowd: Crowd, ranks: Ranks, features: int) -> FloatArray:
    """Sums over n records of functions of y times signs of x: sampling error, and for the active features, which come
    first and are all alike, a mean. The error is that of a feature that does not matter: a little more than theirs."""
    table = contrasts(ranks)
    f, signs = table[ranks.bins.index(crowd.points)], np.sign(crowd.points.x)
    spread = np.linalg.cholesky(crowd.n * (table.T @ table) / len(table) + 1e-9 * np.eye(table.shape[1]))
    scores = spread @ crowd.rng.standard_normal((table.shape[1], features))
    scores[:, :ACTIVE] += crowd.n * (f.T @ signs / len(f)).mean(axis=1, keepdims=True)
    return np.asarray(scores)


class _Scores:
    """The door as `screen` sees it: exact scores are known, picks and released scores get the noise of the plan."""

    def __init__(self, crowd: Crowd, scores: FloatArray) -> None:
        self._crowd, self._scores = crowd, scores

    @property
    def relation(self) -> Relation:
        return self._crowd.relation

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """The largest scores under Gumbel noise."""
        event = self._crowd.plan.line(name).event
        assert isinstance(event, Selection)
        scale = 2.0 * query.peak(self.relation) * float(query.grid.max()) / event.epsilon
        noisy = np.abs(self._scores).max(axis=0) + self._crowd.rng.gumbel(scale=scale, size=self._scores.shape[1])
        return np.argsort(-noisy)[: event.picks]

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The scores of the picked features, with Gaussian noise."""
        event = self._crowd.plan.line(name).event
        assert isinstance(event, Gaussian) and isinstance(query, OnColumns)
        std = np.broadcast_to(gaussian_std(query, self.relation, event) * query.grid, query.shape)
        return Release(self._scores[:, query.columns] + std * self._crowd.rng.standard_normal(query.shape), std)
