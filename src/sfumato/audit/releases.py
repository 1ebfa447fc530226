"""Single releases: every kind of bounded sum, a typical query and the worst pair of records for it, attacked.

And single answers of devices. There the neighbours are two values of *one person*, and there is no add-or-remove, as
taking part is not hidden.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.audit.blackbox import AuditResult, Claim, audit
from sfumato.bounds import Bounds
from sfumato.local.answers import Randomiser
from sfumato.local.randomisers import NumberRandomiser, SliceRandomiser, ThresholdRandomiser
from sfumato.local.records import RecordRandomiser
from sfumato.methods.about import BOX
from sfumato.privacy.accounting import gdp_mu
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Records
from sfumato.statistics import histograms
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct, ResponseProduct
from sfumato.statistics.histograms import ProjectionHistogram
from sfumato.statistics.moments import Moments, SquareSums
from sfumato.statistics.parts import Cells, OnCells, OnColumns, PerPerson
from sfumato.statistics.scores import QuantileScores, SignResiduals, Signs, SignScores
from sfumato.statistics.slices import SlicedMoments, SliceSecondMoments
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum, Restated
from sfumato.typing import FloatArray, IntArray, Relation

FEATURES = 3


class Memory:
    """The plainest setting: one chunk of records."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records."""
        return query.of(self._records)


class Remembering(Memory):
    """A setting that adds the records up once, for one query that is asked many times."""

    _total: IntArray | None = None

    def sum(self, query: BoundedSum) -> IntArray:
        if self._total is None:
            self._total = super().sum(query)
        return self._total.copy()


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
    bins = histograms.Bins(np.array([-1.0, 0.0, 1.0]))
    classes = np.arange(bins.count)
    mixing = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.0]])
    whitening = Whitening(grid, mixing, np.array([0.1, 0.0, -0.2]), 3.0)
    narrow = Whitening(grid, mixing, np.zeros(FEATURES), 1.0)  # records outside its ball, as the bound foresees
    table = np.array([[1.0, 0.5], [-1.0, 0.5], [1.0, -0.5], [-1.0, -0.5]])
    residual = Residual(whitening, bins, table, np.full((FEATURES + 1, 2), 0.1), 1.0)
    signs = SignScores(np.zeros(FEATURES), bins, table)
    sides, two = Signs(np.zeros(FEATURES)), (np.array([0, 2]), np.array([0.5, -0.25]))
    return {
        "histogram of the response": histograms.ResponseHistogram(bins),
        "histogram of record lengths": histograms.NormHistogram(grid),
        "histograms of magnitudes": histograms.OctaveHistograms(FEATURES),
        "histograms on spans": histograms.LinearHistograms(np.full(FEATURES, -1.0), np.full(FEATURES, 1.0), 16),
        "histograms of distances": histograms.DistanceHistograms(np.full(FEATURES, 0.1), np.full(FEATURES, 0.5)),
        "mean and second moment": Moments(grid, 1.0),
        "mean and second moment, one row of a person": PerPerson(Moments(grid, 1.0), 1),
        "slice sums and second moment": SlicedMoments(narrow, bins, classes, bins.count),
        "second moments by slice": SliceSecondMoments(narrow, bins, classes, bins.count),
        "sums of squares": SquareSums(grid, 0.5),
        "histogram of residual sizes": ResidualHistogram(residual),
        "residual products": ResidualProduct(residual, 1.0),
        "residuals by functions of the response": ResponseProduct(residual, np.ones_like(table), 1.0),
        "sign scores": signs,
        "sign scores of two columns": OnColumns(SignScores(np.zeros(2), bins, table), np.array([0, 2])),
        "sizes of cells": OnCells(
            histograms.ResponseHistogram(histograms.Bins(np.empty(0), 6)),
            Cells.cut([np.array([-0.5, 0.5]), np.array([0.0])]),
        ),
        "sign scores of residuals": SignResiduals(sides, bins, table[:, 0], *two, 0.7, np.arange(FEATURES)),
        "distances from a quantile": QuantileScores(bins, 1, 4),
        "picture": ProjectionHistogram(whitening, np.array([1.0, 0.0, 0.0]), bins, classes, bins.count, 24),
    }


