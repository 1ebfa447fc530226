"""The printed noise of the papers, for reproducing their tables: flagged, and never calibrated to a budget."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from sfumato.bounds import Bounds, Grid
from sfumato.errors import InputError, PrivacyWarning
from sfumato.methods.about import PARAMETERS, About, Attack
from sfumato.methods.base import Session
from sfumato.privacy.curator import PaperCurator
from sfumato.records import Response
from sfumato.research.pencil import (
    PENALTY,
    Iterate,
    Pencil,
    arctan_edges,
    class_slices,
    cut,
    moments_of,
    pace_of,
    paired,
)
from sfumato.research.sums import CandidateSums, IndexProducts, ProductRows, SliceSums
from sfumato.schema import Reader, word
from sfumato.settings import adder_of
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.statistics.parts import Part
from sfumato.steps.location import Location
from sfumato.steps.ranks import Ranks
from sfumato.steps.symmetric import split_moments, upper_to_full
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

CALIBRATIONS = ("tight", "paper")
"""Correct noise under one total budget, or the printed noise, flagged."""
FIRST = "first"
"""The printed noise of the first version of DP-SIR, flagged."""
REASON = (
    "calibration='paper': slices, initial value and steps are each charged the stated epsilon and delta, and the "
    "gradient's sensitivity assumes large slices; use calibration='tight'."
)
R = 2.0
"""Where every index ``b^T x`` is cut; of order sqrt(log n) in the paper, which leaves the constant open."""
FIRST_REASON = (
    "calibration='first': slices are sample quantiles, initial value and steps are each charged the stated epsilon and "
    "delta, and the noise of sparse steps lacks the number of steps; use calibration='tight'."
)
CALIBRATED: dict[str, Reader] = PARAMETERS | {"calibration": word(CALIBRATIONS)}
PEELED: dict[str, Any] = {"attacked": {"": {"max_features": 2}}, "table": {"n_features": 6}}
"""What is attacked of an estimator that keeps few features."""
HISTOGRAM_EPSILON = 0.1
EXACT, EXACT_BINS = 1e-3, 20_000
"""Noise and bins of a histogram that stands for the records themselves, where the first version takes quantiles."""


class Compared:
    """A task of a paper's own method: there is no theory to forecast it by, and it is here to be compared."""

    __slots__ = ()

    def prospect(self) -> None:
        """No forecast."""


def paper_about(
    title: str,
    words: str,
    page: str,
    make: Callable[[], type],
    attacked: Mapping[str, dict[str, Any]] = MappingProxyType({"": {}}),
    table: Mapping[str, Any] = MappingProxyType({}),
    **others: Any,
) -> About:
    """What an estimator of the papers says of itself.

    `make` gives its class, which does not exist yet where this is called. `attacked` are parameters of the fits that
    are attacked, by what their names say besides the class, and `table` the kind of table they are given.
    """

    def attacks(known: dict[str, Any]) -> Iterator[Attack]:
        name = make().__name__
        for variant, more in attacked.items():
            yield Attack(f"{name}, {variant}" if variant else name, make()(**known, **more), **table)

    home = "sfumato.research"
    return About(title, f"methods/{page}.md", method=lambda _: words, home=home, attacks=attacks, **others)


def open_printed(session: Session, estimator: Any, reason: str, takes_rho: bool = False) -> PaperCurator:
    """The door of ``calibration="paper"``: it adds the printed noise, and the ledger says that nothing is promised."""
    refused = estimator.rho is not None and not takes_rho
    if refused or estimator.ledger is not None or session.n_records is None:
        raise InputError(
            "calibration='paper' gives no guarantee and takes neither a shared ledger, relation='add-remove' nor "
            "groups or rows_per_person, and rho for Rayleigh flow only; use calibration='tight'."
        )
    warnings.warn(reason, PrivacyWarning, stacklevel=5)
    setting = adder_of(session.source)
    return PaperCurator(setting, session.ledger, session.noise, estimator.epsilon, estimator.delta, reason)


