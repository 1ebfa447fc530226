"""From public facts to a plan, and from a curator to directions. No record is seen here."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from sfumato.bounds import Bounds
from sfumato.forecast.belief import Belief, choose_by_test
from sfumato.forecast.evidence import Evidence, Seen, Witness
from sfumato.forecast.populations import IndexResponse
from sfumato.forecast.prospect import Prospect
from sfumato.iterate.descent import Chooser, Fit, Schedule, descend, init, plan_descent, step
from sfumato.iterate.location import find_bounds, plan_location
from sfumato.iterate.oneshot import one_shot, plan_one_shot
from sfumato.iterate.picture import Picture, plan_picture, take_picture
from sfumato.iterate.ranks import Ranks, count_ranks, find_ranks, plan_ranks
from sfumato.iterate.shape import plan_shape, rough_shape
from sfumato.privacy.door import Door
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.solve.dimension import Choice
from sfumato.solve.links import Links, signs_of, unit_directions
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray

METHODS: tuple[Literal["descent", "one-shot"], ...] = ("descent", "one-shot")
SHARES = {"location": 0.10, "ranks": 0.07, "radius": 0.03, "residual": 0.03, "shape": 0.20, "solve": 0.69}
"""Parts of mu^2. A fit that skips a step (bounds given) has more for the others: shares are relative."""

CAPS = {"descent": 3.0, "one-shot": 1.0}
"""Longest whitened record that is kept, over the root of the number of features."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is public about a fit. `n_records` is None under add/remove-one, where the number is private."""

    n_features: int
    n_records: int | None
    response: Response
    n_directions: int | None
    bounds: Bounds | None
    method: Literal["descent", "one-shot"] = "descent"
    picture: float = 0.0
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def walked(self) -> Schedule:
        """The schedule, if there are steps; a single question takes the usual bins of the response."""
        return self.schedule if self.method == "descent" else Schedule()

    def plan(self) -> Plan:
        """Every release the fit will make, with its share; the picture takes its own off the top."""
        lines: tuple[Line, ...] = ()
        if self.bounds is None:
            lines += plan_location(SHARES["location"])
        ranks = self.walked.ranks if self.response.categories is None else SHARES["ranks"]
        lines += plan_ranks(self.response, ranks)
        lines += plan_shape(SHARES["radius"], SHARES["shape"])
        if self.method == "descent":
            lines += plan_descent(self.schedule, SHARES["solve"], SHARES["residual"])
        else:
            lines += plan_one_shot(SHARES["solve"])
        if self.picture > 0:
            whole = sum(line.share for line in lines)
            lines += plan_picture(whole * self.picture / (1.0 - self.picture))
        return Plan(lines)

    def prospect(self) -> Prospect:
        """Both methods, on records whose response (or class) an index explains."""
        fits = tuple((method, replace(self, method=method)) for method in METHODS)
        k, known = self.n_directions or 1, self.response.categories
        # Of declared classes the last code is that of all others; k + 1 undeclared ones can show k directions.
        classes = None if known is None else k + 1 if self.response.hashed else max(known - 1, 2)
        return Prospect(fits, IndexResponse(self.n_features, k, classes=classes))

    def run(self, door: Door) -> "Outcome":
        """Walk the plan."""
        bounds = self.bounds if self.bounds is not None else find_bounds(door, self.n_features)
        witness = Witness(door)
        return solve(self, witness, find_ranks(witness, self.response, self.walked.bins), bounds)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a fit learnt, from releases alone. `centre` and `scale` are in the units of x.

    `belief` is what can be said about the directions themselves; None where nothing can.
    """

    directions: FloatArray
    fit: Fit
    ranks: Ranks
    bounds: Bounds
    centre: FloatArray
    scale: FloatArray
    picture: Picture | None
    belief: Belief | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """The same fit on records in half widths of its bounds; ranks are counted again if a line paid for that."""

    task: Task
    ranks: Ranks
    counted: bool

    def look(self, door: Door) -> Links:
        """The links that the number of directions is chosen by."""
        ranks, n, whitening = self._shape(door)
        if self.task.method == "one-shot":
            return one_shot(door, whitening, ranks, n, self.task.n_directions).first
        state = init(whitening, ranks, self.task.n_directions, self.task.schedule)
        return step(door, whitening, ranks, state, 1, n, self.task.schedule).links

    def run(self, door: Door, n_directions: int) -> Seen:
        """The whole fit."""
        ranks, n, whitening = self._shape(door)
        fit = fit_links(replace(self.task, n_directions=n_directions), door, ranks, n, whitening)
        return Seen(fit.links, ranks.probabilities, whitening.exact_matrix)

    def _shape(self, door: Door) -> tuple[Ranks, float, Whitening]:
        ranks = count_ranks(door, self.ranks.bins, self.task.response) if self.counted else self.ranks
        n, grid = records_of(self.task, ranks), Bounds(-1.0, 1.0).grid(self.task.n_features)
        return ranks, n, rough_shape(door, grid, n, CAPS[self.task.method])


def solve(task: Task, curator: Door, ranks: Ranks, bounds: Bounds, *, tested: bool = True) -> Outcome:
    """The rest of the plan, once bounds and ranks are known.

    `tested` is False where the features were picked by what they have to do with y: a test would not know.
    """
    grid = bounds.grid(task.n_features)
    n = records_of(task, ranks)
    door = curator if isinstance(curator, Witness) else Witness(curator)
    whitening = rough_shape(door, grid, n, CAPS[task.method])
    again = Again(task, ranks, "ranks" in door.lines)

    def chooser(first: Links) -> Choice:
        return choose_by_test(Evidence.of(door, n, whitening, ranks, again), first)

    fit = fit_links(task, door, ranks, n, whitening, chooser if tested and task.n_directions is None else None)
    k = fit.choice.n_directions
    signs = signs_of(fit.links, ranks.probabilities, k, ranks.is_ordered)
    directions = unit_directions(fit.links, whitening.exact_matrix / grid.half_width, signs)
    picture = take_picture(door, whitening, ranks, fit.links.axes[:, 0] * signs[0]) if task.picture > 0 else None
    centre = grid.centre + whitening.mean * grid.half_width
    evidence = Evidence.of(door, n, whitening, ranks, again)
    belief = Belief(evidence, fit.first, fit.links, fit.choice, grid.half_width, signs, tested)
    return Outcome(directions, fit, ranks, bounds, centre, _scale(whitening), picture, belief)


def records_of(task: Task, ranks: Ranks) -> float:
    """The number of records: public, or else what the released histogram of y says, kept away from zero."""
    return float(task.n_records) if task.n_records is not None else max(ranks.total, 10.0 * task.n_features)


def fit_links(
    task: Task, door: Door, ranks: Ranks, n: float, whitening: Whitening, chooser: Chooser | None = None
) -> Fit:
    """The method of the task."""
    if task.method == "descent":
        return descend(door, whitening, ranks, n, task.n_directions, task.schedule, chooser)
    return one_shot(door, whitening, ranks, n, task.n_directions, chooser)


def _scale(whitening: Whitening) -> FloatArray:
    """Released standard deviation of each feature: the root of the diagonal of ``(W^T W)^-1``."""
    inverse = np.linalg.pinv(whitening.exact_matrix)
    return np.asarray(np.linalg.norm(inverse, axis=1) * whitening.source.half_width)