def selections(known: Mapping[str, BoundedSum] | None = None) -> dict[str, BoundedSum]:
    """Those of the `known` queries (all of `queries` if not given) that are answered by a selection, not by sums."""
    chosen = queries() if known is None else known
    return {
        name: query
        for name, query in chosen.items()  # its kind says what a selection compares, or owes
        if type(query).scores is not BoundedSum.scores or type(query).spread is not BoundedSum.spread
    }


def worst_pair(query: BoundedSum, relation: Relation) -> Pair:
    """Search a pool of extreme and random records for the neighbours between which the sum moves most.

    The pool holds points far outside every bound, on axes and diagonals, at the centre, and random ones, each with
    responses low, middle and high. Both data sets share five ordinary records.
    """
    pool = _pool()
    weights = np.broadcast_to(query.weights, query.shape).ravel()
    contributions = np.array([query.of(_rows(pool, [i])).ravel() for i in range(len(pool))]) * weights
    base = list(range(5))
    if relation == "add-remove":
        one = int(np.linalg.norm(contributions, axis=1).argmax())
        return Pair(query, relation, _rows(pool, [*base, one]), _rows(pool, base))
    i, j = _farthest(contributions)
    return Pair(query, relation, _rows(pool, [*base, i]), _rows(pool, [*base, j]))


