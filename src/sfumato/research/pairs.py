"""Rayleigh flow (Hu, Xiang, Liu and Wang) of canonical pairs and of discriminants: the first one alone."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from sfumato.bounds import Grid
from sfumato.errors import InputError
from sfumato.methods.about import BOX, CLASSES, CODES, EXPLAINING, EXPLAINING_OPTIONS, About
from sfumato.methods.base import Session, given_of, known_of, location_of, location_of_pair
from sfumato.methods.cca import PAIRS, RELEASED, CanonicalTask, PrivateCCA, finish_pairs
from sfumato.methods.inputs import directions_of, one_of
from sfumato.methods.lda import RULE, DiscriminantOutcome, DiscriminantTask, PrivateLDA, finish_rule
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.release import Release
from sfumato.research.pencil import box
from sfumato.research.printed_noise import CALIBRATED, CALIBRATIONS, Compared, exact_pair, printed_bounds
from sfumato.research.rayleigh_flow import (
    COVARIANCE,
    KERNEL,
    Flowing,
    canonical_pair,
    flow_about,
    flow_as_printed,
    mean_and_covariance,
    plan_flow,
    rayleigh_flow,
)
from sfumato.schema import Node, bounds, optional, places
from sfumato.statistics.histograms import Bins, NormHistogram, ResponseHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.cca import Canonical
from sfumato.steps.covariance import whole
from sfumato.steps.dimension import Choice
from sfumato.steps.lda import Discriminant, class_moments, class_question
from sfumato.steps.location import Located, Location, settled
from sfumato.steps.noisy_histograms import quantile
from sfumato.steps.ranks import Ranks
from sfumato.steps.shape import FEWEST_WHOLE
from sfumato.steps.subspace import unit_rows
from sfumato.typing import FloatArray

UNKNOWN = Choice(1, np.full(1, np.nan), np.nan, True)


def clipped(grid: Grid) -> Asking[Whitening]:
    """Records as they are, clipped to their median length, which the line "radius" buys."""
    lengths, p = NormHistogram(grid), grid.n_features
    radius = quantile((yield from ask(lengths, "radius")).value, lengths.radii, FEWEST_WHOLE)
    return Whitening(grid, np.eye(p), np.zeros(p), float(radius))


def one_direction(estimator: Any, most: int) -> int:
    """The number of directions of a flow: one."""
    if directions_of(estimator.n_directions, most) not in (None, 1):
        raise InputError(f"n_directions must be 1 with {type(estimator).__name__}, got {estimator.n_directions}.")
    return 1


@dataclass(frozen=True, slots=True)
class CanonicalFlowTask(Compared, CanonicalTask):
    """What is public about a flow of canonical pairs."""

    def plan(self) -> Plan:
        """That of `CanonicalTask` with the flow in place of the covariances."""
        lines, pairs = CanonicalTask.plan(self).lines, PAIRS.lines
        share = sum(line.share for line in pairs[1:])
        return Plan(lines[: len(lines) - len(pairs) + 1] + plan_flow(share, "1.48 r^2 / 1.04 r^2"))

    def run(self) -> Asking[tuple[Located, FloatArray, Canonical, None]]:
        """The first pair, by a flow of the cross-covariances, both ways, against the two covariances."""
        located, n = yield from self.prepare()
        p, grid = self.n_features, located.grid
        query = whole((yield from clipped(grid)))
        v, last = yield from rayleigh_flow(query, lambda released: canonical_pair(released.value, p, n), n)
        A, B = canonical_pair(last.value, p, n)
        quotient = float(v @ A @ v) / max(float(v @ B @ v), 1e-300)
        weights = v / grid.half_width
        correlation = np.clip([quotient], 0.0, 1.0)
        choice = Choice(1, correlation, np.nan, True)
        pair = Canonical(unit_rows(weights[None, :p]), unit_rows(weights[None, p:]), correlation, choice)
        return located, grid.centre + mean_and_covariance(last.value, n)[0] * grid.half_width, pair, None


@dataclass(frozen=True, slots=True)
class DiscriminantFlowTask(Compared, DiscriminantTask):
    """What is public about a flow of discriminants."""

    def plan(self) -> Plan:
        """That of `DiscriminantTask` with the flow in place of rough shape and class sums."""
        lines = DiscriminantTask.plan(self).lines
        return Plan(lines[:-2] + plan_flow(sum(line.share for line in lines[-2:]), "2.12 r / 1.41 r"))

    def run(self) -> Asking[DiscriminantOutcome]:
        located, ranks, n = yield from self.prepare()
        whitening = yield from clipped(located.grid)
        fit = yield from discriminate_by_flow(whitening, ranks, self.codes(ranks), n)
        return self.outcome(located, whitening, fit)


def discriminate_by_flow(whitening: Whitening, ranks: Ranks, n_codes: int, n: float) -> Asking[Discriminant]:
    """The first direction by Rayleigh flow: A between classes, B within (the paper has them the other way round)."""
    used, query = class_question(whitening, ranks, n_codes)

    def pair(released: Release) -> tuple[FloatArray, FloatArray]:
        moments = class_moments(released, ranks, used, n)[0]
        return moments.between, moments.within

    v, last = yield from rayleigh_flow(query, pair, n)
    moments, mean = class_moments(last, ranks, used, n)
    part = float(v @ moments.between @ v) / max(float(v @ moments.covariance @ v), 1e-300)
    explained = np.clip([part], 0.0, 1.0)
    noise_std = float(np.sqrt((moments.shares * moments.mean_noise**2).mean()))
    choice = Choice(1, np.sqrt(explained), np.nan, True)
    return Discriminant(v[:, None], np.eye(len(v)), noise_std, explained, choice, moments, mean, used)


def _finish_rule(estimator: Any, node: Node) -> None:
    """With the printed noise only the direction was released; else everything that predicts."""
    if (estimator._rule is None) != (estimator._used is None) or (
        estimator._rule is None and estimator.calibration == "tight"
    ):
        node.refuse("complete: rule and used go together")
    if estimator._rule is None:
        estimator.centres_, estimator.priors_ = np.empty((0, 1)), np.empty(0)
    else:
        finish_rule(estimator, node)


@dataclass(eq=False, repr=False)
class RayleighFlowCCA(Flowing, PrivateCCA):
    """The most correlated pair of directions of two tables, by Rayleigh flow.

    The other parameters and the attributes are those of `PrivateCCA`, without errors and verdict; of the printed noise
    correlations are nan and means the middle of the bounds.

    Parameters
    ----------
    n_directions : 1 or "auto"
        The flow finds one pair.
    calibration : {"tight", "paper"}
        As in `RayleighFlowPCA`; the printed noise releases the weights alone.

    Examples
    --------
    >>> from sfumato.research import RayleighFlowCCA
    >>> RayleighFlowCCA().explain(10_000, 4, 3).plan.lines[-1].purpose
    'matrices of step 10'
    """

    about: ClassVar[About] = flow_about(
        "Private canonical correlations by Rayleigh flow",
        lambda: RayleighFlowCCA,
        CALIBRATED | {"y_bounds": optional(bounds("q"))},
        attacked={"": {"y_bounds": BOX}},
        table={"n_features": 4, "two_tables": True},
        unit="pair of directions",
        meaning="correlation {:.2f}",
        options=("second", "q"),
        released=RELEASED,
        finish=finish_pairs,
    )

    def _fit(self, session: Session) -> Self:
        """Find the pair, with the paper's noise and records as they are if that is the calibration."""
        if self.calibration != "paper":
            return super()._fit(session)
        p, size, n = int(self.n_features_in_), session.source.n_features, session.n_records or 0
        located = settled(printed_bounds(self._pair(p, size - p, session.n_records).bounds), size)
        grid, scales = located.grid, (COVARIANCE * size, COVARIANCE * size)
        asked = [Moments(grid, float(np.sqrt(size)))]
        vector = flow_as_printed(session, self, asked, lambda sums: canonical_pair(sums, p, n), scales)
        weights = vector / grid.half_width
        pair = Canonical(unit_rows(weights[None, :p]), unit_rows(weights[None, p:]), np.full(1, np.nan), UNKNOWN)
        self._keep((located, grid.centre, pair, None), session.ledger)
        return self

    def _pair(self, n_features: int, n_targets: int, n_records: int | None) -> CanonicalTask:
        one_of("calibration", self.calibration, CALIBRATIONS)
        k = one_direction(self, min(n_features, n_targets))
        bounds = location_of_pair(self, (n_features, n_targets), n_records)
        if isinstance(bounds, Location):  # for comparison alone: bounds as they are, if all are known
            bounds = given_of(bounds.known) or bounds
        return CanonicalFlowTask(n_features, n_targets, n_records, k, bounds)


