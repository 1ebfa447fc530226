"""The papers' sliced inverse regressions as estimators: DP-Ini, DP-SIR, DP-SIni, DP-SSIR and Rayleigh flow.

Kept for comparison; `PrivateSIR` and `PrivateSparseSIR` are what to use. Each comes in two calibrations: "tight",
correct noise under one total budget, and "paper", the printed noise, which gives no guarantee.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from sfumato.bounds import Bounds, Grid
from sfumato.errors import InputError
from sfumato.methods.about import CLASSES, EXPLAINING, EXPLAINING_OPTIONS, PARAMETERS, SCALE, SUPPORT, About, number_or
from sfumato.methods.base import ExplainingReducer, ExplainingTask, Session, given_of, known_of, open_session
from sfumato.methods.inputs import directions_of, one_of
from sfumato.privacy.asking import Asking, T, drive, on_columns
from sfumato.privacy.curator import PaperCurator
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.research.models import whole_number
from sfumato.research.pencil import (
    Iterate,
    Pencil,
    bic_dimension,
    choose_size,
    descend_rows,
    histogram_slices,
    matrices,
    moments_of,
    peel_kernel,
    pencil,
    plan_histogram,
    plan_moments,
    plan_parts,
    plan_peeling,
    plan_steps,
    plan_validation,
    solve_pencil,
    start,
)
from sfumato.research.printed_noise import (
    CALIBRATIONS,
    FIRST,
    FIRST_REASON,
    PEELED,
    REASON,
    Compared,
    exact_pair,
    open_printed,
    paper_about,
    printed_descent,
    printed_peel,
    printed_pencil,
    printed_slices,
)
from sfumato.research.rayleigh_flow import (
    COVARIANCE,
    FLOW_REASON,
    KERNEL,
    TRUNCATED_FLOW,
    flow_about,
    plan_flow,
    printed_flow,
    rayleigh_flow,
    zcdp_of,
)
from sfumato.schema import Reader, whole, word
from sfumato.statistics.histograms import ResponseHistogram
from sfumato.statistics.parts import OnColumns
from sfumato.steps.dimension import Choice
from sfumato.steps.location import settled
from sfumato.steps.ranks import Ranks
from sfumato.steps.subspace import orthonormal_rows
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, is_whole

Solver = Literal["pencil", "parts", "steps", "flow"]
"""Eigenvectors of the released moments; a descent from there, each step on a part of the records or on all; a flow."""
BATCHES = ("parts", "full")
PICKS = 6
"""Features kept by peeling, s' = 6 as in the paper's simulations."""
MOST = 8
"""Features peeled where validation says how many of them to keep, four times the true two."""


@dataclass(frozen=True, slots=True)
class PaperTask(Compared, ExplainingTask):
    """What is public about such a fit; `slicing` are the bins of the response's histogram and its slices.

    `picks` are the features to keep, None in low dimension, where none are selected.
    """

    bounds: Bounds
    solver: Solver
    slicing: tuple[int, int]
    picks: int | None = None
    validate: bool = False

    @property
    def grid(self) -> Grid:
        """Of all features."""
        return self.bounds.grid(self.n_features)

    @property
    def peeled(self) -> int | None:
        """Features that peeling picks: the truncated flow drops half of them again, the others keep all."""
        return None if self.picks is None else min(self.picks * (2 if self.solver == "flow" else 1), self.n_features)

    def run(self) -> Asking["Found"]:
        """Walk the plan of the tight variant."""
        return tight(self)

    def plan(self) -> Plan:
        """Every release of the tight variant, with its share."""
        lines: tuple[Line, ...] = plan_histogram(self.response, 0.05)
        if self.peeled is not None:
            lines += plan_peeling("peel", self.peeled, 0.25)
        if self.solver == "flow":
            return Plan(lines + plan_flow(0.7, "2.12 r / 1.41 r"))
        moments = 0.9 if self.solver == "pencil" else 0.5
        if self.validate:
            lines += plan_validation(0.5 * moments, 0.15)
            moments *= 0.5
        lines += plan_moments(moments)
        if self.solver == "parts":
            lines += plan_parts(0.4)
        if self.solver == "steps":
            lines += plan_steps(0.4, self.peeled)
        return Plan(lines)


@dataclass(frozen=True, slots=True)
class Found:
    """Directions in the units of x, orthonormal, with their eigenvalues, and the features they rest on."""

    directions: FloatArray
    eigenvalues: FloatArray
    choice: Choice
    support: IntArray


def tight(task: PaperTask) -> Asking[Found]:
    """The algorithm with bounded sums and one total budget."""
    grid = task.grid
    sliced = yield from histogram_slices(task.response, *task.slicing)
    support = np.arange(task.n_features)
    if task.picks is not None:
        support = yield from peel_kernel(grid, sliced, half=task.validate)
    n = task.records_of(sliced)
    if task.validate:
        size = yield from choose_size(grid, sliced, support, n, task.n_directions)
        support = support[:size]
    if task.solver == "flow":
        return (yield from _within(task, support, _flow(task, sliced, support, n)))
    found = yield from _within(task, support, pencil(grid.some(support), sliced, n))
    k = min(task.n_directions or bic_dimension(found.values, n, len(sliced.probabilities)), len(support))
    state = start(found, support, k)
    if task.solver in ("parts", "steps"):
        peel, parts = task.picks is not None, task.solver == "parts"
        state = yield from descend_rows(grid, sliced, state, n, peel=peel, parts=parts)
    return found_by(task, state, found)


def _within(task: PaperTask, support: IntArray, step: Asking[T]) -> Asking[T]:
    """The step on the features that were peeled; in low dimension on all of them."""
    return step if task.picks is None else on_columns(step, support)


def _flow(task: PaperTask, sliced: Ranks, support: IntArray, n: float) -> Asking[Found]:
    """Rayleigh flow of kernel and covariance, truncated to `picks` features in high dimension."""
    shares = sliced.probabilities
    query = moments_of(task.grid.some(support), sliced)
    v, last = yield from rayleigh_flow(query, lambda r: matrices(r, shares, n)[:2], n, sparsity=task.picks)
    return along(task, v, solve_pencil(last, shares, n), support)


def along(task: PaperTask, vector: FloatArray, found: Pencil, support: IntArray) -> Found:
    """One direction on the features where it is not zero."""
    on = np.flatnonzero(vector) if np.any(vector) else np.arange(1)
    state = Iterate(support[on], vector[on, None], found.mean[on], found.means[on], found.covariance[np.ix_(on, on)])
    return found_by(task, state, found)


def found_by(task: PaperTask, state: Iterate, found: Pencil) -> Found:
    """In the units of x, orthonormal."""
    k = state.directions.shape[1]
    raw = np.zeros((task.n_features, k))
    raw[state.support] = state.directions / task.grid.half_width[state.support, None]
    # Noise may have made columns dependent, never the rows.
    directions = orthonormal_rows((raw / np.maximum(np.linalg.norm(raw, axis=0), 1e-300)).T)
    values = np.clip(found.values, 0.0, 1.0)
    choice = Choice(k, np.sqrt(values), math.nan, task.n_directions is not None)
    return Found(directions, values[:k], choice, np.sort(state.support))


def fit_paper(task: PaperTask, session: Session, estimator: Any) -> Found:
    """The fit in whichever calibration."""
    if estimator.calibration == "tight":
        return drive(task.run(), session.open(task))
    if task.validate:
        raise InputError("max_features='validate' has no printed noise that is right; use calibration='tight'.")
    flows, first = task.solver == "flow", estimator.calibration == FIRST
    reason = FIRST_REASON if first else FLOW_REASON if flows else REASON
    door = open_printed(session, estimator, reason, takes_rho=flows)
    return printed(task, door, session.n_records or 0, estimator.rho, first)


def printed(task: PaperTask, door: PaperCurator, n: int, rho: float | None, first: bool = False) -> Found:
    """The algorithm with the noise of its lemmas; how the first version starts is not printed: as the newest does."""
    grid = task.grid
    sliced = printed_slices(door, task.response, *task.slicing, first)
    support, inner, halves = np.arange(task.n_features), door, 1
    if task.peeled is not None:
        support, halves = printed_peel(door, grid, sliced, n, task.peeled), 2
        inner = replace(door, setting=_Columns(door, support), _kept=[])
    found = printed_pencil(inner, grid.some(support), sliced, n, halves=halves)
    if task.solver == "flow":
        queries = [moments_of(grid.some(support), sliced), ResponseHistogram(sliced.bins)]
        scales = KERNEL * len(support), COVARIANCE * len(support)
        vector = printed_flow(
            inner,
            queries,
            lambda moments, counts: exact_pair(moments, counts, n),
            scales,
            n,
            rho=zcdp_of(door.epsilon, door.delta, rho),
            start=found.vectors[:, 0],
            sparsity=task.picks,
        )
        return along(task, vector, found, support)
    k = task.n_directions or bic_dimension(found.values, float(n), len(sliced.probabilities))
    state = start(found, support, min(k, len(support)))
    if task.solver in ("parts", "steps"):
        state = printed_descent(door, grid, sliced, state, n, task.peeled, first)
    return found_by(task, state, found)


@dataclass(frozen=True, slots=True)
class _Columns:
    """A setting whose records have some columns only."""

    door: PaperCurator
    columns: IntArray

    def sum(self, query: BoundedSum) -> IntArray:
        return self.door.setting.sum(OnColumns(query, self.columns))


SIR_PARAMETERS: dict[str, Reader] = (
    PARAMETERS | {"calibration": word((*CALIBRATIONS, FIRST))} | CLASSES | {"n_slices": whole(2), "n_bins": whole(1)}
)
XIA = "Xia, Zhang and Cai"
LOW: dict[str, Any] = {"options": EXPLAINING_OPTIONS, "parameters": SIR_PARAMETERS, "released": EXPLAINING | SCALE}
HIGH: dict[str, Any] = {
    "options": (*EXPLAINING_OPTIONS, "max_features"),
    "parameters": SIR_PARAMETERS | {"max_features": number_or("auto", "validate")},
    "released": EXPLAINING | SCALE | SUPPORT,
} | PEELED
"""What `about` says of all estimators in low and in high dimension."""


@dataclass(eq=False, repr=False)
class PaperSIR(ExplainingReducer):
    """What the papers' estimators in low dimension have in common."""

    _: KW_ONLY
    calibration: str = "tight"
    n_slices: int = 20
    n_bins: int = 100
    classes: Sequence[Any] | None = None

    _solver: ClassVar[Solver]

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find the directions; parameters as in `PrivateSIR.fit`."""
        session = open_session(self, X, y, groups)
        task = self._task(session.source.n_features, session.n_records, session.source.response)
        found = fit_paper(task, session, self)
        self.directions_, self.eigenvalues_, self.choice_ = found.directions, found.eigenvalues, found.choice
        self.standard_errors_ = np.full(found.directions.shape, np.nan)
        self.mean_, self.scale_ = task.grid.centre, task.grid.half_width
        self._keep_bounds(settled(task.bounds, task.n_features))
        self.ledger_ = session.ledger
        if task.picks is not None:
            self.support_ = found.support
        return self

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PaperTask:
        """What is public about this fit, every parameter checked; the papers know no other way than given bounds."""
        one_of("calibration", self.calibration, (*CALIBRATIONS, FIRST))
        directions, bounds = directions_of(self.n_directions, n_features), given_of(known_of(self, n_features))
        if bounds is None:
            raise InputError(f"bounds must be given for {type(self).__name__}; for instance Bounds(-1.5, 1.5).")
        if self._solver == "flow" and directions not in (None, 1):
            raise InputError(f"n_directions must be 1 with {type(self).__name__}, got {directions}; see DPSIR.")
        slicing = whole_number("n_bins", self.n_bins, 1), whole_number("n_slices", self.n_slices, 2)
        return PaperTask(n_features, n_records, response, directions, bounds, self._solver, slicing)


class DPIni(PaperSIR):
    """Algorithm B.4 of Xia, Zhang and Cai: noisy kernel and covariance, then their leading eigenvectors.

    Parameters
    ----------
    epsilon, delta : float
        The total privacy budget; with ``calibration="paper"`` what the paper's formulas are given.
    n_directions : int or "auto"
        "auto" takes the DP-BIC of the paper's section 3.4.
    bounds : Bounds
        Range of each feature, known without looking at the data; must be given.
    calibration : {"tight", "paper", "first"}
        Correct noise under one total budget, or the printed noise, of the paper's newest or of its first version,
        which gives no guarantee (the ledger says so and a `PrivacyWarning` is raised).
    n_slices, n_bins : int
        Slices of the response, and bins of the histogram that they are cut from: 20 and 100 as in the simulations of
        the paper's newest version (4 slices in the first). As many classes as slices, or fewer, are slices.
    relation, rows_per_person, rho, classes, ledger, random_state
        As in `PrivateSIR`.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x.
    eigenvalues_, mean_, scale_, bounds_, choice_, ledger_
        As in `PrivateSIR`; `mean_` and `scale_` are middle and half width of the bounds.
    standard_errors_ : ndarray of shape (n_directions, n_features)
        Not part of these methods: nan.

    Examples
    --------
    >>> from sfumato import Bounds, subspace_distance
    >>> from sfumato.research import DPIni
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=20_000, p=5, random_state=0)
    >>> fit = DPIni(epsilon=10.0, n_directions=1, bounds=Bounds(-1.5, 1.5), random_state=1).fit(sample.x, sample.y)
    >>> bool(subspace_distance(fit.directions_, sample.directions) < 0.2)
    True
    """

    _solver = "pencil"
    about: ClassVar[About] = paper_about(
        "DP-Ini: private sliced inverse regression in one shot",
        f"Algorithm B.4 of {XIA}",
        "dp-sir",
        lambda: DPIni,
        **LOW,
    )


@dataclass(eq=False, repr=False)
class DPSIR(PaperSIR):
    """Algorithm 2 of Xia, Zhang and Cai: from the directions of `DPIni` a descent by noisy gradients.

    Attributes and parameters are those of `DPIni`, and one more.

    Parameters
    ----------
    batches : {"parts", "full"}
        Of the tight calibration. "parts": every step sees a part of the records of its own, as printed, and all steps
        together cost one release. "full": every step sees all records and they share the cost.

    Examples
    --------
    >>> from sfumato import Bounds
    >>> from sfumato.research import DPSIR
    >>> print(DPSIR(n_directions=1, bounds=Bounds(-1.5, 1.5)).explain(20_000, 5).plan.lines[-1].purpose)
    gradient steps, each on its own part of the records
    """

    _: KW_ONLY
    batches: str = "parts"

    _solver = "parts"
    about: ClassVar[About] = paper_about(
        "DP-SIR: private sliced inverse regression by gradient steps",
        f"Algorithm 2 of {XIA}",
        "dp-sir",
        lambda: DPSIR,
        {"": {}, "full batches": {"batches": "full"}},
        **LOW | {"parameters": SIR_PARAMETERS | {"batches": word(BATCHES)}},
    )

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PaperTask:
        full = one_of("batches", self.batches, BATCHES) == "full"
        task = super()._task(n_features, n_records, response)
        return replace(task, solver="steps") if full else task


class RayleighFlowSIR(PaperSIR):
    """Rayleigh flow of Hu, Xiang, Liu and Wang for sliced inverse regression: one direction, noised at every step.

    Attributes and parameters are those of `DPIni`; with ``calibration="paper"`` rho is what the paper's formulas are
    given. The flow finds one direction: `n_directions` is 1 or "auto".

    Examples
    --------
    >>> from sfumato import Bounds
    >>> from sfumato.research import RayleighFlowSIR
    >>> len(RayleighFlowSIR(bounds=Bounds(-1.5, 1.5)).explain(20_000, 5).plan.lines)
    13
    """

    _solver = "flow"
    about: ClassVar[About] = flow_about(
        "Private sliced inverse regression by Rayleigh flow", lambda: RayleighFlowSIR, **LOW
    )


@dataclass(eq=False, repr=False)
class PaperSparseSIR(PaperSIR):
    """What the papers' estimators in high dimension have in common: they peel features first."""

    _: KW_ONLY
    max_features: int | str = "auto"
    n_slices: int = 10
    n_bins: int = 50

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PaperTask:
        task = super()._task(n_features, n_records, response)
        validate = isinstance(self.max_features, str) and self.max_features == "validate"
        least = task.n_directions or 1
        picks = max(self._picks(least), least)
        return replace(task, picks=picks, validate=validate)

    def _picks(self, least: int) -> int:
        given = self.max_features
        if isinstance(given, str) and given in ("auto", "validate"):
            return PICKS if given == "auto" else MOST
        if not is_whole(given, least):
            raise InputError(
                f"max_features must be 'auto', 'validate' or an integer of at least {least}, got {given!r}."
            )
        return int(given)


