"""The papers' methods with their printed noise: flagged, for reproducing tables."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.estimators.paper_methods import FLOWS, PaperTask, along, outcome_of, some_columns, tight
from sfumato.estimators.pipeline import Outcome
from sfumato.estimators.session import Session, open_printed
from sfumato.iterate.peeling import start
from sfumato.iterate.pencil import bic_dimension, moments_of
from sfumato.iterate.printed import (
    REASON,
    Printed,
    exact_pair,
    printed_descent,
    printed_peel,
    printed_pencil,
    printed_slices,
)
from sfumato.iterate.printed_flow import COVARIANCE, FLOW_REASON, KERNEL, printed_flow, zcdp_of
from sfumato.statistics.columns import OnColumns
from sfumato.statistics.histograms import ResponseHistogram
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray


def fit_paper(task: PaperTask, session: Session, estimator: Any) -> tuple[Outcome, IntArray]:
    """Directions and the features they rest on."""
    if estimator.calibration == "tight":
        return tight(task, session.curator(task))
    if task.validate:
        raise InputError("max_features='validate' has no printed noise that is right; use calibration='tight'.")
    flows = task.method in FLOWS
    door = open_printed(session, estimator, FLOW_REASON if flows else REASON, takes_rho=flows)
    return printed(task, door, session.n_records or 0, estimator.rho)


def printed(task: PaperTask, door: Printed, n: int, rho: float | None) -> tuple[Outcome, IntArray]:
    """The algorithm with the noise of its lemmas."""
    grid = task.grid
    sliced = printed_slices(door, task.response, *task.slicing)
    support = printed_peel(door, grid, sliced, n, task.peeled) if task.is_sparse else np.arange(task.n_features)
    inner = replace(door, setting=_Columns(door, support), _kept=[]) if task.is_sparse else door
    found = printed_pencil(inner, some_columns(grid, support), sliced, n, halves=2 if task.is_sparse else 1)
    if task.method in FLOWS:
        queries = [moments_of(some_columns(grid, support), sliced), ResponseHistogram(sliced.bins)]
        scales = KERNEL * len(support), COVARIANCE * len(support)
        vector = printed_flow(
            inner,
            queries,
            lambda moments, counts: exact_pair(moments, counts, n),
            scales,
            n,
            rho=zcdp_of(door.epsilon, door.delta, rho),
            start=found.vectors[:, 0],
            sparsity=task.picks if task.is_sparse else None,
        )
        return along(task, vector, found, support, sliced)
    k = task.n_directions or bic_dimension(found.values, float(n), len(sliced.shares))
    state = start(found, support, min(k, len(support)))
    if task.method in ("dp-sir", "dp-sir-full", "dp-ssir"):
        state = printed_descent(door, grid, sliced, state, n, task.peeled if task.is_sparse else None)
    return outcome_of(task, state, found, sliced)


@dataclass(frozen=True, slots=True)
class _Columns:
    """A setting whose records have some columns only."""

    door: Printed
    columns: IntArray

    def sum(self, query: BoundedSum) -> IntArray:
        return self.door.setting.sum(OnColumns(query, self.columns))
