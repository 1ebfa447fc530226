"""Tables 3 and 4 of He, Zhang and Chen: 500 to 2000 features, of which 5 or 10 matter."""

import warnings

import numpy as np

from sfumato import SIR, Bounds, Budget, subspace_distance
from sfumato.errors import PrivacyWarning
from sfumato.federated.ccmd import ccmd
from sfumato.federated.sparse import SparseSites, run_sparse_sites
from sfumato.federated.task import schedule_of
from sfumato.federated.voting import PICKS
from sfumato.papers.he import delta_of, drawn, printed, printed_methods, response_of, slices_of
from sfumato.papers.study import Row, Study, Values
from sfumato.papers.wide_sites import WideSites, far_signs
from sfumato.typing import FloatArray, IntArray

N, SLICES = 1000, 8
BOUNDS = Bounds(-6.0, 6.0)
REACH = 20
"""In models II and IV features this far apart have correlation 2**-20; beyond, they are drawn independent."""
TRUNCATION, MOST, COMPARED = 0.87, 10, 3
"""Truncation as in Tables 1 and 2 at n = 1000; the printed methods, which need the whole table, are run for at most so
many sites, so many times."""
_NOTE = (
    "n = 1000 at each site, H = 8, delta = 10 / ceil(n / H)^1.1; 5 features count if p = 500, 10 beyond. 'sfumato': "
    "sites name features privately (Gumbel noise on their sign scores), in turns, noisy scores of the named tell which "
    "of them to keep, and the descent runs on those; each site is charged for all of it, "
    "replace-one, k given, bounds (-6, 6). IID and MVG follow the plain CCMD filter, which has no guarantee, nor have "
    "they; they are run for up to 10 sites, three times. 'SIR, no privacy' knows which features count. Model III is "
    "read as in Tables 1 and 2. In models II and IV features 20 or more places from those that count are drawn "
    "independent."
)


def high_dimension(model: str, p: int, clients: int, epsilon: float, seed: int) -> Values:
    """One replication of a cell of Tables 3 and 4."""
    active = 5 if p <= 500 else 10
    near = active + (REACH if model in ("II", "IV") else 0)
    x, y, truth = drawn(model, N * clients, near, seed, sparse=active)
    k, delta = len(truth), delta_of(N, SLICES)
    budget, (response, codes) = Budget.approximate(epsilon, delta), response_of(y)
    far = far_signs(N * clients, p - near, seed)
    schedule = schedule_of(clients, N * clients, budget)
    task = SparseSites(p, N * clients, response, k, BOUNDS, PICKS, clients, schedule)
    sites = WideSites(x, codes, response, far, clients, budget, seed)
    outcome, _ = run_sparse_sites(task, sites.open(task.plan()))
    measured = {"sfumato": subspace_distance(outcome.spectrum.directions, np.pad(truth, ((0, 0), (0, p - near))))}
    slices = 2 if model == "I" else SLICES
    if clients <= MOST and seed < COMPARED:
        whole = sites.columns(np.arange(p))
        kept = _filtered(whole, slices_of(y, slices), clients, slices, k)
        wide = np.pad(truth, ((0, 0), (0, p - near)))
        found = printed_methods(
            whole[:, kept], slices_of(y, slices), clients, k, slices, epsilon, delta, TRUNCATION, seed
        )
        measured |= {name: subspace_distance(_put(b, kept, p), wide) for name, b in found.items()}
    known = SIR(n_directions=k, n_slices=slices).fit(x[:, :active], y).directions_
    return measured | {"SIR, no privacy": subspace_distance(known, truth[:, :active])}


def _filtered(x: FloatArray, slice_of: IntArray, clients: int, slices: int, k: int) -> IntArray:
    """Features that the plain CCMD filter keeps, at least k; its threshold, not printed, at chance level."""
    sites = list(zip(np.split(x, clients), np.split(slice_of, clients), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        kept = ccmd(sites, slices, float(np.sqrt(2.0 * np.log(x.shape[1]) / (N * slices))))
    return kept if len(kept) >= k else np.arange(k)


def _put(directions: FloatArray, kept: IntArray, p: int) -> FloatArray:
    wide = np.zeros((len(directions), p))
    wide[:, kept] = directions
    return wide


def _study(table: int, epsilon: float) -> Study:
    rows = tuple(
        Row(f"{model} p={p} K={clients}", (model, p, clients, epsilon), values)
        for (model, _, p, clients), values in printed(table).items()
    )
    title = f"FSIR, Table {table}: mean distance in high dimension, epsilon = {epsilon:g} at each site"
    return Study(f"fsir-table-{table}", title, _NOTE, rows, high_dimension)


HIGH = (_study(3, 0.5), _study(4, 1.0))
