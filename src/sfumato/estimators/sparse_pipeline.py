"""Sparse fits: slices, screening, then the usual descent on the few columns that were kept. No record is seen here."""

from dataclasses import dataclass, field

import numpy as np

from sfumato.bounds import Bounds, PartialBounds
from sfumato.estimators.pipeline import Outcome, Task, solve
from sfumato.iterate.columns import ColumnView
from sfumato.iterate.descent import Schedule, plan_descent
from sfumato.iterate.location import settled
from sfumato.iterate.picture import plan_picture
from sfumato.iterate.quantiles import find_quantiles, plan_quantiles
from sfumato.iterate.screening import Rule, Screen, plan_screening, screen
from sfumato.iterate.shape import plan_shape
from sfumato.iterate.spans import find_spans, plan_spans
from sfumato.planner.outlook import Outlook
from sfumato.planner.screened import Screened
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.solve.spectral import Spectrum
from sfumato.typing import FloatArray, IntArray

SHARES = {
    "slices": 0.06,
    "picks": 0.24,
    "scores": 0.06,
    "location": 0.12,
    "radius": 0.02,
    "residual": 0.03,
    "shape": 0.12,
    "solve": 0.40,
}
"""Parts of the zCDP cost; relative, as in `pipeline.SHARES`."""
SMALL = Schedule(shares=(1.0, 1.0, 1.0, 2.0), steps=(1.5, 1.5, 1.3, 1.0), level=0.7)
"""For a few thousand records: later steps gain less, and a larger part of the residuals is kept whole."""
SMALL_TABLE = 10_000
USUAL_PICKS = 6


@dataclass(frozen=True, slots=True)
class SparseTask:
    """What is public about a sparse fit. `n_records` is None where the number is private."""

    n_features: int
    n_records: int | None
    response: Response
    n_directions: int | None
    known: PartialBounds
    picks: int
    picture: float = 0.0
    rule: Rule = field(default_factory=Rule)

    @property
    def schedule(self) -> Schedule:
        """Steps of the descent: fewer for a small table."""
        return SMALL if self.n_records is None or self.n_records < SMALL_TABLE else Schedule()

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""
        lines: tuple[Line, ...] = plan_quantiles(self.response, SHARES["slices"])
        lines += plan_screening(self.picks, SHARES["picks"], SHARES["scores"])
        if self.known.unknown.size:
            lines += plan_spans(self.picks, SHARES["location"])
        lines += plan_shape(SHARES["radius"], SHARES["shape"])
        lines += plan_descent(self.schedule, SHARES["solve"], SHARES["residual"])
        if self.picture > 0:
            whole = sum(line.share for line in lines)
            lines += plan_picture(whole * self.picture / (1.0 - self.picture))
        return Plan(lines)

    def outlook(self) -> Outlook:
        """The one honest method, on records of which three features matter."""
        law = Screened(self.n_features, schedule=self.schedule)
        return Outlook((("screen", self.plan()),), self.n_features, law=law, schedule=self.schedule)


def usual_picks(n_records: int | None, n_features: int, budget: Budget, n_directions: int | None) -> int:
    """How many features to pick: as many as can be told from noise, 4 to 8; from public numbers alone.

    Picks of zCDP cost rho in all need Gumbel noise of scale ``sqrt(2 picks / rho)`` on scores of up to n; the largest
    of p such noises is ``log p`` scales. That is kept below a fifth of n.
    """
    least = max(4, n_directions or 0)
    if n_records is None:
        return min(n_features, max(least, USUAL_PICKS))
    rho = SHARES["picks"] / sum(SHARES.values()) * min(budget.mu(), 1e6) ** 2 / 2.0  # huge budgets: no overflow
    most = rho * (0.2 * n_records / (np.log(n_features) + 2.0)) ** 2 / 2.0
    return min(n_features, max(least, int(min(most, 8.0))))


def run_sparse(task: SparseTask, curator: Curator) -> tuple[Outcome, Screen]:
    """Walk the plan; the outcome is about all features again."""
    ranks = find_quantiles(curator, task.response)
    n = float(task.n_records) if task.n_records is not None else max(ranks.total, 10.0 * task.picks)
    centre = np.nan_to_num(task.known.lower / 2 + task.known.upper / 2)
    found = screen(curator, centre, ranks, n, task.n_directions or 1, task.rule)
    view = ColumnView(curator, found.kept)
    bounds = _kept_bounds(task.known, curator, found.kept)
    small = Task(
        len(found.kept),
        task.n_records,
        task.response,
        task.n_directions,
        bounds,
        picture=task.picture,
        schedule=task.schedule,
    )
    outcome = solve(small, view, ranks, settled(bounds, len(found.kept)))
    return spread(outcome, task.known, found.kept), found


def _kept_bounds(known: PartialBounds, curator: Curator, columns: IntArray) -> Bounds:
    """The bounds of some features: those that are known, and the others found privately."""
    lower, upper = known.lower[columns], known.upper[columns]
    unknown = np.flatnonzero(np.isnan(lower))
    if unknown.size:
        found = find_spans(curator, columns[unknown])
        lower[unknown], upper[unknown] = found.lower, found.upper
    return Bounds(lower, upper)


def some_bounds(bounds: Bounds, columns: IntArray) -> Bounds:
    """The bounds of some features."""
    lower, upper = (bound if bound.ndim == 0 else bound[columns] for bound in (bounds.lower, bounds.upper))
    return Bounds(lower, upper)


def spread(outcome: Outcome, known: PartialBounds, columns: IntArray) -> Outcome:
    """The outcome with zeros for features that were not kept; their centre and scale are those of the bounds."""
    p, spectrum, found = known.n_features, outcome.spectrum, outcome.located.bounds
    lower, upper = np.nan_to_num(known.lower, nan=-1.0), np.nan_to_num(known.upper, nan=1.0)
    lower, upper = _put(lower, columns, found.lower), _put(upper, columns, found.upper)
    public = Bounds(lower, upper).grid(p)
    wide = np.zeros((len(spectrum.directions), p))
    return Outcome(
        Spectrum(
            _put(wide, columns, spectrum.directions),
            _put(wide, columns, spectrum.standard_errors),
            spectrum.singular_values,
        ),
        outcome.fit,
        outcome.ranks,
        settled(Bounds(lower, upper), p),
        _put(public.centre, columns, outcome.centre),
        _put(public.half_width, columns, outcome.scale),
        outcome.picture,
    )


def _put(into: FloatArray, columns: IntArray, values: FloatArray) -> FloatArray:
    """A copy with the last axis' `columns` replaced."""
    filled = into.copy()
    filled[..., columns] = values
    return filled
