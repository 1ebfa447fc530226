"""Which part of a sparse fit over sites loses: cells of He's Tables 3 and 4, one release at a time without noise."""

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from benchmarks.study import mean, replicate, write
from sfumato import Budget, subspace_distance
from sfumato.federated import task as over_sites
from sfumato.federated.task import run_sparse_sites
from sfumato.privacy.asking import drive
from sfumato.privacy.plan import Plan
from sfumato.research.he_tables import printed, wide_fit
from sfumato.research.many_sites import WideCurator, WideSites
from sfumato.research.models import active_of
from sfumato.steps.screening import Screen

CELLS = (
    ("I", 1000, 1, 1.0),
    ("I", 2000, 1, 0.5),
    ("III", 500, 10, 1.0),
    ("III", 1000, 10, 0.5),
    ("III", 1000, 10, 1.0),
    ("III", 1000, 50, 0.5),
    ("III", 2000, 50, 0.5),
)
"""Model, p, sites, epsilon at each."""
WAYS = (
    ("as it is", (), False),
    ("votes exact", ("picks",), False),
    ("votes, scores exact", ("picks", "scores"), False),
    ("features known", (), True),
    ("and steps exact", ("step", "residual"), True),
)
"""Name, beginnings of the lines whose noise is left out, whether the fit is told the features."""
FIRST_SEED = 9_000
"""Other records than those of the tables."""
TOO_MUCH = 1e6
"""Times the cost of a line at which it has no noise to speak of."""


def distances(model: str, p: int, clients: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distance in every way, and how many features that count are named and kept as it is."""
    found: list[float] = []
    counts: tuple[int, int] = (0, 0)
    for _, exact, known in WAYS:
        task, sites, truth = wide_fit(model, p, clients, epsilon, FIRST_SEED + seed)
        plan, ledger = without_noise(task.plan().calibrate(sites.budget), exact), Budget.zcdp(1e9)
        told = WideSites(sites.near, sites.y, sites.response, sites.far, clients, ledger, sites.seed)
        door, active = WideCurator(told, plan), active_of(p)
        with patch.object(over_sites, "screen_by_votes", _told(active) if known else over_sites.screen_by_votes):
            outcome, screen = drive(run_sparse_sites(task, door), door)
        found.append(subspace_distance(outcome.directions, truth))
        if not (exact or known):
            counts = int((screen.picked < active).sum()), int((screen.kept < active).sum())
    return (*found, *counts)


def without_noise(plan: Plan, exact: tuple[str, ...]) -> Plan:
    """The plan with lines of some names as good as exact: for a study of simulated records alone."""
    lines = (replace(line, rho=line.rho * TOO_MUCH) if line.name.startswith(exact) else line for line in plan.lines)
    return replace(plan, lines=tuple(lines)) if exact else plan


def _told(active: int):
    """In place of the votes: the features that count."""

    def screen(*_: object) -> Iterator[None]:
        yield from ()
        return Screen(np.arange(active), np.arange(active), np.ones(active), 0.0)

    return screen


def main(replications: int) -> None:
    """All cells."""
    rows = []
    for model, p, clients, epsilon in CELLS:
        out = replicate(distances, replications, model, p, clients, epsilon)
        best = min(printed(3 if epsilon == 0.5 else 4)[model, 1000, p, clients].values())
        means = [f"{one.mean:.3f} ± {one.error:.3f}" for one in map(mean, out.T[: len(WAYS)])]
        named, kept = out[:, -2].mean(), out[:, -1].mean()
        rows.append((model, p, clients, epsilon, best, *means, f"{named:.1f}, {kept:.1f} of {active_of(p)}"))
        print(*rows[-1], flush=True)
    write(
        "sparse-sites",
        f"python -m benchmarks sparse-sites --replications {replications}",
        "Sparse fits over sites: which part loses\n"
        "Cells of Tables 3 and 4 of He, Zhang and Chen (1000 records at each site, all else as there, other records): "
        "mean distance ± standard error of the fit as it is; with the names that sites give exact; with their scores "
        "exact, too; told which features count, at the same noise of everything else; and with exact steps of the "
        "descent besides. 'Printed' is the better of the two printed values, of methods that follow a filter without "
        "noise. Last: features that count among those named as candidates, and among those kept.",
        ("model", "p", "K", "epsilon", "printed", *(name for name, _, _ in WAYS), "named, kept"),
        rows,
    )
