"""The methods of Xia, Zhang and Cai as fits: DP-Ini, DP-SIR, DP-SIni and DP-SSIR, with tight or printed noise."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.bounds import Bounds, Grid
from sfumato.errors import InputError, PrivacyWarning
from sfumato.estimators.pipeline import Outcome
from sfumato.estimators.session import Session
from sfumato.iterate.columns import ColumnView
from sfumato.iterate.descent import Fit
from sfumato.iterate.peeling import Iterate, descend_rows, peel_kernel, plan_peeling, plan_steps, start
from sfumato.iterate.pencil import (
    Pencil,
    Sliced,
    bic_dimension,
    histogram_slices,
    pencil,
    plan_histogram,
    plan_moments,
)
from sfumato.iterate.printed import (
    REASON,
    Printed,
    printed_descent,
    printed_peel,
    printed_pencil,
    printed_slices,
)
from sfumato.iterate.ranks import Ranks
from sfumato.iterate.validation import choose_size, leading, plan_validation
from sfumato.privacy.curator import Curator
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.settings.central import Central
from sfumato.solve.dimension import Choice
from sfumato.solve.spectral import Spectrum
from sfumato.statistics.columns import OnColumns
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

LOW, HIGH = ("dp-ini", "dp-sir"), ("dp-sini", "dp-ssir")
CALIBRATIONS = ("tight", "paper")
PICKS = 6
"""Features kept by peeling, s' = 6 as in the paper's simulations."""
MOST = 8
"""Features peeled where validation says how many of them to keep, four times the true two."""


@dataclass(frozen=True, slots=True)
class PaperTask:
    """What is public about such a fit."""

    method: Literal["dp-ini", "dp-sir", "dp-sini", "dp-ssir"]
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

    def plan(self) -> Plan:
        """Every release of the tight variant, with its share."""
        picks = min(self.picks, self.n_features)
        iterates = self.method in ("dp-sir", "dp-ssir")
        lines: tuple[Line, ...] = plan_histogram(0.05)
        if self.is_sparse:
            lines += plan_peeling("peel", picks, 0.25)
        lines += plan_moments(0.5 if iterates else 0.9)
        if self.validate:
            lines += plan_validation(0.15)
        if iterates:
            lines += plan_steps(0.4, picks if self.is_sparse else None)
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
    validate = isinstance(max_features, str) and max_features == "validate"
    picks = max_features if isinstance(max_features, int) else MOST if validate else PICKS
    return PaperTask(
        method, n_features, n_records, response, n_directions, bounds, max(picks, n_directions or 1), validate
    )


def fit_paper(task: PaperTask, session: Session, estimator: Any) -> tuple[Outcome, IntArray]:
    """Directions and the features they rest on."""
    if estimator.calibration == "tight":
        return tight(task, session.curator(task.plan()))
    if task.validate:
        raise InputError("max_features='validate' has no printed noise that is right; use calibration='tight'.")
    if estimator.ledger is not None or estimator.rho is not None or task.n_records is None:
        raise InputError(
            "calibration='paper' gives no guarantee and takes neither a shared ledger, rho nor relation='add-remove'; "
            "use calibration='tight'."
        )
    warnings.warn(REASON, PrivacyWarning, stacklevel=4)
    door = Printed(Central(session.source), session.ledger, session.noise, estimator.epsilon, estimator.delta)
    return printed(task, door, task.n_records)


def tight(task: PaperTask, curator: Curator) -> tuple[Outcome, IntArray]:
    """The algorithm with bounded sums, full batches and one total budget."""
    grid = task.grid
    sliced = histogram_slices(curator, task.response, *task.slicing)
    support = peel_kernel(curator, grid, sliced) if task.is_sparse else np.arange(task.n_features)
    view = ColumnView(curator, support) if task.is_sparse else curator
    n = float(task.n_records) if task.n_records is not None else max(sliced.total, 10.0 * task.n_features)
    found = pencil(view, _columns(grid, support), sliced, n)
    k = min(task.n_directions or bic_dimension(found.values, n, len(sliced.shares)), len(support))
    if task.validate:
        size = choose_size(view, _columns(grid, support), sliced, found, k)
        support, found = support[:size], leading(found, size)
    state = start(found, support, k)
    if task.method in ("dp-sir", "dp-ssir"):
        state = descend_rows(curator, grid, sliced, state, n, peel=task.is_sparse)
    return _outcome(task, state, found, sliced)


def printed(task: PaperTask, door: Printed, n: int) -> tuple[Outcome, IntArray]:
    """The algorithm with the noise of its lemmas."""
    grid = task.grid
    sliced = printed_slices(door, task.response, *task.slicing)
    picks = min(task.picks, task.n_features)
    support = printed_peel(door, grid, sliced, n, picks) if task.is_sparse else np.arange(task.n_features)
    inner = door
    if task.is_sparse:
        inner = Printed(_Columns(door, support), door.ledger, door.noise, door.epsilon, door.delta)
    found = printed_pencil(inner, _columns(grid, support), sliced, n, halves=2 if task.is_sparse else 1)
    k = task.n_directions or bic_dimension(found.values, float(n), len(sliced.shares))
    state = start(found, support, min(k, len(support)))
    if task.method in ("dp-sir", "dp-ssir"):
        state = printed_descent(door, grid, sliced, state, n, picks if task.is_sparse else None)
    return _outcome(task, state, found, sliced)


@dataclass(frozen=True, slots=True)
class _Columns:
    """A setting whose records have some columns only."""

    door: Printed
    columns: IntArray

    def sum(self, query: BoundedSum) -> IntArray:
        return self.door.setting.sum(OnColumns(query, self.columns))


def _columns(grid: Grid, columns: IntArray) -> Grid:
    return Grid(grid.centre[columns], grid.half_width[columns])


def _outcome(task: PaperTask, state: Iterate, found: Pencil, sliced: Sliced) -> tuple[Outcome, IntArray]:
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
    outcome = Outcome(spectrum, fit, ranks, task.bounds, grid.centre, grid.half_width, None)
    return outcome, np.sort(state.support)


def _orthonormal(columns: FloatArray) -> FloatArray:
    """Orthonormal rows with the span of the columns; noise may have made columns dependent, never the rows."""
    q, r = np.linalg.qr(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300))
    return np.asarray((q * np.where(r.diagonal() < 0, -1.0, 1.0)).T)
