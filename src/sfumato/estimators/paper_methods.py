"""The papers' methods as fits: DP-Ini, DP-SIR, DP-SIni, DP-SSIR and Rayleigh flow, with tight noise."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.bounds import Bounds, Grid
from sfumato.errors import InputError
from sfumato.estimators.pipeline import Outcome
from sfumato.iterate.columns import ColumnView
from sfumato.iterate.descent import Fit
from sfumato.iterate.location import settled
from sfumato.iterate.peeling import (
    Iterate,
    descend_rows,
    peel_kernel,
    plan_parts,
    plan_peeling,
    plan_steps,
    start,
)
from sfumato.iterate.pencil import (
    Pencil,
    Sliced,
    bic_dimension,
    histogram_slices,
    matrices,
    moments_of,
    pencil,
    plan_histogram,
    plan_moments,
    solve_pencil,
)
from sfumato.iterate.ranks import Ranks
from sfumato.iterate.rayleigh import plan_flow, rayleigh_flow
from sfumato.iterate.validation import choose_size, leading, plan_validation
from sfumato.privacy.curator import Curator
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.solve.dimension import Choice
from sfumato.solve.spectral import Spectrum
from sfumato.typing import FloatArray, IntArray

FLOWS = ("rayleigh-flow", "truncated-rayleigh-flow")
LOW = ("dp-ini", "dp-sir", "dp-sir-full", "rayleigh-flow")
HIGH = ("dp-sini", "dp-ssir", "truncated-rayleigh-flow")
PICKS = 6
"""Features kept by peeling, s' = 6 as in the paper's simulations."""
MOST = 8
"""Features peeled where validation says how many of them to keep, four times the true two."""


@dataclass(frozen=True, slots=True)
class PaperTask:
    """What is public about such a fit."""

    method: str
    n_features: int
    n_records: int | None
    response: Response
    n_directions: int | None
    bounds: Bounds
    picks: int = PICKS
    validate: bool = False

    @property
    def is_sparse(self) -> bool:
        """Whether features are selected first."""
        return self.method in HIGH

    @property
    def slicing(self) -> tuple[int, int]:
        """Bins of the histogram and slices: as in the paper's simulations."""
        return (50, 10) if self.is_sparse else (100, 20)

    @property
    def grid(self) -> Grid:
        """Of all features."""
        return self.bounds.grid(self.n_features)

    @property
    def peeled(self) -> int:
        """Features that peeling picks: the truncated flow drops half of them again, the others keep all."""
        return min(self.picks * (2 if self.method in FLOWS else 1), self.n_features)

    def outlook(self) -> None:
        """There is no theory for these; they are here to be compared."""

    def plan(self) -> Plan:
        """Every release of the tight variant, with its share."""
        lines: tuple[Line, ...] = plan_histogram(0.05)
        if self.is_sparse:
            lines += plan_peeling("peel", self.peeled, 0.25)
        if self.method in FLOWS:
            return Plan(lines + plan_flow(0.7, "2.12 r / 1.41 r"))
        lines += plan_moments(0.9 if self.method in ("dp-ini", "dp-sini") else 0.5)
        if self.validate:
            lines += plan_validation(0.15)
        match self.method:
            case "dp-sir":
                lines += plan_parts(0.4)
            case "dp-sir-full":
                lines += plan_steps(0.4)
            case "dp-ssir":
                lines += plan_steps(0.4, self.peeled)
        return Plan(lines)


def paper_task(
    method: Any,
    n_features: int,
    n_records: int | None,
    response: Response,
    n_directions: int | None,
    bounds: Any,
    max_features: Any = "auto",
) -> PaperTask:
    """Public facts of a paper's fit; its bounds must be given, since the paper knows no other way."""
    if bounds is None:
        raise InputError(f"bounds must be given for method={method!r}; for instance Bounds(-1.5, 1.5).")
    if method in FLOWS and n_directions not in (None, 1):
        raise InputError(f"n_directions must be 1 with method={method!r}, got {n_directions}; use 'auto' for more.")
    validate = isinstance(max_features, str) and max_features == "validate"
    picks = max_features if isinstance(max_features, int) else MOST if validate else PICKS
    return PaperTask(
        method, n_features, n_records, response, n_directions, bounds, max(picks, n_directions or 1), validate
    )