@dataclass(eq=False, repr=False)
class RayleighFlowLDA(Flowing, PrivateLDA):
    """The direction that tells classes apart best, by Rayleigh flow.

    The other parameters and the attributes are those of `PrivateLDA`, without a verdict.

    Parameters
    ----------
    n_directions : 1 or "auto"
        The flow finds one.
    calibration : {"tight", "paper"}
        As in `RayleighFlowPCA`; with the printed noise there is nothing to predict with, and it needs classes, too.

    Examples
    --------
    >>> from sfumato.research import RayleighFlowLDA
    >>> RayleighFlowLDA(classes=["ash", "oak"]).explain(10_000, 4).plan.lines[-1].purpose
    'matrices of step 10'
    """

    about: ClassVar[About] = flow_about(
        "Private linear discriminant by Rayleigh flow",
        lambda: RayleighFlowLDA,
        CALIBRATED | CLASSES,
        attacked={"": {"classes": CODES}},
        table={"responses": CODES},
        meaning="{:.1%} between classes",
        options=EXPLAINING_OPTIONS,
        released=EXPLAINING | {"rule": optional(RULE), "used": optional(places("h", "codes"))},
        finish=_finish_rule,
    )

    def _fit(self, session: Session) -> Self:
        """Find the direction, with the paper's noise and records as they are if that is the calibration."""
        if self.calibration != "paper":
            return super()._fit(session)
        p, n, response = session.source.n_features, session.n_records or 0, session.source.response
        located = settled(printed_bounds(self._task(p, session.n_records, response).bounds), p)
        if response.categories is None or response.hashed:
            raise InputError("classes must list the classes with calibration='paper'; give classes=[...].")
        grid, bins = located.grid, Bins(np.empty(0), categories=response.categories)

        def pair(moments: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
            between, whole = exact_pair(moments, counts, n)
            return between, whole - between

        queries = [SlicedMoments(box(grid), bins, np.arange(bins.count), bins.count), ResponseHistogram(bins)]
        vector = flow_as_printed(session, self, queries, pair, (KERNEL * p, (KERNEL + COVARIANCE) * p))
        self.directions_ = unit_rows((vector / grid.half_width)[None])
        self.standard_errors_ = np.full(self.directions_.shape, np.nan)
        self.eigenvalues_, self.choice_ = np.full(1, np.nan), UNKNOWN
        self.centres_, self.priors_ = np.empty((0, 1)), np.empty(0)
        self.mean_ = grid.centre
        self._keep_bounds(located)
        self.ledger_ = session.ledger
        return self

    @available_if(lambda self: self.classes is not None and self.calibration == "tight")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each record, by released means and covariance."""
        return np.asarray(super().predict(X))

    def _task(self, n_features: int, n_records: int | None, response: Response) -> DiscriminantTask:
        one_of("calibration", self.calibration, CALIBRATIONS)
        k = one_direction(self, n_features)
        bounds = given_of(known_of(self, n_features)) or location_of(self, n_features, n_records)
        return DiscriminantFlowTask(n_features, n_records, response, k, bounds)
