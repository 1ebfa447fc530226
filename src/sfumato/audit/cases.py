"""Every kind of bounded sum, ready to be attacked: a typical query and the worst pair of records for it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Bounds
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Records
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct
from sfumato.statistics.histograms import Bins, LinearHistograms, NormHistogram, OctaveHistograms, ResponseHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.pictures import ProjectionHistogram
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation

FEATURES = 3


class Memory:
    """The plainest setting: one chunk of records."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records."""
        return query.of(self._records)


@dataclass(frozen=True, slots=True)
class Pair:
    """Neighbouring data sets under `relation` on which `query` moves as far as any pair tried makes it move."""

    query: BoundedSum
    relation: Relation
    d: Records
    d_prime: Records

    @property
    def realised(self) -> float:
        """How far the sum moves on this pair, over the sensitivity claimed; never above one."""
        moved = (self.query.of(self.d) - self.query.of(self.d_prime)) * self.query.weights
        return float(np.linalg.norm(moved)) / self.query.sensitivity(self.relation)


def queries() -> dict[str, BoundedSum]:
    """One query of every kind that the estimators put to records."""
    grid = Bounds(-1.0, 1.0).grid(FEATURES)
    bins = Bins(np.array([-1.0, 0.0, 1.0]))
    classes = np.arange(bins.count)
    mixing = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.0]])
    whitening = Whitening(grid, mixing, np.array([0.1, 0.0, -0.2]), 3.0)
    narrow = Whitening(grid, mixing, np.zeros(FEATURES), 1.0)  # records outside its ball, as the bound foresees
    table = np.array([[1.0, 0.5], [-1.0, 0.5], [1.0, -0.5], [-1.0, -0.5]])
    residual = Residual(whitening, bins, table, np.full((FEATURES + 1, 2), 0.1), 1.0)
    return {
        "histogram of the response": ResponseHistogram(bins),
        "histogram of record lengths": NormHistogram(grid),
        "histograms of magnitudes": OctaveHistograms(FEATURES),
        "histograms on spans": LinearHistograms(np.full(FEATURES, -1.0), np.full(FEATURES, 1.0), 16),
        "mean and second moment": Moments(grid, 1.0),
        "slice sums and second moment": SlicedMoments(narrow, bins, classes, bins.count),
        "histogram of residual sizes": ResidualHistogram(residual),
        "residual products": ResidualProduct(residual, 1.0),
        "picture": ProjectionHistogram(whitening, np.array([1.0, 0.0, 0.0]), bins, classes, bins.count, 24),
    }


def worst_pair(query: BoundedSum, relation: Relation, n_features: int = FEATURES, seed: int = 0) -> Pair:
    """Search a pool of extreme and random records for the neighbours between which the sum moves most.

    The pool holds points far outside every bound, on axes and diagonals, at the centre, and random ones, each with
    responses low, middle and high. Both data sets share five ordinary records.
    """
    pool = _pool(n_features, seed)
    weights = np.broadcast_to(query.weights, query.shape).ravel()
    contributions = np.array([query.of(_rows(pool, [i])).ravel() for i in range(len(pool))]) * weights
    base = list(range(5))
    if relation == "add-remove":
        one = int(np.linalg.norm(contributions, axis=1).argmax())
        return Pair(query, relation, _rows(pool, [*base, one]), _rows(pool, base))
    i, j = _farthest(contributions)
    return Pair(query, relation, _rows(pool, [*base, i]), _rows(pool, [*base, j]))


def release_of(query: BoundedSum, relation: Relation, mu: float) -> Callable[[Records, Noise], FloatArray]:
    """One Gaussian release through the curator: ledger, sum, noise, as in a fit."""
    plan = Plan((Line("release", "audit", 1.0, "", rho=mu**2 / 2.0),))
    budget = Budget.zcdp(plan.lines[0].rho)

    def release(records: Records, noise: Noise) -> FloatArray:
        curator = Curator(Memory(records), plan, Ledger(budget, relation, rehearsal=True), noise)
        return curator.answer(query, "release").value.ravel()

    return release


def _pool(p: int, seed: int) -> Records:
    rng = np.random.default_rng(seed)
    corners = np.vstack([np.eye(p), -np.eye(p), np.ones((1, p)), -np.ones((1, p)), rng.standard_normal((16, p))])
    points = np.vstack([rng.uniform(-0.5, 0.5, (5, p)), 1e6 * corners, corners, np.zeros((1, p)), 1e-9 * corners[:2]])
    responses = np.array([0.5, -1e9, -0.5, 1e9])
    x = np.repeat(points, len(responses), axis=0)
    return Records(x, np.tile(responses, len(points)))


def _rows(records: Records, rows: list[int]) -> Records:
    return Records(records.x[rows], records.y[rows])


def _farthest(points: FloatArray) -> tuple[int, int]:
    square = (points**2).sum(axis=1)
    distances = square[:, None] + square[None, :] - 2.0 * points @ points.T
    i, j = np.unravel_index(int(distances.argmax()), distances.shape)
    return int(i), int(j)
