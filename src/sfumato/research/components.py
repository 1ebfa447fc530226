"""The papers' principal components: Rayleigh flow, its truncated form, and the sparse descent of Xia, Zhang and Cai."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.bounds import Bounds, Grid
from sfumato.errors import InputError
from sfumato.methods.about import COMPONENTS as PRINCIPAL
from sfumato.methods.about import PARAMETERS, SUPPORT, About, number_or
from sfumato.methods.base import Session, bounds_only, common_scale
from sfumato.methods.inputs import one_of
from sfumato.methods.pca import PrivatePCA, components_of
from sfumato.methods.sparse_pca import COMPONENTS, USUAL, PrivateSparsePCA, SparsePrincipalTask, size_of
from sfumato.privacy.asking import Asking, ask, on_columns, pick
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.research.pencil import STEPS, plan_steps
from sfumato.research.printed_noise import CALIBRATIONS, PEELED, Compared, paper_about, printed_bounds
from sfumato.research.rayleigh_flow import (
    COVARIANCE,
    TRUNCATED_FLOW,
    Flowing,
    flow_about,
    flow_as_printed,
    mean_and_covariance,
    plan_flow,
    principal_pair,
    rayleigh_flow,
)
from sfumato.research.sums import ProductRows
from sfumato.statistics.histograms import Bins
from sfumato.statistics.moments import Moments
from sfumato.steps.covariance import CENTRE_WEIGHT
from sfumato.steps.location import Located, Locating, Location, settled
from sfumato.steps.pca import Components, Loadings, Principal, measure_lengths, typical_clip
from sfumato.steps.symmetric import noise_edge
from sfumato.typing import FloatArray

LONGEST = 2.0
"""Of a column of B; those of the minimiser are at most sqrt(2) long."""


@dataclass(frozen=True, slots=True)
class PrincipalFlow:
    """The step that finds the leading eigenvector of the covariance by Rayleigh flow, completed to a basis."""

    share: float
    sparsity: int | None = None

    @property
    def lines(self) -> tuple[Line, ...]:
        """Those of the flow, in place of the covariances of `Components`."""
        radius, *others = Components(self.share).lines
        return (radius, *plan_flow(sum(line.share for line in others), "1.48 r^2 / 1.04 r^2"))

    def run(self, grid: Grid, n_records: int | None) -> Asking[Principal]:
        """The eigenvector; the number of records is read off the first release where it is private."""
        lengths = yield from measure_lengths(grid, n_records)
        n, query = lengths.total, Moments(grid, lengths.radius, CENTRE_WEIGHT)
        v, last = yield from rayleigh_flow(query, lambda r: principal_pair(r.value, n), n, sparsity=self.sparsity)
        mean, covariance = mean_and_covariance(last.value, n)
        noise_std = float(last.noise_std[-1]) / n
        return along(v, np.clip(mean, -1.0, 1.0), covariance, noise_std, lengths.kept, n)


def along(
    vector: FloatArray, mean: FloatArray, covariance: FloatArray, noise_std: float, kept: float, n: float
) -> Principal:
    """One direction completed to a basis, with the variances of a released covariance."""
    p = len(vector)
    basis = np.linalg.qr(np.column_stack([vector, np.eye(p)]))[0]
    basis[:, 0] = vector
    values = np.einsum("ij,ik,kj->j", basis, covariance, basis)
    noise = np.full((p, p), noise_std / np.sqrt(2.0))
    return Principal(mean, values / kept, basis, noise / kept, noise_edge(noise_std, p) / kept, n)


@dataclass(frozen=True, slots=True)
class PrincipalFlowTask(Compared):
    """What is public about a flow of principal components."""

    n_features: int
    n_records: int | None
    bounds: Bounds | Location

    def plan(self) -> Plan:
        return Plan.of(Locating(self.bounds), PrincipalFlow(1.0))

    def run(self) -> Asking[tuple[Located, Principal, None]]:
        located = yield from Locating(self.bounds).run(self.n_features, self.n_records)
        return located, (yield from PrincipalFlow(1.0).run(common_scale(located), self.n_records)), None


COMPONENT: dict[str, Any] = {"unit": "component", "meaning": "{:.1%} of the variance", "own_units": True}
SPARSE: dict[str, Any] = {
    "options": ("max_features",),
    "parameters": PARAMETERS | {"max_features": number_or()},
    "released": PRINCIPAL | SUPPORT,
} | PEELED
"""What `about` says of all components, and of all sparse ones."""


@dataclass(eq=False, repr=False)
class RayleighFlowPCA(Flowing, PrivatePCA):
    """The first principal component by Rayleigh flow (Hu, Xiang, Liu and Wang).

    The other parameters and the attributes are those of `PrivatePCA`; nothing is said of `privacy_errors_` and
    `verdict_`.

    Parameters
    ----------
    n_directions : 1
        The flow finds one component.
    calibration : {"tight", "paper"}
        Correct noise under one total budget, or the printed noise, which gives no guarantee (the ledger says so and a
        `PrivacyWarning` is raised) and releases the direction alone; it needs bounds.

    Examples
    --------
    >>> from sfumato.research import RayleighFlowPCA
    >>> RayleighFlowPCA().explain(10_000, 4).plan.lines[-1].purpose
    'matrices of step 10'
    """

    about: ClassVar[About] = flow_about(
        "Private principal component by Rayleigh flow", lambda: RayleighFlowPCA, released=PRINCIPAL, **COMPONENT
    )

    def _fit(self, session: Session) -> Self:
        """Find the component, with the paper's noise and records as they are if that is the calibration."""
        if self.calibration != "paper":
            return super()._fit(session)
        p, n = session.source.n_features, session.n_records or 0
        located = settled(printed_bounds(self._task(p, session.n_records, session.source.response).bounds), p)
        moments = Moments(common_scale(located), float(np.sqrt(p)))
        vector = flow_as_printed(session, self, [moments], lambda sums: principal_pair(sums, n), (COVARIANCE * p, 0.0))
        found = along(vector, np.zeros(p), np.full((p, p), np.nan), np.nan, 1.0, float(n))
        self._keep((located, found, None), session.ledger)
        return self

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Any:
        one_of("calibration", self.calibration, CALIBRATIONS)
        if components_of(self.n_directions, n_features) > 1:
            raise InputError(f"n_directions must be 1 with RayleighFlowPCA, got {self.n_directions}; see PrivatePCA.")
        return PrincipalFlowTask(n_features, n_records, bounds_only(self, n_features, n_records))


