"""Curvature: principal Hessian directions beside SAVE and directional regression at the same budget."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import mean, replicate, write
from sfumato import Bounds, PrivateDR, PrivatePHD, PrivateSAVE, subspace_distance

FEATURES, EPSILON, BOX = 10, 1.0, Bounds(-5.0, 5.0)
KINDS = (PrivatePHD, PrivateSAVE, PrivateDR)
HEADER = ("link", "n", *(kind.__name__ for kind in KINDS))
Link = Callable[[NDArray[np.float64]], NDArray[np.float64]]
LINKS: dict[str, tuple[int, Link]] = {
    "x1^2": (1, lambda x: x[:, 0] ** 2),
    "x1^2 + x2, only x1 counts": (1, lambda x: x[:, 0] ** 2 + x[:, 1]),
    "x1 x2": (2, lambda x: x[:, 0] * x[:, 1]),
}


def losses(link: str, n: int, seed: int) -> tuple[float, ...]:
    """Distance of the directions that each method finds from those that y curves along."""
    rng, (k, curve) = np.random.default_rng(seed), LINKS[link]
    x = rng.normal(size=(n, FEATURES))
    y = curve(x) + 0.5 * rng.normal(size=n)
    fits = (kind(epsilon=EPSILON, n_directions=k, bounds=BOX, random_state=seed).fit(x, y) for kind in KINDS)
    return tuple(subspace_distance(fit.directions_, np.eye(k, FEATURES)) for fit in fits)


def main(replications: int) -> None:
    """Every link and size."""
    rows = [
        (link, f"{n:,}", *map(mean, replicate(losses, replications, link, n).T))
        for link in LINKS
        for n in (2_000, 5_000, 20_000)
    ]
    intro = (
        f"Distance to the directions that y curves along: epsilon = {EPSILON:g}, delta = 1e-6, p = {FEATURES} normal "
        f"features, noise of standard deviation 0.5, bounds given, {replications} replications."
    )
    write("phd", f"python -m benchmarks phd --replications {replications}", intro, HEADER, rows)
