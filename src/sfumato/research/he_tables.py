"""Tables of He, Zhang and Chen (FSIR): K sites that do not pool their records, (epsilon, delta) at each site.

Tables 1 and 2 have 10 features; 3 and 4 have 500 to 2000, of which 5 or 10 matter.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal, cast

import numpy as np

from sfumato import SIR, Bounds, Budget, principal_angles, subspace_distance
from sfumato.errors import PrivacyWarning
from sfumato.federated.task import SparseSites, run_sparse_sites, schedule_of
from sfumato.federated.voting import PICKS
from sfumato.methods.sir import Task
from sfumato.methods.sparse_sir import spread_columns
from sfumato.privacy.asking import drive
from sfumato.records import Response
from sfumato.research.fsir import ccmd, fsir_paper
from sfumato.research.many_sites import MergedSites, WideSites, far_signs
from sfumato.research.models import active_of, he
from sfumato.research.study import NOTES, Row, Study, Values, lines_of
from sfumato.sources import ArraySource
from sfumato.typing import FloatArray, IntArray

Model = Literal["I", "II", "III", "IV", "V"]
BOUNDS = Bounds(-6.0, 6.0)
P, SLICES = 10, 6
TRUNCATION = {500: 0.81, 1000: 0.87, 2500: 1.57, 5000: 2.1}
"""The paper does not print its truncation levels. These make the noise of its Proposition 2 the one that the printed
IID columns of models II and IV show (benchmarks/results/fsir-model-three.md)."""
UNIT = "III, unit noise"
"""Model III with the printed unit noise, beside the noise that the paper's own figures fit."""
N, WIDE_SLICES = 1000, 8
REACH = 20
"""In models II and IV features this far apart have correlation 2**-20; beyond, they are drawn independent."""
WIDE_TRUNCATION = 0.87
"""As in Tables 1 and 2 at n = 1000."""
MANY_SITES = 50
"""From so many sites on the filter is shown near features alone: another one, which y has nothing to do with, it would
keep once in 1e10 tables at most (tested), and thousands of them at 100,000 records take long to draw."""


def low_dimension(model: str, n: int, clients: int, epsilon: float, seed: int) -> Values:
    """One replication of a cell of Tables 1 and 2."""
    found, truth = low_directions(model, n, clients, epsilon, SLICES, seed)
    return {name: subspace_distance(directions, truth) for name, directions in found.items()}


def angles(model: str, n: int, clients: int, epsilon: float, most_slices: int, seed: int) -> Values:
    """One replication of a point of Figures 2 to 4: the largest angle to the true directions, in degrees."""
    found, truth = low_directions(model, n, clients, epsilon, most_slices, seed)
    return {name: float(np.degrees(principal_angles(one, truth).max())) for name, one in found.items()}