def tight(task: PaperTask, curator: Curator) -> tuple[Outcome, IntArray]:
    """The algorithm with bounded sums and one total budget."""
    grid = task.grid
    sliced = histogram_slices(curator, task.response, *task.slicing)
    support = peel_kernel(curator, grid, sliced) if task.is_sparse else np.arange(task.n_features)
    view = ColumnView(curator, support) if task.is_sparse else curator
    n = float(task.n_records) if task.n_records is not None else max(sliced.total, 10.0 * task.n_features)
    if task.method in FLOWS:
        return _flow(task, view, sliced, support, n)
    found = pencil(view, some_columns(grid, support), sliced, n)
    k = min(task.n_directions or bic_dimension(found.values, n, len(sliced.shares)), len(support))
    if task.validate:
        size = choose_size(view, some_columns(grid, support), sliced, found, k)
        support, found = support[:size], leading(found, size)
    state = start(found, support, k)
    if task.method in ("dp-sir", "dp-sir-full", "dp-ssir"):
        state = descend_rows(curator, grid, sliced, state, n, peel=task.is_sparse, parts=task.method == "dp-sir")
    return outcome_of(task, state, found, sliced)


def _flow(task: PaperTask, curator: Curator, sliced: Sliced, support: IntArray, n: float) -> tuple[Outcome, IntArray]:
    """Rayleigh flow of kernel and covariance, truncated to `picks` features in high dimension."""
    grid, p = some_columns(task.grid, support), len(support)
    query = moments_of(grid, sliced)
    sparsity = task.picks if task.is_sparse else None
    flow = rayleigh_flow(curator, query, lambda r: matrices(r, p, sliced.shares, n)[:2], n, sparsity=sparsity)
    return along(task, flow.vector, solve_pencil(flow.last, p, sliced.shares, n), support, sliced)


def along(
    task: PaperTask, vector: FloatArray, found: Pencil, support: IntArray, sliced: Sliced
) -> tuple[Outcome, IntArray]:
    """One direction on the features where it is not zero."""
    on = np.flatnonzero(vector) if np.any(vector) else np.arange(1)
    state = Iterate(support[on], vector[on, None], found.means[on], found.covariance[np.ix_(on, on)])
    return outcome_of(task, state, found, sliced)


def some_columns(grid: Grid, columns: IntArray) -> Grid:
    """The grid of some features."""
    return Grid(grid.centre[columns], grid.half_width[columns])


def outcome_of(task: PaperTask, state: Iterate, found: Pencil, sliced: Sliced) -> tuple[Outcome, IntArray]:
    """In the units of x, orthonormal; standard errors are not part of these methods."""
    grid, k = task.grid, state.directions.shape[1]
    raw = np.zeros((task.n_features, k))
    raw[state.support] = state.directions / grid.half_width[state.support, None]
    directions = _orthonormal(raw)
    values = np.clip(found.values, 0.0, 1.0)
    choice = Choice(k, np.sqrt(values), math.nan, task.n_directions is not None)
    fit = Fit(state.directions, math.nan, choice, values[:k])
    spectrum = Spectrum(directions, np.full(directions.shape, np.nan), np.sqrt(values))
    ranks = Ranks(sliced.bins, sliced.shares, math.nan)
    outcome = Outcome(spectrum, fit, ranks, settled(task.bounds, task.n_features), grid.centre, grid.half_width, None)
    return outcome, np.sort(state.support)


def _orthonormal(columns: FloatArray) -> FloatArray:
    """Orthonormal rows with the span of the columns; noise may have made columns dependent, never the rows."""
    q, r = np.linalg.qr(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300))
    return np.asarray((q * np.where(r.diagonal() < 0, -1.0, 1.0)).T)