def printed_bounds(bounds: Bounds | Location) -> Bounds:
    """The bounds of ``calibration="paper"``, which buys none."""
    if not isinstance(bounds, Bounds):
        raise InputError("bounds must be given with calibration='paper'; or use calibration='tight'.")
    return bounds


def printed_slices(door: PaperCurator, response: Response, bins: int, slices: int, first: bool = False) -> Ranks:
    """Section 3.2 with Laplace noise of scale 2 / 0.1, as in the simulations; sample quantiles in the first version."""
    bins, scale = (EXACT_BINS, EXACT) if first else (bins, 2.0 / HISTOGRAM_EPSILON)
    classes = response.categories
    if classes is not None and classes - 1 <= slices:
        return Ranks(Bins(np.empty(0), categories=classes), np.full(classes, 1.0 / classes), math.nan)
    query = ResponseHistogram(Bins(arctan_edges(bins) if classes is None else np.empty(0), categories=classes))
    counts = door.noised([query], lambda total: total.astype(float), scale, "slices", laplace=True)
    if classes is not None:
        return class_slices(counts.value, slices)
    return Ranks(Bins(cut(counts.value, slices)), np.full(slices, 1.0 / slices), float(counts.value.sum()))


def printed_pencil(door: PaperCurator, grid: Grid, sliced: Ranks, n: int, halves: int = 1) -> Pencil:
    """Algorithm B.4 with the noise of Lemma B.1; `halves` = 2 is its use inside Algorithm B.5."""
    p, h = grid.n_features, sliced.bins.count
    epsilon, delta = door.epsilon / halves, door.delta / halves
    factor = math.sqrt(8.0 * math.log(2.5 / delta)) / epsilon
    queries = [moments_of(grid, sliced), ResponseHistogram(sliced.bins)]

    def noised(which: int, constant: float, why: str) -> FloatArray:
        upper = door.noised(
            queries, lambda m, c: exact_pair(m, c, n)[which][np.triu_indices(p)], constant * p / n * factor, why
        )
        return upper_to_full(upper.value, p)

    full, between = noised(1, 2.0, "covariance"), noised(0, 7.0, "kernel")
    # An indefinite covariance has no pencil; the paper does not say what then. Eigenvalues are raised to a hundredth.
    floor = 0.01 * max(float(np.abs(np.linalg.eigvalsh(full)).max()), 1e-12)
    return paired(between, full, np.zeros(p), np.zeros((p, h)), floor)


