"""Forward methods under privacy: gradients in cells of x, and private steps of least average variance after a pilot.

The sums are those that a curator would release, with Gaussian noise made for their sensitivities; x is white already,
and ranks of y are given. What comes out is what to expect of such an estimator, not a release.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.study import mean, replicate, write
from sfumato import Bounds, Budget, PrivateDR, PrivatePHD, PrivateSIR, subspace_distance

FEATURES, EPSILON, DELTA, BOX = 10, 1.0, 1e-6, Bounds(-5.0, 5.0)
SIZES = (10_000, 100_000)
MU = Budget.approximate(EPSILON, DELTA).mu()
Floats = NDArray[np.float64]
LINKS: dict[str, tuple[int, float, Callable[[Floats], Floats]]] = {
    "x1^2": (1, 0.5, lambda x: x[:, 0] ** 2),
    "x1^2, much noise": (1, 2.0, lambda x: x[:, 0] ** 2),
    "cos(2 x1)": (1, 0.5, lambda x: np.cos(2.0 * x[:, 0])),
    "x1 x2": (2, 0.5, lambda x: x[:, 0] * x[:, 1]),
}
HEADER = ("link", "n", "PrivateSIR", "PrivatePHD", "PrivateDR", "OPG in cells", "PHD, then MAVE", "MAVE without noise")
LARGEST = float(np.sqrt(3.0))
"""Of a function of y, its rank at variance one."""
LOCAL = 16
"""Cells of x that a gradient is taken in."""
STEPS, GRID, DEGREE, REACH, PILOT = 3, {1: 12, 2: 6}, 4, 2.5, 0.6
"""Of the forward steps: how many, cells of each score, degree of the link, where scores end, share of the pilot."""
PARTS = {"link": 0.4, "size": 0.05, "step": 0.55}
LADDER = 2.0 ** np.arange(-8.0, 8.0, 0.25)
Release = Callable[[Floats, float, float], Floats]


def releasing(rng: np.random.Generator) -> Release:
    """``release(total, sensitivity, mu)``: the sum with the noise of a mu-GDP release; none if mu is infinite."""
    return lambda total, sensitivity, mu: np.asarray(total + sensitivity / mu * rng.normal(size=np.shape(total)))


def ranked(y: Floats) -> Floats:
    """Ranks, at variance one."""
    return np.asarray(LARGEST * ((2.0 * np.argsort(np.argsort(y)) + 1.0) / len(y) - 1.0))


def gradients_in_cells(z: Floats, f: Floats, k: int, mu: float, release: Release) -> Floats:
    """Outer products of gradients: least squares of f on z in each of the cells around public centres.

    A record is in one cell, with ``(1, z)(1, z)'`` and ``f (1, z)``, z cut to the length ``sqrt(p)``. In units in which
    either is at most ``p + 1`` long, replacing one record moves each by at most ``2 (p + 1)``; each has half of mu^2.
    """
    p = z.shape[1]
    cell = np.argmin(((z[:, None] - np.random.default_rng(0).normal(size=(LOCAL, p))) ** 2).sum(axis=2), axis=1)
    short = z * np.minimum(1.0, np.sqrt(p) / np.linalg.norm(z, axis=1, keepdims=True))
    rows, unit = np.column_stack([np.ones(len(z)), short]), LARGEST / np.sqrt(p + 1.0)
    sensitivity, half = 2.0 * (p + 1.0), mu / np.sqrt(2.0)
    kernel, edge = np.zeros((p, p)), sensitivity / half * np.sqrt(2.0 * p)
    for here in (cell == c for c in range(LOCAL)):
        second = release(rows[here].T @ rows[here], sensitivity, half)
        first = unit * release(f[here] @ rows[here] / unit, sensitivity, half)
        values, vectors = np.linalg.eigh((second + second.T) / 2.0)
        slope = (vectors / np.maximum(values, max(edge, 1e-9))) @ (vectors.T @ first)
        kernel += max(second[0, 0], 0.0) * np.outer(slope[1:], slope[1:])
    return np.asarray(np.linalg.eigh(kernel)[1][:, ::-1][:, :k].T)


def powers(u: Floats) -> tuple[Floats, Floats]:
    """Polynomials of scores u (n, k) up to `DEGREE`, (n, terms), and their derivatives by each score, (k, n, terms)."""
    k = u.shape[1]
    terms = np.array([e for e in product(range(DEGREE + 1), repeat=k) if sum(e) <= DEGREE])
    values = np.prod(u[:, None] ** terms, axis=2)
    lower = [np.prod(u[:, None] ** np.maximum(terms - one, 0), axis=2) * terms[:, j] for j, one in enumerate(np.eye(k))]
    return values, np.stack(lower)


def forward_steps(z: Floats, f: Floats, start: Floats, mu: float, release: Release) -> Floats:
    """Steps towards the least average variance around a link of the scores, from directions that are about right.

    First the link: every record adds 1 and f to the cell of its scores, which moves by ``sqrt(2 (1 + max f^2))`` where
    one is replaced; a polynomial is fitted to the means of the cells. Then ``sum z e'`` over the rest of z, e the
    residual times the slope of the link, each product clipped where a histogram of their lengths says: twice the clip.
    """
    n, k = len(z), len(start)
    basis, edges = np.linalg.qr(start.T)[0], np.linspace(-REACH, REACH, GRID[k] + 1)
    middles = np.stack([axis.ravel() for axis in np.meshgrid(*((edges[1:] + edges[:-1]) / 2.0,) * k, indexing="ij")], 1)
    part = {name: mu * np.sqrt(share / STEPS) for name, share in PARTS.items()}
    moves = np.sqrt(2.0 * (1.0 + LARGEST**2))
    for _ in range(STEPS):
        u = np.clip(z @ basis, -REACH, REACH)
        place = np.clip(np.searchsorted(edges, u, side="right") - 1, 0, GRID[k] - 1)
        cell = np.ravel_multi_index(tuple(place.T), (GRID[k],) * k)
        sums = np.stack([np.bincount(cell, weight, minlength=GRID[k] ** k) for weight in (np.ones(n), f)])
        counts, totals = release(sums, moves, part["link"])
        known = counts > 3.0 * moves / part["link"] + 1.0
        design, weight = powers(middles)[0][known], np.sqrt(counts[known])
        if len(weight) <= design.shape[1]:
            break  # too few cells to tell a link: the directions stay
        link = np.linalg.lstsq(design * weight[:, None], totals[known] / counts[known] * weight, rcond=None)[0]
        values, slopes = powers(u)
        tilt = (slopes @ link).T
        e, rest = tilt * (f - values @ link)[:, None], z - z @ basis @ basis.T
        size = np.linalg.norm(rest, axis=1) * np.linalg.norm(e, axis=1)
        lengths = release(np.histogram(size, np.append(LADDER, np.inf))[0].astype(float), np.sqrt(2.0), part["size"])
        limit = float(LADDER[min(np.searchsorted(np.cumsum(np.maximum(lengths, 0.0)) / n, 0.6) + 1, len(LADDER) - 1)])
        e *= np.minimum(1.0, limit / np.maximum(size, 1e-12))[:, None]
        step = release(rest.T @ e, 2.0 * limit, part["step"]) / n
        basis = np.linalg.qr(basis + (step - basis @ (basis.T @ step)) @ np.linalg.pinv(slope_moment(link, k)))[0]
    return np.asarray(basis.T)


def slope_moment(link: Floats, k: int) -> Floats:
    """Mean outer product of the slopes of a released link, if scores are normal: no record is asked."""
    tilt = (powers(np.clip(np.random.default_rng(0).normal(size=(4_000, k)), -REACH, REACH))[1] @ link).T
    return np.asarray(tilt.T @ tilt / len(tilt))


def losses(name: str, n: int, seed: int) -> tuple[float, ...]:
    """Distances of each way from the true directions, at one total budget."""
    rng, (k, noise, link) = np.random.default_rng(seed), LINKS[name]
    x = rng.normal(size=(n, FEATURES))
    y = link(x) + noise * rng.normal(size=n)
    f, release = ranked(y), releasing(rng)
    known: dict[str, Any] = {"n_directions": k, "bounds": BOX, "random_state": seed}
    fits = [kind(EPSILON, DELTA, **known).fit(x, y).directions_ for kind in (PrivateSIR, PrivatePHD, PrivateDR)]
    pilot = PrivatePHD(rho=PILOT * MU**2 / 2.0, **known).fit(x, y).directions_
    fits += [
        gradients_in_cells(x, f, k, MU, release),
        forward_steps(x, f, pilot, MU * np.sqrt(1.0 - PILOT), release),
        forward_steps(x, f, pilot, np.inf, release),
    ]
    return tuple(subspace_distance(rows, np.eye(k, FEATURES)) for rows in fits)


def main(replications: int) -> None:
    """Every link and size."""
    rows = [(name, f"{n:,}", *map(mean, replicate(losses, replications, name, n).T)) for name in LINKS for n in SIZES]
    intro = (
        f"Forward methods at the same total budget: epsilon = {EPSILON:g}, delta = {DELTA:g}, p = {FEATURES} normal "
        f"features, {replications} replications; distance to the true directions."
    )
    write("forward", f"python -m benchmarks forward --replications {replications}", intro, HEADER, rows)