@dataclass(frozen=True, slots=True, eq=False)
class Repeated(Restated):
    """The same sum `times` over, with the bounds of one: many independent releases through the door at once.

    Only an audit may ask it; as a release it would cost `times` as much as it says.
    """

    query: BoundedSum
    times: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.times, *self.query.shape)

    def of(self, records: Records) -> IntArray:
        return np.repeat(self.query.of(records)[None], self.times, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class OneRelease:
    """One Gaussian release through the curator: ledger, sum, noise, as in a fit; or many of them at once."""

    query: BoundedSum
    relation: Relation
    mu: float

    def __call__(self, records: Records, noise: Noise) -> FloatArray:
        return np.asarray(self.many(records, noise, 1)[0])

    def many(self, records: Records, noise: Noise, runs: int) -> FloatArray:
        """Outputs of that many runs, a row for each."""
        plan = Plan((Line("release", "audit", 1.0, "", rho=self.mu**2 / 2.0),))
        ledger = Ledger(Budget.zcdp(plan.lines[0].rho), self.relation, rehearsal=True)
        curator = Curator(Memory(records), plan, ledger, noise)
        return np.asarray(curator.answer(Repeated(self.query, runs), "release").value.reshape(runs, -1))


def selection_of(query: BoundedSum, relation: Relation, epsilon: float) -> Callable[[Records, Noise], IntArray]:
    """One pick of the largest score through the curator; epsilon-DP, as each pick has bounded range epsilon."""
    plan = Plan((Line("release", "audit", 1.0, "", "selection", rho=epsilon**2 / 8.0),))
    budget, settings = Budget.zcdp(plan.lines[0].rho), dict[int, Remembering]()

    def select(records: Records, noise: Noise) -> IntArray:
        setting = settings.setdefault(id(records), Remembering(records))  # which holds on to the records
        return Curator(setting, plan, Ledger(budget, relation, rehearsal=True), noise).select(query, "release")

    return select


def worst_selection_pair(query: BoundedSum, relation: Relation) -> Pair:
    """Neighbours between which the gaps among the scores move most: what a selection reveals."""
    pool = _pool()
    base = [int(i) for i in np.random.default_rng(0).integers(0, len(pool), 5)]
    scores = np.array([query.scores(query.of(_rows(pool, [*base, i]))) for i in range(len(pool))], dtype=np.float64)
    if relation == "add-remove":
        moved = scores - query.scores(query.of(_rows(pool, base)))
        one = int(np.ptp(moved, axis=1).argmax())
        return Pair(query, relation, _rows(pool, [*base, one]), _rows(pool, base))
    gaps = np.ptp(scores[:, None, :] - scores[None, :, :], axis=2)
    i, j = np.unravel_index(int(gaps.argmax()), gaps.shape)
    return Pair(query, relation, _rows(pool, [*base, int(i)]), _rows(pool, [*base, int(j)]))


def _pool() -> Records:
    rng, p = np.random.default_rng(0), FEATURES
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


RELATIONS: tuple[Relation, ...] = ("replace", "add-remove")


def audit_table(
    budgets: Iterable[Budget] = (Budget.approximate(1.0, 1e-6), Budget.approximate(3.0, 1e-6)),
    runs: int = 10_000,
    confidence: float = 0.99,
    *,
    known: Mapping[str, BoundedSum] | None = None,
    only: str = "",
    progress: Callable[[str], object] | None = None,
) -> list[AuditResult]:
    """Audit one Gaussian release of every kind of query, on its worst pair, under both relations.

    Parameters
    ----------
    budgets : iterable of Budget
        What a single release may spend; its claim is the budget's mu.
    runs, confidence
        As in `audit`.
    known : mapping from names to BoundedSum, optional
        The queries to audit; those of `queries` by default.
    only : str
        Audit only the releases whose name contains this.
    progress : callable, optional
        Told the name of each release before it is audited.
    """
    found = []
    for budget in budgets:
        for name, query in (queries() if known is None else known).items():
            if only not in name:
                continue
            for relation in RELATIONS:
                label = f"{name}, {relation}, {budget.describe()}"
                if progress is not None:
                    progress(label)
                pair = worst_pair(query, relation)
                mechanism = OneRelease(query, relation, budget.mu())
                found.append(audit(mechanism, pair.d, pair.d_prime, budget.mu(), runs, confidence, name=label))
    return found


@dataclass(frozen=True, slots=True)
class Attacked:
    """A mechanism, the two values of one person that tell most, and the claim."""

    mechanism: Callable[[Any, Noise], Any]
    d: Any
    d_prime: Any
    claimed: Claim

    @property
    def gaussian(self) -> bool:
        """Whether the claim is one of mu."""
        return not isinstance(self.claimed, tuple)


def devices(epsilon: float, delta: float) -> dict[str, Attacked]:
    """Every kind of answer that a device gives."""
    mu, pure = gdp_mu(epsilon, delta), (epsilon, 0.0)
    slices = {f"{len(edges) + 1} slices": SliceRandomiser(epsilon, edges) for edges in ([0.0], [-1.0, 0.0, 1.0, 2.0])}
    classes = SliceRandomiser(epsilon, classes=["a", "b", "c"])
    numbers = {kind: NumberRandomiser(-1.0, 1.0, epsilon, 0.0, kind) for kind in ("two-point", "laplace")}
    gaussian = NumberRandomiser(-1.0, 1.0, epsilon, delta, "gaussian")
    found = {name: Attacked(_answer(form), -1e9, 1e9, pure) for name, form in (slices | numbers).items()}
    found["3 classes and others"] = Attacked(_answer(classes), "a", "none of these", pure)
    found["gaussian"] = Attacked(_answer(gaussian), -1e9, 1e9, mu)
    found["whole record"] = _whole_record(epsilon, delta, mu)
    found["is y at least t?"] = Attacked(_answer(ThresholdRandomiser(epsilon, [0.0])), -1e9, 1e9, pure)
    return found


def _answer(form: Randomiser) -> Callable[[Any, Noise], Any]:
    return lambda y, noise: form.randomize([y], noise).values


def _whole_record(epsilon: float, delta: float, mu: float) -> Attacked:
    """Two records as far apart as the bound allows: at a right angle and of different slices."""
    device = RecordRandomiser(2, BOX, (0.0,), epsilon, delta, radius=1.0)

    def answer(record: FloatArray, noise: Noise) -> FloatArray:
        return np.asarray(device.randomize(record[None, :2], record[2:], noise)[0])

    # squared distance 2 (1 + 1/4) of the slice sums and 2 of the second moments: 4.5, the bound of the proof
    return Attacked(answer, np.array([1.0, 0.0, -1.0]), np.array([0.0, 1.0, 1.0]), mu)