class DPSIni(PaperSparseSIR):
    """Algorithm B.5 of Xia, Zhang and Cai: features are peeled by the kernel's diagonal, then `DPIni` on those.

    Attributes and parameters are those of `DPIni`, and some more.

    Parameters
    ----------
    n_slices, n_bins : int
        As in `DPIni`; 10 and 50 as in the paper's simulations.
    max_features : int, "auto" or "validate"
        Features to peel, and all are kept; 6 with "auto", as in the paper's simulations. "validate" chooses privately
        among 8 (Algorithm C.6, corrected).

    Attributes
    ----------
    support_ : ndarray of int
        Columns kept, in increasing order.

    Examples
    --------
    >>> from sfumato import Bounds
    >>> from sfumato.research import DPSIni
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=5_000, p=100, high_dimensional=True, random_state=0)
    >>> fit = DPSIni(20.0, n_directions=1, bounds=Bounds(-1.5, 1.5), random_state=1).fit(sample.x, sample.y)
    >>> set(fit.support_.tolist()) >= {0, 1}, len(fit.support_)
    (True, 6)
    """

    _solver = "pencil"
    about: ClassVar[About] = paper_about(
        "DP-SIni: private sparse sliced inverse regression in one shot",
        f"Algorithm B.5 of {XIA}",
        "dp-ssir",
        lambda: DPSIni,
        **HIGH | {"attacked": {"": {"max_features": 2}, "validated": {"max_features": "validate"}}},
    )