@dataclass(frozen=True, slots=True)
class SparseFlowTask(Compared, SparsePrincipalTask):
    """What is public about a truncated flow: it drops half of the picked features again."""

    kept: int = USUAL

    def plan(self) -> Plan:
        return Plan.of(Locating(self.bounds), self.picking, PrincipalFlow(COMPONENTS.share))

    def run(self) -> Asking[tuple[Located, Loadings]]:
        located, grid = yield from _grid(self)
        picked, length = yield from self.picking.run(grid)
        found = yield from on_columns(
            PrincipalFlow(COMPONENTS.share, self.kept).run(grid.some(picked), self.n_records), picked
        )
        return located, Loadings(picked, found.vectors[:, :1], picked, found, length**2)


HALF = Components(COMPONENTS.share / 2.0, "one-shot")
"""The other half pays for the steps."""


@dataclass(frozen=True, slots=True)
class SparseDescentTask(Compared, SparsePrincipalTask):
    """What is public about the sparse descent."""

    def plan(self) -> Plan:
        lines = Plan.of(Locating(self.bounds), self.picking, HALF).lines
        return Plan(lines + plan_steps(HALF.share, self.picks))

    def run(self) -> Asking[tuple[Located, Loadings]]:
        """Directions on the picked features, then the descent that may exchange them."""
        located, grid = yield from _grid(self)
        k, (picked, length) = self.n_directions, (yield from self.picking.run(grid))
        found = yield from on_columns(HALF.run(grid.some(picked), self.n_records, k), picked)
        state = Loadings(picked, found.vectors[:, :k], picked, found, length**2)
        total = float(self.n_records) if self.n_records is not None else max(found.total, 10.0 * len(picked))
        clip = typical_clip(grid, length)
        return located, (yield from _descend(Grid(grid.centre, grid.half_width * clip), clip, state, total))


def _grid(task: SparsePrincipalTask) -> Asking[tuple[Located, Grid]]:
    located = yield from Locating(task.bounds).run(task.n_features, task.n_records)
    return located, common_scale(located)


