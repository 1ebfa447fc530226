"""From public facts to a plan, and from releases to directions. No record is seen here."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from sfumato.bounds import Bounds
from sfumato.forecast.populations import IndexResponse
from sfumato.forecast.prospect import Prospect
from sfumato.iterate.descent import Fit, Schedule, descend, plan_descent
from sfumato.iterate.location import Located, Location, find_bounds, plan_location
from sfumato.iterate.oneshot import one_shot, plan_one_shot
from sfumato.iterate.picture import Picture, plan_picture, take_picture
from sfumato.iterate.ranks import Ranks, find_ranks, plan_ranks
from sfumato.iterate.shape import plan_shape, rough_shape
from sfumato.privacy.asking import Asking
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.solve.spectral import Spectrum, directions_in_x
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray

METHODS: tuple[Literal["descent", "one-shot"], ...] = ("descent", "one-shot")
SHARES = {"ranks": 0.07, "radius": 0.03, "residual": 0.03, "shape": 0.20, "solve": 0.69}
"""Parts of mu^2. A fit that skips a step (bounds given) has more for the others: shares are relative."""


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
        ranks = yield from find_ranks(self.response, self.walked.bins)
        return (yield from solve(self, ranks, located))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a fit learnt, from releases alone. `centre` and `scale` are in the units of x."""

    spectrum: Spectrum
    fit: Fit
    ranks: Ranks
    located: Located
    centre: FloatArray
    scale: FloatArray
    picture: Picture | None


def solve(task: Task, ranks: Ranks, located: Located) -> Asking[Outcome]:
    """The rest of the plan, once bounds and ranks are known."""
    grid = located.grid
    # The number of records is public, or else what the released histogram of y says, kept away from zero.
    n = float(task.n_records) if task.n_records is not None else max(ranks.total, 10.0 * task.n_features)
    cap = 1.0 if task.method == "one-shot" else 3.0
    whitening = yield from rough_shape(grid, n, cap)
    if task.method == "descent":
        fit = yield from descend(whitening, ranks, n, task.n_directions, task.schedule)
    else:
        fit = yield from one_shot(whitening, ranks, n, task.n_directions)
    spectrum = directions_in_x(
        fit.coefficients, fit.noise_std, whitening.exact_matrix / grid.half_width, fit.choice.n_directions
    )
    picture = None
    if task.picture > 0:
        picture = yield from take_picture(whitening, ranks, _leading(fit))
    centre = grid.centre + whitening.mean * grid.half_width
    return Outcome(spectrum, fit, ranks, located, centre, _scale(whitening), picture)


def _leading(fit: Fit) -> FloatArray:
    return np.linalg.svd(fit.coefficients, full_matrices=False)[0][:, 0]


def _scale(whitening: Whitening) -> FloatArray:
    """Released standard deviation of each feature: the root of the diagonal of ``(W^T W)^-1``."""
    inverse = np.linalg.pinv(whitening.exact_matrix)
    return np.asarray(np.linalg.norm(inverse, axis=1) * whitening.source.half_width)
