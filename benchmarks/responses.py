"""Several responses, and a time that is cut short: one private fit of all beside what can be done without it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import mean, replicate, write
from sfumato import Bounds, Budget, PrivateCCA, PrivateMultiSIR, PrivateSIR, subspace_distance
from sfumato.methods.multi_sir import MultiTask, pieces_of
from sfumato.records import Records, Response

FEATURES, EPSILON, DELTA, BOX = 10, 1.0, 1e-6, Bounds(-5.0, 5.0)
SIZES = (5_000, 20_000)
Floats = NDArray[np.float64]


def _own(x: Floats, e: Floats) -> Floats:
    return x[:, :2] + 0.5 * e[:, :2]


def _curves(x: Floats, e: Floats) -> Floats:
    return np.column_stack([x[:, 0], np.exp(x[:, 0] / 2.0), np.sin(x[:, 0])]) + e[:, :3]


def _together(x: Floats, e: Floats) -> Floats:
    r = np.tanh(2.0 * x[:, 0])
    return np.column_stack([e[:, 0], r * e[:, 0] + np.sqrt(1.0 - r**2) * e[:, 1]])


def _turned(x: Floats, e: Floats) -> Floats:
    angle = np.arctan(x[:, 0]) + np.pi / 2.0
    return np.column_stack([np.cos(angle), np.sin(angle)]) * 2.0 * e[:, :1] + 0.5 * e[:, 1:3]


RESPONSES: dict[str, tuple[int, Callable[[Floats, Floats], Floats]]] = {
    "two, each with a direction of its own": (2, _own),
    "three curves of one direction": (1, _curves),
    "two, x says how they go together": (1, _together),
    "two, x turns their long axis": (1, _turned),
}
SEVERAL = ("responses", "n", "PrivateMultiSIR", "PrivateSIR of each", "PrivateCCA", "without privacy")


def several_losses(name: str, n: int, seed: int) -> tuple[float, ...]:
    """Distances of the directions of each way from the true ones."""
    rng, (k, make) = np.random.default_rng(seed), RESPONSES[name]
    x, e = rng.normal(size=(n, FEATURES)), rng.normal(size=(n, 3))
    y = make(x, e)
    known: dict[str, Any] = {"bounds": BOX, "random_state": seed}
    together = PrivateMultiSIR(EPSILON, DELTA, k, **known).fit(x, y).directions_
    # One at a time: zCDP adds up, so each has a part of the budget's rho. There is one direction for each to find.
    rho = Budget.approximate(EPSILON, DELTA).mu() ** 2 / 2.0 / y.shape[1]
    each = [PrivateSIR(rho=rho, n_directions=1, method="descent", **known).fit(x, one).directions_ for one in y.T]
    pooled = np.linalg.svd(np.concatenate(each), full_matrices=False)[2][:k]
    pairs = PrivateCCA(k, EPSILON, DELTA, **known).fit(x, y).directions_
    task = MultiTask(FEATURES, n, Response(), k, BOX, n_targets=y.shape[1])
    places = np.stack([pieces_of(one, task.ranking.pieces[0]) for one in y.T], axis=1)
    plain = task.plain_directions(Records(x, np.zeros(n)), np.ones(n), places, k)
    return tuple(subspace_distance(rows, np.eye(k, FEATURES)) for rows in (together, pooled, pairs, plain))


def several(replications: int) -> None:
    """Every kind of responses and every size."""
    rows = [
        (name, f"{n:,}", *map(mean, replicate(several_losses, replications, name, n).T))
        for name in RESPONSES
        for n in SIZES
    ]
    intro = (
        f"Distance to the directions that explain several responses: total epsilon = {EPSILON:g}, delta = {DELTA:g}, "
        f"p = {FEATURES} normal features, bounds given, {replications} replications."
    )
    write("multi-sir", f"python -m benchmarks multi-sir --replications {replications}", intro, SEVERAL, rows)
