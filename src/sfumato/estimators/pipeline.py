"""From public facts to a plan, and from releases to directions. No record is seen here."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from sfumato.bounds import Bounds
from sfumato.forecast.belief import Belief, choose_by_test
from sfumato.forecast.evidence import Evidence, Heard, Seen
from sfumato.forecast.populations import IndexResponse
from sfumato.forecast.prospect import Prospect
from sfumato.iterate.descent import Chooser, Fit, Schedule, descend, init, plan_descent, step
from sfumato.iterate.location import Located, Location, find_bounds, plan_location
from sfumato.iterate.oneshot import one_shot, plan_one_shot
from sfumato.iterate.picture import Picture, plan_picture, take_picture
from sfumato.iterate.ranks import Ranks, count_ranks, find_ranks, plan_ranks
from sfumato.iterate.shape import plan_shape, rough_shape
from sfumato.privacy.asking import Asking
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.solve.dimension import Choice
from sfumato.solve.links import Links, signs_of, unit_directions
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray

METHODS: tuple[Literal["descent", "one-shot"], ...] = ("descent", "one-shot")
SHARES = {"ranks": 0.07, "radius": 0.03, "residual": 0.03, "shape": 0.20, "solve": 0.69}
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
    bounds: Bounds | Location
    method: Literal["descent", "one-shot"] = "descent"
    picture: float = 0.0
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def walked(self) -> Schedule:
        """The schedule, if there are steps; a single question takes the usual bins of the response."""
        return self.schedule if self.method == "descent" else Schedule()

    def plan(self) -> Plan:
        """Every release the fit will make, with its share; the picture takes its own off the top."""
        lines = plan_location(self.bounds)
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

    def run(self) -> Asking["Outcome"]:
        """Walk the plan."""
        located = yield from find_bounds(self.bounds, self.n_features, self.n_records)
        heard = Heard()
        ranks = yield from heard.of(find_ranks(self.response, self.walked.bins))
        return (yield from solve(self, ranks, located, heard))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a fit learnt, from releases alone. `centre` and `scale` are in the units of x.

    `belief` is what can be said about the directions themselves; None where nothing can.
    """

    directions: FloatArray
    fit: Fit
    ranks: Ranks
    located: Located
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

    def look(self) -> Asking[Links]:
        """The links that the number of directions is chosen by."""
        task, (ranks, n, whitening) = self.task, (yield from self._shape())
        if task.method == "one-shot":
            return (yield from one_shot(whitening, ranks, n, task.n_directions)).first
        state = init(whitening, ranks, task.n_directions, task.schedule)
        return (yield from step(whitening, ranks, state, 1, n, task.schedule)).links

    def run(self, n_directions: int) -> Asking[Seen]:
        """The whole fit."""
        ranks, n, whitening = yield from self._shape()
        fit = yield from fit_links(replace(self.task, n_directions=n_directions), ranks, n, whitening)
        return Seen(fit.links, ranks.probabilities, whitening.exact_matrix)

    def _shape(self) -> Asking[tuple[Ranks, float, Whitening]]:
        ranks = (yield from count_ranks(self.ranks.bins, self.task.response)) if self.counted else self.ranks
        n, grid = records_of(self.task, ranks), Bounds(-1.0, 1.0).grid(self.task.n_features)
        whitening = yield from rough_shape(grid, n, CAPS[self.task.method])
        return ranks, n, whitening


def solve(
    task: Task, ranks: Ranks, located: Located, heard: Heard | None = None, *, tested: bool = True
) -> Asking[Outcome]:
    """The rest of the plan, once bounds and ranks are known.

    `heard` is what was released about the ranks; `tested` is False where the features were picked by what they have to
    do with y: a test would not know.
    """
    grid, heard = located.grid, heard or Heard()
    n = records_of(task, ranks)
    whitening = yield from heard.of(rough_shape(grid, n, CAPS[task.method]))
    # In half widths: whatever was known of the bounds is not part of it.
    again = Again(replace(task, bounds=Bounds(-1.0, 1.0), picture=0.0), ranks, "ranks" in heard.lines)

    def chooser(first: Links) -> Choice:
        return choose_by_test(Evidence.of(heard, n, whitening, ranks, again), first)

    automatic = tested and task.n_directions is None
    fit = yield from heard.of(fit_links(task, ranks, n, whitening, chooser if automatic else None))
    signs = signs_of(fit.links, ranks.probabilities, fit.choice.n_directions, ranks.is_ordered)
    directions = unit_directions(fit.links, whitening.exact_matrix / grid.half_width, signs)
    evidence = Evidence.of(heard, n, whitening, ranks, again)
    belief = Belief(evidence, fit.first, fit.links, fit.choice, grid.half_width, signs, tested)
    picture = None
    if task.picture > 0:
        picture = yield from take_picture(whitening, ranks, fit.links.axes[:, 0] * signs[0])
    centre = grid.centre + whitening.mean * grid.half_width
    return Outcome(directions, fit, ranks, located, centre, _scale(whitening), picture, belief)


def records_of(task: Task, ranks: Ranks) -> float:
    """The number of records: public, or else what the released histogram of y says, kept away from zero."""
    return float(task.n_records) if task.n_records is not None else max(ranks.total, 10.0 * task.n_features)


def fit_links(task: Task, ranks: Ranks, n: float, whitening: Whitening, chooser: Chooser | None = None) -> Asking[Fit]:
    """The method of the task."""
    if task.method == "descent":
        return (yield from descend(whitening, ranks, n, task.n_directions, task.schedule, chooser))
    return (yield from one_shot(whitening, ranks, n, task.n_directions, chooser))


def _scale(whitening: Whitening) -> FloatArray:
    """Released standard deviation of each feature: the root of the diagonal of ``(W^T W)^-1``."""
    inverse = np.linalg.pinv(whitening.exact_matrix)
    return np.asarray(np.linalg.norm(inverse, axis=1) * whitening.source.half_width)