def _descend(grid: Grid, clip: float, state: Loadings, n: float) -> Asking[Loadings]:
    """Algorithm 3 of Xia, Zhang and Cai for ``-tr(B^T S B) + (penalty / 2) |B^T B - I|^2`` (their appendix A).

    Half the gradient is ``-S B + penalty B (B^T B - I)``; only ``S B``, the mean of ``x e^T`` with ``e = B^T (x - m)``
    truncated, needs the records. The penalty is the largest released eigenvalue; its minimiser then has columns of
    length sqrt(2) at most. Entries are clipped where the sums of squares clipped them: `grid` is that much narrower.
    """
    k = state.vectors.shape[1]
    # No direction of a record in the box is longer than the root of its number of features.
    values = np.clip(state.found.values[:k] / clip**2, 1e-6, len(state.support))
    penalty, pace = float(values[0]), 0.25 / float(values[0])
    radius = 2.0 * float(np.sqrt(values.sum()))
    support, mean = state.support, state.found.mean / clip
    B = state.vectors * np.sqrt(1.0 + values / penalty)
    for t in range(1, STEPS + 1):
        whole = np.zeros((grid.n_features, k))
        whole[support] = B - 2.0 * pace * penalty * B @ (B.T @ B - np.eye(k))
        query = ProductRows(grid, Bins(np.empty(0)), (mean @ B)[None, :], support, -B, radius, whole * n / (2.0 * pace))
        new = np.sort((yield from pick(query, f"peel {t}")))
        step = (yield from ask(query.on(new), f"step {t}")).value
        mean = np.array([mean[np.flatnonzero(support == j)[0]] if j in support else 0.0 for j in new])
        support, B = new, whole[new] - 2.0 * pace / n * step
        B *= np.minimum(1.0, LONGEST / np.maximum(np.linalg.norm(B, axis=0), 1e-300))  # the projection onto the ball C
    return Loadings(support, np.linalg.qr(B)[0], state.picked, state.found, state.variance)


@dataclass(eq=False, repr=False)
class PaperSparsePCA(PrivateSparsePCA):
    """What the papers' sparse components have in common."""

    method: str = field(default="its own", init=False)  # there is no other


class TruncatedRayleighFlowPCA(PaperSparsePCA):
    """The first sparse component by truncated Rayleigh flow (Hu, Xiang, Liu and Wang), with correct noise.

    Parameters and attributes are those of `PrivateSparsePCA`; `n_directions` is 1, as the flow finds one component.

    Examples
    --------
    >>> from sfumato.research import TruncatedRayleighFlowPCA
    >>> TruncatedRayleighFlowPCA(max_features=3).explain(10_000, 400).plan.line("picks").picks
    6
    """

    about: ClassVar[About] = flow_about(
        "Private sparse principal component by truncated Rayleigh flow",
        lambda: TruncatedRayleighFlowPCA,
        words=TRUNCATED_FLOW,
        **COMPONENT | SPARSE,
    )

    def _task(self, n_features: int, n_records: int | None, response: Response) -> SparsePrincipalTask:
        k = components_of(self.n_directions, n_features)
        if k > 1:
            raise InputError(f"n_directions must be 1 with TruncatedRayleighFlowPCA, got {k}; see PrivateSparsePCA.")
        size, bounds = size_of(self.max_features, k, n_features), bounds_only(self, n_features, n_records)
        return SparseFlowTask(n_features, n_records, k, bounds, min(2 * size, n_features), size)


class DPSPCA(PaperSparsePCA):
    """Sparse components by the gradient steps and peeling of Xia, Zhang and Cai (appendix A), with correct noise.

    Parameters and attributes are those of `PrivateSparsePCA`; `standard_errors_` are not known for this method: nan on
    `support_`.

    Examples
    --------
    >>> from sfumato.research import DPSPCA
    >>> DPSPCA(max_features=3).explain(10_000, 400).plan.lines[-1].purpose
    'gradient step 3'
    """

    about: ClassVar[About] = paper_about(
        "DP-SPCA: private sparse principal components by gradient steps",
        "Algorithm 3 of Xia, Zhang and Cai for components (their appendix A)",
        "sparse-pca",
        lambda: DPSPCA,
        **COMPONENT | SPARSE,
    )

    def _task(self, n_features: int, n_records: int | None, response: Response) -> SparsePrincipalTask:
        k, bounds = components_of(self.n_directions, n_features), bounds_only(self, n_features, n_records)
        return SparseDescentTask(n_features, n_records, k, bounds, size_of(self.max_features, k, n_features))

    def _keep(self, outcome: tuple[Located, Loadings], ledger: Ledger) -> None:
        super()._keep(outcome, ledger)
        self.standard_errors_[:, outcome[1].support] = np.nan