class DPSSIR(PaperSparseSIR):
    """Algorithm 3 of Xia, Zhang and Cai: from the directions of `DPSIni` a descent that peels at every step.

    Parameters and attributes are those of `DPSIni`.

    Examples
    --------
    >>> from sfumato import Bounds
    >>> from sfumato.research import DPSSIR
    >>> sum(line.mechanism == "selection" for line in DPSSIR(bounds=Bounds(-1, 1)).explain(2_000, 500).plan.lines)
    4
    """

    _solver = "steps"
    about: ClassVar[About] = paper_about(
        "DP-SSIR: private sparse sliced inverse regression by gradient steps",
        f"Algorithm 3 of {XIA}",
        "dp-ssir",
        lambda: DPSSIR,
        **HIGH,
    )


class TruncatedRayleighFlowSIR(PaperSparseSIR):
    """Truncated Rayleigh flow of Hu, Xiang, Liu and Wang for sliced inverse regression, on peeled features.

    Parameters are those of `RayleighFlowSIR`, but 10 slices of 50 bins, and attributes those of `DPSIni`.

    Parameters
    ----------
    max_features : int or "auto"
        Features to keep, 6 with "auto"; twice as many are peeled.

    Examples
    --------
    >>> from sfumato import Bounds
    >>> from sfumato.research import TruncatedRayleighFlowSIR
    >>> TruncatedRayleighFlowSIR(bounds=Bounds(-1, 1)).explain(2_000, 500).plan.line("peel").picks
    12
    """

    _solver = "flow"
    about: ClassVar[About] = flow_about(
        "Private sparse sliced inverse regression by truncated Rayleigh flow",
        lambda: TruncatedRayleighFlowSIR,
        words=TRUNCATED_FLOW,
        **HIGH,
    )

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PaperTask:
        task = super()._task(n_features, n_records, response)
        if task.validate:
            raise InputError("max_features='validate' is for DPSIni and DPSSIR; give a number here.")
        return task
