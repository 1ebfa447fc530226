"""What trust is worth, and which schedule a federated descent takes: few steps and functions of the response, or many.

Noise is sqrt(K) times that of a central run. The study compares the schedules on the same draws of models II to V of
He, Zhang and Chen, on seeds that no table uses, against ``n mu / sqrt(K)``, the public number that decides (`ENOUGH`,
`PLENTY`).
"""

from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks.study import mean, replicate, write
from sfumato import Bounds, Budget, subspace_distance
from sfumato.federated.task import ENOUGH, FEW_FUNCTIONS, FEW_ROUNDS, PLENTY, schedule_of
from sfumato.methods.sir import Task
from sfumato.privacy.asking import drive
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.research.fsir import fsir_iid, fsir_shaped, plan_shaped
from sfumato.research.he_tables import delta_of, drawn
from sfumato.research.many_sites import MergedSites
from sfumato.sources import ArraySource
from sfumato.steps.descent import Schedule
from sfumato.steps.one_shot import OneShot
from sfumato.steps.ranks import Ranking

CELLS = (
    (1000, 1, 1.0),
    (500, 10, 1.0),
    (1000, 10, 1.0),
    (5000, 1, 1.0),
    (5000, 10, 0.5),
    (5000, 10, 1.0),
    (1000, 100, 1.0),
)
FRESH = 90_000


def each(model: str, n: int, clients: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distance with each schedule, on one draw."""
    x, y, truth = drawn(model, n * clients, 10, FRESH + seed)
    budget = Budget.approximate(epsilon, delta_of(n, 6))
    sites = MergedSites(ArraySource(x, y, Response()), clients, budget)
    losses = []
    for schedule in (FEW_ROUNDS, FEW_FUNCTIONS, Schedule()):
        task = Task(10, n * clients, Response(), len(truth), Bounds(-6.0, 6.0), schedule=schedule)
        losses.append(subspace_distance(drive(task.run(), sites.open(task.plan())).directions, truth))
    return tuple(losses)


def trusted(model: str, n: int, clients: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distance by trust model: one curator; shares of noise, all but one or half of the sites honest; sites alone."""
    x, y, truth = drawn(model, n * clients, 10, FRESH + seed)
    source, budget = ArraySource(x, y, Response()), Budget.approximate(epsilon, 1e-5)
    task = Task(10, n * clients, Response(), len(truth), Bounds(-6.0, 6.0))
    losses = []
    for noises in (1.0, clients / (clients - 1), clients / (clients // 2), float(clients)):
        schedule = schedule_of(clients, n * clients, budget) if noises == clients else task.schedule
        chosen = replace(task, schedule=schedule)
        found = drive(chosen.run(), MergedSites(source, noises, budget).open(chosen.plan()))
        losses.append(subspace_distance(found.directions, truth))
    return tuple(losses)


def shaped(model: str, n: int, clients: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distance of mended FSIR with equal noise and with noise shaped by a first release, on one draw."""
    x, y, truth = drawn(model, n * clients, 10, FRESH + seed)
    sites = MergedSites(ArraySource(x, y, Response()), clients, Budget.approximate(epsilon, delta_of(n, 6)))
    losses = []
    for fit, lines in ((fsir_iid, OneShot(0.9).lines), (fsir_shaped, plan_shaped(0.9))):
        curator = sites.open(Plan((*Ranking(Response(), 0.1).lines, *lines)))
        ranks, grid = drive(Ranking(Response(), 0.1).run(), curator), Bounds(-6.0, 6.0).grid(10)
        found = drive(fit(grid, ranks, n * clients, 2.0 * np.sqrt(10), 6, len(truth)), curator)
        losses.append(subspace_distance(found, truth))
    return tuple(losses)


def main(replications: int) -> None:
    """Write all comparisons."""
    schedules(replications)
    rows = []
    for n, model in product((1000, 5000), ("II", "III", "IV", "V")):
        out = replicate(shaped, replications, model, n, 10, 1.0)
        rows.append((n, model, mean(out[:, 0]), mean(out[:, 1])))
    write(
        "federated-shaped",
        f"python -m benchmarks federated --replications {replications}",
        "FSIR with noise shaped by an earlier private release: mean distance, 10 sites, epsilon = 1 at each\n"
        "The safe variant of the paper's MVG mechanism beside equal noise, the same total budget and the same draws.",
        ("n", "model", "equal noise", "shaped noise"),
        rows,
    )
    rows = []
    for clients, model in product((10, 50), ("II", "III", "IV", "V")):
        out = replicate(trusted, replications, model, 1000, clients, 1.0)
        rows.append((clients, model, *(mean(out[:, j]) for j in range(4))))
    write(
        "federated-trust",
        f"python -m benchmarks federated --replications {replications}",
        "What trust is worth: mean distance, 1000 records at each of K sites, epsilon = 1, delta = 1e-5\n"
        "The same draws in every row. One curator pools all records; with shares of noise the server sees only sums "
        "over all sites, and the guarantee holds if so many sites are honest; alone, every site adds all its noise.",
        ("K", "model", "one curator", "shares, K - 1 honest", "shares, K / 2 honest", "sites alone"),
        rows,
    )


def schedules(replications: int) -> None:
    """Write the comparison of schedules."""
    rows = []
    for (n, clients, epsilon), model in product(CELLS, ("II", "III", "IV", "V")):
        out = replicate(each, replications, model, n, clients, epsilon)
        plenty = n * np.sqrt(clients) * Budget.approximate(epsilon, delta_of(n, 6)).mu()
        ratios = (mean(np.log(out[:, j] / out[:, 0])) for j in (1, 2))
        rows.append((n, clients, epsilon, f"{plenty:.0f}", model, *(mean(out[:, j]) for j in range(3)), *ratios))
    write(
        "federated-schedule",
        f"python -m benchmarks federated --replications {replications}",
        "Schedule of a federated descent: mean distance\n"
        f"Seeds {FRESH} and up, which no table uses. The middle schedule is taken above n mu / sqrt(K) = {ENOUGH:g}, n "
        f"of all sites, and the wide one above {PLENTY:g}, for the sake of rare groups; the last columns are means of "
        "log ratios to the narrow one, below zero where the other is better.",
        (
            *("n", "K", "epsilon", "n mu / sqrt(K)", "model"),
            *("narrow, 3 steps", "middle, 4 steps", "wide, 4 steps", "log(middle / narrow)", "log(wide / narrow)"),
        ),
        rows,
    )