def exact_pair(moments: FloatArray, counts: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Kernel and covariance of exact slice sums, second moment and slice sizes, uncentred as printed."""
    sums, second = split_moments(moments, len(counts))
    kernel = (sums / np.maximum(counts, 1.0)[:, None]).T @ sums / n
    return np.asarray(kernel), second / n


def printed_peel(door: PaperCurator, grid: Grid, sliced: Ranks, n: int, picks: int) -> IntArray:
    """Algorithm B.5, lines 2 to 6."""
    query = SliceSums(grid, sliced.bins)
    scale = 7.0 / n * math.sqrt(3.0 * picks * math.log(2.0 / door.delta)) / (door.epsilon / 2.0)

    def diagonal(total: FloatArray) -> FloatArray:
        return np.asarray((total[:, :-1] ** 2 / np.maximum(total[:, -1:], 1.0)).sum(axis=0) / n)

    return door.peeled([query], diagonal, picks, scale)


@dataclass(frozen=True, slots=True)
class StepNoise:
    """Of a gradient step: number of steps, scale of the noise on the rows, and on what peeling compares."""

    steps: int
    rows: float
    peeling: float
    laplace: bool


def step_noise(
    n: int, p: int, k: int, eta: float, epsilon: float, delta: float, picks: int | None, first: bool
) -> StepNoise:
    """Lemma 3 (`picks` None) or 4, over ``floor(log n)`` parts; Lemma 4 or 5 of the first version, ``ceil(log n)``.

    The first version's Lemma 4 lacks sqrt(k). Its Lemma 5 lacks the number of steps, which its peeling is not told of
    either: every step has noise for the whole epsilon and delta.
    """
    steps = math.ceil(math.log(n)) if first else int(math.log(n))
    sigma = 2.0 * eta * (7.0 * R + PENALTY * (2.0 * R + 4.0 * k * R**3)) / n
    if picks is None:
        columns = 1 if first else k
        scale = sigma * steps * math.sqrt(p * columns) * math.sqrt(2.0 * math.log(1.25 * steps / delta))
        return StepNoise(steps, scale * steps / epsilon, math.nan, False)
    if first:
        scale = sigma * 2.0 * math.sqrt(3.0 * k * picks * math.log(1.0 / delta)) / epsilon
        return StepNoise(steps, scale, scale, True)
    each, tail = sigma * steps * 2.0 * steps / epsilon, delta / steps
    peeling = each * math.sqrt(3.0 * k * picks * math.log(2.0 / tail))
    return StepNoise(steps, each * math.sqrt(2.0 * k * picks * math.log(2.5 / tail)), peeling, False)


def printed_descent(
    door: PaperCurator, grid: Grid, sliced: Ranks, state: Iterate, n: int, picks: int | None, first: bool = False
) -> Iterate:
    """Algorithm 2 (`picks` None) or 3 with the noise of its lemma; every step sees its own part of the records."""
    eta, k = pace_of(state), state.directions.shape[1]
    noise = step_noise(n, grid.n_features, k, eta, door.epsilon, door.delta, picks, first)
    for t in range(noise.steps):
        queries, moved = _gradient(grid, sliced, state, eta, (t, noise.steps))
        if picks is None:
            state = _next(state, state.support, door.noised(queries, moved, noise.rows, "gradient step").value)
            continue
        support = np.sort(door.peeled(queries, lambda *t, m=moved: np.linalg.norm(m(*t), axis=1), picks, noise.peeling))
        rows = door.noised(
            queries, lambda *t, m=moved, s=support: m(*t)[s], noise.rows, "gradient step", laplace=noise.laplace
        )
        state = _next(state, support, rows.value)
    return state


def _gradient(
    grid: Grid, sliced: Ranks, state: Iterate, eta: float, part: tuple[int, int]
) -> tuple[list[BoundedSum], Callable[..., FloatArray]]:
    """Queries about one part of the records, and the function of their exact sums that is B after the step.

    As printed: every entry of ``v = B^T x`` is cut to R wherever it stands, in the kernel's term ``sum_h (mean of x in
    slice h) (sum of v in slice h)^T`` and in both factors of the penalty's, ``sum x v^T`` and ``sum v v^T``.
    """
    k = state.directions.shape[1]
    whole = np.zeros((grid.n_features, k))
    whole[state.support] = state.directions
    columns = tuple(whole[:, [j]] for j in range(k))
    products = [
        ProductRows(grid, sliced.bins, np.zeros((sliced.bins.count, 1)), state.support, state.directions[:, [j]], R)
        for j in range(k)
    ]
    asked = [
        SliceSums(grid, sliced.bins),
        CandidateSums(grid, sliced.bins, columns, R),
        IndexProducts(grid, whole, R),
        *products,
    ]

    def moved(slices: FloatArray, indices: FloatArray, second: FloatArray, *rows: FloatArray) -> FloatArray:
        sums, sizes = slices[:, :-1], np.maximum(slices[:, -1:], 1.0)
        n = float(sizes.sum())
        between = (sums / sizes).T @ (R * indices[:, :-1]) / n
        excess = upper_to_full(second / n, k) - np.eye(k)
        return np.asarray(whole - 2.0 * eta * (-between + PENALTY * np.hstack(rows) / n @ excess))

    return [Part(query, *part) for query in asked], moved


def _next(state: Iterate, support: IntArray, directions: FloatArray) -> Iterate:
    length = np.maximum(np.linalg.norm(directions, axis=0), 1e-300)
    return Iterate(support, directions * np.minimum(1.0, 12.0 / length), state.mean, state.means, state.covariance)
