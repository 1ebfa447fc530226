"""Several responses, and a time that is cut short: one private fit of all beside what can be done without it."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import mean, replicate, write
from sfumato import Bounds, Budget, PrivateCCA, PrivateCensoredSIR, PrivateMultiSIR, PrivateSIR, subspace_distance
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


def _other(x: Floats, e: Floats) -> tuple[Floats, Floats]:
    return np.exp(x[:, 0] + 0.5 * e[:, 0]), np.exp(1.5 * x[:, 1] + 0.5 * e[:, 1])


def _leaning(x: Floats, e: Floats) -> tuple[Floats, Floats]:
    return np.exp(x[:, 0] + 0.5 * e[:, 0]), np.exp(0.75 * x[:, 0] + 1.3 * x[:, 1] + 0.5 * e[:, 1])


def _against(x: Floats, e: Floats) -> tuple[Floats, Floats]:
    return np.exp(x[:, 0] + e[:, 0]), np.exp(0.5 * x[:, 1] - 1.2 * x[:, 0] + 0.5 * e[:, 1])


def _chance(x: Floats, e: Floats) -> tuple[Floats, Floats]:
    return np.exp(x[:, 0] + e[:, 0]), np.exp(e[:, 1] - 1.0)


CENSORING: dict[str, Callable[[Floats, Floats], tuple[Floats, Floats]]] = {
    "by chance, 70 %": _chance,
    "by another direction, 50 %": _other,
    "against the direction, 50 %": _against,
    "by one that leans towards it, 50 %": _leaning,
}
CENSORED = ("censored", "n", "events", "double slicing", "SIR of all times", "SIR of events alone", "both directions")


def censored_losses(name: str, n: int, seed: int) -> tuple[float, ...]:
    """Distances from the direction of the time; that of double slicing's two from those of time and censoring."""
    rng = np.random.default_rng(seed)
    x, e = rng.normal(size=(n, FEATURES)), rng.normal(size=(n, 2))
    event, end = CENSORING[name](x, e)
    time, seen = np.minimum(event, end), event <= end
    known: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "bounds": BOX, "random_state": seed}
    y = np.column_stack([time, seen])
    one = [
        PrivateCensoredSIR(**known, n_directions=1, method=method).fit(x, y) for method in ("events", "double-slicing")
    ]
    one += [
        PrivateSIR(**known, n_directions=1, method="descent").fit(x[kept], time[kept])
        for kept in (np.full(n, True), seen)
    ]
    two = PrivateCensoredSIR(**known, n_directions=2, method="double-slicing").fit(x, y)
    losses = [subspace_distance(fit.directions_, np.eye(1, FEATURES)) for fit in one]
    return (*losses, subspace_distance(two.directions_, np.eye(2, FEATURES)))


def censored(replications: int) -> None:
    """Every kind of censoring and every size."""
    rows = []
    for name, n in product(CENSORING, SIZES):
        *one, two = map(mean, replicate(censored_losses, replications, name, n).T)
        rows.append((name, f"{n:,}", *one, "" if name.startswith("by chance") else two))
    intro = (
        f"Distance to the direction that explains a censored time: epsilon = {EPSILON:g}, delta = {DELTA:g}, "
        f"p = {FEATURES} normal features, bounds given, {replications} replications.\n"
        "The last column: two directions of double slicing, and their distance from those of the time and of what cuts "
        "it short, where that depends on x."
    )
    command = f"python -m benchmarks censored-sir --replications {replications}"
    write("censored-sir", command, intro, CENSORED, rows)
