"""Rayleigh flow of pairs and discriminants with the paper's noise: flagged, directions alone."""

from typing import Any

import numpy as np

from sfumato.bounds import Bounds
from sfumato.errors import InputError
from sfumato.estimators.session import Session, open_printed
from sfumato.iterate.pencil import box
from sfumato.iterate.printed import exact_pair
from sfumato.iterate.printed_flow import COVARIANCE, FLOW_REASON, KERNEL, printed_flow, zcdp_of
from sfumato.solve.canonical import Canonical, unit_rows
from sfumato.solve.dimension import Choice
from sfumato.solve.pairs import canonical_pair
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.slices import SlicedMoments
from sfumato.typing import FloatArray

NEEDS = "calibration='paper' needs method='rayleigh-flow' and bounds; use calibration='tight'."
UNKNOWN = Choice(1, np.full(1, np.nan), np.nan, True)


def printed_canonical(bounds: Bounds, first: int, session: Session, estimator: Any) -> Canonical:
    """The first pair; bounds are those of both tables side by side."""
    door = open_printed(session, estimator, FLOW_REASON, takes_rho=True)
    size, n = session.source.n_features, session.n_records or 0
    grid = bounds.grid(size)
    vector = printed_flow(
        door,
        [Moments(grid, float(np.sqrt(size)))],
        lambda sums: canonical_pair(sums, size, first, n),
        (COVARIANCE * size, COVARIANCE * size),
        n,
        rho=zcdp_of(estimator.epsilon, estimator.delta, estimator.rho),
    )
    weights = vector / grid.half_width
    return Canonical(unit_rows(weights[None, :first]), unit_rows(weights[None, first:]), np.full(1, np.nan), UNKNOWN)


def printed_discriminant(bounds: Bounds, session: Session, estimator: Any) -> FloatArray:
    """The first direction as a unit row, in the units of x."""
    classes = session.source.response.categories
    if classes is None or session.source.response.hashed:
        raise InputError("classes must list the classes with calibration='paper'; give classes=[...].")
    door = open_printed(session, estimator, FLOW_REASON, takes_rho=True)
    p, n = session.source.n_features, session.n_records or 0
    grid, bins = bounds.grid(p), Bins(np.empty(0), categories=classes)

    def pair(moments: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        between, whole = exact_pair(moments, counts, n)
        return between, whole - between

    vector = printed_flow(
        door,
        [SlicedMoments(box(grid), bins, np.arange(bins.count), bins.count), ResponseHistogram(bins)],
        pair,
        (KERNEL * p, (KERNEL + COVARIANCE) * p),
        n,
        rho=zcdp_of(estimator.epsilon, estimator.delta, estimator.rho),
    )
    return unit_rows((vector / grid.half_width)[None])
