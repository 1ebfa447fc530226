"""Sparse fits over sites: every site votes privately for the features that matter, then the usual descent on them."""

from dataclasses import dataclass

from sfumato.bounds import Bounds, PartialBounds
from sfumato.federated.voting import Ballot, Voters, plan_votes, screen_by_votes
from sfumato.methods.sir import Outcome, Task, solve
from sfumato.methods.sparse_sir import some_bounds, spread
from sfumato.privacy.asking import Asking, on_columns
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.steps.descent import Schedule, plan_descent
from sfumato.steps.location import settled
from sfumato.steps.ranks import find_ranks, plan_ranks
from sfumato.steps.screening import Screen
from sfumato.steps.shape import plan_shape

SHARES = {"ranks": 0.15, "picks": 0.9, "scores": 0.4, "radius": 0.02, "residual": 0.03, "shape": 0.12, "solve": 0.45}
"""Parts of the zCDP cost; relative. Votes take most, as a site votes by itself and what follows adds up all sites; and
from the ranks the functions are made that features are scored with."""
CLASS_SHARES = SHARES | {"ranks": 0.03, "picks": 0.8, "scores": 0.35}
"""Classes need no ranks, and have one table of functions for the votes, not two."""


@dataclass(frozen=True, slots=True)
class SparseSites:
    """What is public about a sparse fit over sites.

    `n_records` is that of all sites, None where it is private; a site names `picks` features in each round.
    """

    n_features: int
    n_records: int | None
    response: Response
    n_directions: int | None
    bounds: Bounds
    picks: int
    sites: int
    schedule: Schedule

    def plan(self) -> Plan:
        """Every release of a site, with its share. Ranks come from sums, as quantiles cannot be added."""
        shares = SHARES if self.response.categories is None else CLASS_SHARES
        return Plan(
            (
                *plan_ranks(self.response, shares["ranks"]),
                *plan_votes(self.sites, self.picks, self.response, shares["picks"], shares["scores"]),
                *plan_shape(shares["radius"], shares["shape"]),
                *plan_descent(self.schedule, shares["solve"], shares["residual"]),
            )
        )


def run_sparse_sites(task: SparseSites, voters: Voters) -> Asking[tuple[Outcome, Screen]]:
    """Walk the plan; sites vote for features between its questions. The outcome is about all features again."""
    ranks = yield from find_ranks(task.response, task.schedule.bins, task.n_records)
    n = float(task.n_records) if task.n_records is not None else max(ranks.total, 10.0 * task.picks)
    centre = task.bounds.grid(task.n_features).centre
    ballot = Ballot(centre, ranks, task.response, task.sites, task.picks)
    found = yield from screen_by_votes(voters, ballot, n, task.n_directions or 1)
    bounds = some_bounds(task.bounds, found.kept)
    few = Task(len(found.kept), task.n_records, task.response, task.n_directions, bounds, schedule=task.schedule)
    outcome = yield from on_columns(solve(few, ranks, settled(bounds, len(found.kept)), tested=False), found.kept)
    return spread(outcome, PartialBounds.of(task.bounds, task.n_features), found.kept), found