def low_directions(
    model: str, n: int, clients: int, epsilon: float, most_slices: int, seed: int
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Directions of every method with p = 10, and the true ones; a y of two values has two slices."""
    x, y, truth = drawn(model, n * clients, P, seed)
    k, delta = len(truth), delta_of(n, most_slices)
    budget = Budget.approximate(epsilon, delta)
    response, codes = response_of(y)
    task = Task(P, n * clients, response, k, BOUNDS, schedule=schedule_of(clients, n * clients, budget))
    sites = MergedSites(ArraySource(x, codes, response), clients, budget)
    slices = 2 if model == "I" else most_slices
    found = {"sfumato": drive(task.run(), sites.open(task.plan())).directions}
    site = Site(slices, epsilon, delta, truncation_of(n), max(n // most_slices, 1))
    found |= printed_methods(x, slices_of(y, slices), clients, k, site, seed)
    return found | {"SIR, no privacy": SIR(n_directions=k, n_slices=slices).fit(x, y).directions_}, truth


def truncation_of(n: int) -> float:
    """The truncation level that the printed IID columns fit, between the n that have one interpolated in log n."""
    return float(np.interp(np.log(n), np.log(list(TRUNCATION)), list(TRUNCATION.values())))


@dataclass(frozen=True, slots=True)
class Site:
    """What the printed algorithms are told at each site.

    `smallest`, the size n_0 of the smallest slice, scales their noise. In model I, whose y has two values, n / H with
    the H of the other models fits the printed columns far better than the n / 2 of its two slices.
    """

    slices: int
    epsilon: float
    delta: float
    truncation: float
    smallest: int


def printed_methods(
    x: FloatArray, slice_of: IntArray, clients: int, k: int, site: Site, seed: int
) -> dict[str, FloatArray]:
    """FSIR-IID and FSIR-MVG as printed."""
    sites = list(zip(np.split(x, clients), np.split(slice_of, clients), strict=True))
    told, rng = (sites, k, site.slices, site.epsilon, site.delta), np.random.default_rng(seed)
    mechanisms: tuple[Literal["iid", "mvg"], ...] = ("iid", "mvg")
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        return {
            f"{name.upper()} as printed": fsir_paper(
                *told, name, truncation=site.truncation, smallest=site.smallest, rng=rng
            )[0]
            for name in mechanisms
        }


@lru_cache(maxsize=1)
def drawn(
    model: str, n: int, p: int, seed: int, *, sparse: bool | int = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features, response and true directions of a model as the tables read it; the last draw is remembered."""
    name, noise = ("III", 1.0) if model == UNIT else (model, 0.5 if model == "III" else 1.0)
    sample = he(cast(Model, name), n=n, p=p, sparse=sparse, noise=noise, random_state=seed)
    return sample.x, np.asarray(sample.y), sample.directions


def response_of(y: FloatArray) -> tuple[Response, FloatArray]:
    """Two public classes where the response is one of two integers, a number otherwise."""
    if y.dtype.kind == "i":
        return Response(categories=3), y  # the third class is for answers that were not declared
    return Response(), y


def delta_of(n: int, slices: int) -> float:
    """The paper's delta."""
    return float(10.0 / np.ceil(n / slices) ** 1.1)


def slices_of(y: FloatArray, slices: int) -> IntArray:
    """Slices by pooled sample quantiles, as the paper does (not private)."""
    if y.dtype.kind == "i":
        return y.astype(np.int64)
    return np.asarray(np.searchsorted(np.quantile(y, np.arange(1, slices) / slices), y, side="right"))


def printed(table: int) -> dict[tuple[str, int, int, int], dict[str, float]]:
    """Printed means by (model, n, p, clients) and method.

    >>> printed(1)["I", 500, 10, 1]
    {'IID': 1.244, 'MVG': 1.115}
    """
    rows: dict[tuple[str, int, int, int], dict[str, float]] = {}
    for line in lines_of("he_tables.csv"):
        if line["table"] == str(table):
            key = (line["model"], int(line["n_per_client"]), int(line["p"]), int(line["clients"]))
            rows.setdefault(key, {})[line["method"].removeprefix("FSIR-")] = float(line["mean_distance"])
    return rows


def _study(table: int, epsilon: float) -> Study:
    rows = []
    for (model, n, _, clients), values in printed(table).items():
        rows.append(Row(f"{model} n={n} K={clients}", (model, n, clients, epsilon), values))
        if model == "III" and clients <= 10:
            rows.append(Row(f"{UNIT} n={n} K={clients}", (UNIT, n, clients, epsilon), values, beside=True))
    title = f"FSIR, Table {table}: mean distance, epsilon = {epsilon:g} at each site"
    return Study(f"fsir-table-{table}", title, NOTES["fsir-tables-low"], tuple(rows), low_dimension)


def high_dimension(model: str, p: int, clients: int, epsilon: float, seed: int) -> Values:
    """One replication of a cell of Tables 3 and 4."""
    task, sites, truth = wide_fit(model, p, clients, epsilon, seed)
    door = sites.open(task.plan())
    outcome, _ = drive(run_sparse_sites(task, door), door)
    measured = {"sfumato": subspace_distance(outcome.directions, truth)}
    x, y, k, active = sites.near, sites.y, len(truth), active_of(p)
    slices = 2 if model == "I" else WIDE_SLICES
    shown, slice_of = sites.columns(np.arange(p if clients < MANY_SITES else x.shape[1])), slices_of(y, slices)
    kept = filtered(shown, slice_of, clients, slices, p)
    site = Site(slices, epsilon, delta_of(N, WIDE_SLICES), WIDE_TRUNCATION, N // WIDE_SLICES)
    measured |= _on_filtered(shown[:, kept], slice_of, kept, clients, site, truth, seed)
    known = SIR(n_directions=k, n_slices=slices).fit(x[:, :active], y).directions_
    return measured | {"SIR, no privacy": subspace_distance(known, truth[:, :active])}


def wide_fit(model: str, p: int, clients: int, epsilon: float, seed: int) -> tuple[SparseSites, WideSites, FloatArray]:
    """Our fit of one replication of Tables 3 and 4, the sites that it asks, and the true directions."""
    active = active_of(p)
    near = active + (REACH if model in ("II", "IV") else 0)
    x, y, truth = drawn(model, N * clients, near, seed, sparse=active)
    budget, (response, codes) = Budget.approximate(epsilon, delta_of(N, WIDE_SLICES)), response_of(y)
    sites = WideSites(x, codes, response, far_signs(N * clients, p - near, seed), clients, budget, seed)
    schedule = schedule_of(clients, N * clients, budget)
    task = SparseSites(p, N * clients, response, len(truth), BOUNDS, PICKS, clients, schedule)
    return task, sites, np.pad(truth, ((0, 0), (0, p - near)))


def _on_filtered(
    x: FloatArray, slice_of: IntArray, kept: IntArray, clients: int, site: Site, truth: FloatArray, seed: int
) -> Values:
    """Distances of the printed methods on x, which holds the features that the filter keeps.

    With fewer features than directions there are no more directions than features. One that is missing counts as a
    wrong one, which adds 1 to the squared distance: whoever finds nothing must not seem nearer than who errs.
    """
    k = min(len(truth), len(kept))
    if k == 0:
        return dict.fromkeys(("IID as printed", "MVG as printed"), float(np.sqrt(2 * len(truth))))
    found = printed_methods(x, slice_of, clients, k, site, seed)
    nothing = np.zeros((k, truth.shape[1]))
    distances = {name: subspace_distance(spread_columns(nothing, kept, b), truth) for name, b in found.items()}
    return {name: float(np.sqrt(distance**2 + len(truth) - k)) for name, distance in distances.items()}


def threshold_of(p: int, n: float, slices: int) -> float:
    """Of the filter, whose own is not printed: what the largest of p means over slices of n records has by chance."""
    return float(np.sqrt(2.0 * np.log(p) / (n * slices)))


def filtered(x: FloatArray, slice_of: IntArray, clients: int, slices: int, p: int) -> IntArray:
    """Which features of x, the first of p, the plain CCMD filter keeps, perhaps none; each is judged by itself."""
    sites = list(zip(np.split(x, clients), np.split(slice_of, clients), strict=True))
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        return ccmd(sites, slices, threshold_of(p, len(x) / clients, slices))


def _wide_study(table: int, epsilon: float) -> Study:
    rows = tuple(
        Row(f"{model} p={p} K={clients}", (model, p, clients, epsilon), values)
        for (model, _, p, clients), values in printed(table).items()
    )
    title = f"FSIR, Table {table}: mean distance in high dimension, epsilon = {epsilon:g} at each site"
    return Study(f"fsir-table-{table}", title, NOTES["fsir-tables-high"], rows, high_dimension)


def _figure(number: int, title: str, rows: Iterable[tuple[str, int, int, float]], slices: int = SLICES) -> Study:
    listed = tuple(
        Row(f"{model} n={n} K={clients} epsilon={epsilon:g}", (model, n, clients, epsilon, slices), {})
        for model, n, clients, epsilon in rows
    )
    return Study(f"fsir-figure-{number}", f"FSIR, Figure {number}: {title}", NOTES["fsir-figures"], listed, angles)


FIGURES = (
    _figure(
        2, "what privacy costs one site", product(("I", "III", "V"), (100, 500, 2500, 10_000, 50_000), (1,), (1.0,))
    ),
    _figure(3, "how sites help", product(("I",), (200, 500, 1000, 1500), (2, 10, 50, 200), (0.5, 1.0))),
    _figure(4, "IID against MVG", product(("I", "III"), (500, 1000, 2500, 5000), (10, 50, 100), (0.5, 1.0)), 8),
)
STUDIES = (_study(1, 0.5), _study(2, 1.0), _wide_study(3, 0.5), _wide_study(4, 1.0), *FIGURES)
