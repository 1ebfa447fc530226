"""What a site demands of a question before it computes anything.

The bounds of a `BoundedSum` are proved for parameters that make sense: a zero matrix or a number near the edge of
float64 could turn a record's contribution into something no bound covers. So every parameter is checked here, against
the site's own public facts; the noise then follows from the site's own copy of the plan and the sum's own bound.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.bounds import Grid
from sfumato.settings.federated import SiteFacts
from sfumato.statistics import histograms
from sfumato.statistics.gradients import (
    LARGEST_COEFFICIENT,
    LARGEST_FUNCTION,
    Residual,
    ResidualHistogram,
    ResidualProduct,
    ResponseProduct,
)
from sfumato.statistics.histograms import ProjectionHistogram
from sfumato.statistics.moments import Moments, SquareSums
from sfumato.statistics.parts import OnColumns
from sfumato.statistics.scores import SignScores
from sfumato.statistics.slices import SlicedMoments, SliceSecondMoments
from sfumato.statistics.whitening import CAP_UNITS, Whitening
from sfumato.statistics.wire import SITES, Decoder, RefusedError
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

MOST_BINS = 2**13
MOST_COLUMNS = 512
MOST_NUMBERS = 2**27
"""Of one answer, a gigabyte: second moments of 512 slices would fill any memory."""


class SiteDecoder(Decoder):
    """Reads the questions of a run back, those that sites answer."""

    def __init__(self) -> None:
        super().__init__(SITES)

    def query(self, data: Any) -> BoundedSum:
        """The bounded sum, or `RefusedError`: columns are selected once, so that what is asked stays readable."""
        value = super().query(data)
        if isinstance(value, OnColumns) and isinstance(value.query, OnColumns):
            raise RefusedError("the question selects columns twice.")
        return value


def check(query: BoundedSum, facts: SiteFacts) -> None:
    """Refuse a question whose parameters a bound was not proved for, or that does not fit the site's table."""
    match query:
        case histograms.ResponseHistogram():
            _bins(query.bins, facts)
        case histograms.NormHistogram():
            _grid(query.source, facts)
        case histograms.OctaveHistograms():
            _demand(query.n_features == facts.n_features, "it is about another number of features")
        case histograms.LinearHistograms():
            _spans(query, facts)
        case histograms.DistanceHistograms():
            for values in (query.middle, query.step):
                _vector(values, facts, "its middles are out of range")
        case Moments():
            _grid(query.source, facts)
            _demand(1e-9 <= query.radius <= 1e6 and 1e-3 <= query.centre_weight <= 1e3, "its radius is out of range")
        case ResidualHistogram():
            _residual(query.residual, facts)
        case ResidualProduct():
            _residual(query.residual, facts)
            _size(query.size, query.residual)
        case ResponseProduct():
            _residual(query.residual, facts)
            _size(query.size, query.residual)
            _functions(query.functions, query.residual.bins)
        case SlicedMoments() | SliceSecondMoments():
            _whitening(query.whitening, facts)
            _groups(query.bins, query.slice_of, query.n_slices, facts)
            _demand(1e-3 <= query.slice_weight <= 1e3, "its weight is out of range")
            counts = query.count_weight if isinstance(query, SlicedMoments) else 0.0
            _demand(counts == 0.0 or 1e-3 <= counts <= 1e3, "its weight of the counts is out of range")
        case ProjectionHistogram():
            _whitening(query.whitening, facts)
            _groups(query.bins, query.group_of, query.n_groups, facts)
            _demand(query.columns <= MOST_COLUMNS, "it has too many columns")
            _vector(query.direction, facts, "its direction is out of range")
            _demand(1e-100 < float(np.abs(query.direction).max()) < 1e100, "its direction is out of range")
        case SignScores():
            _scores(query, facts)
        case SquareSums():
            _grid(query.source, facts)
            _demand(1e-9 <= query.clip <= 1e6, "its clip is out of range")
        case OnColumns():
            _columns(query, facts)
        case _:
            raise RefusedError("the question is of a kind that sites do not answer.")
    _demand(math.prod(query.shape) <= MOST_NUMBERS, "its answer has too many numbers")


def _columns(query: OnColumns, facts: SiteFacts) -> None:
    columns = query.columns
    _demand(columns.ndim == 1 and 1 <= columns.size <= facts.n_features, "it is about another number of features")
    _demand(int(columns.min()) >= 0 and int(columns.max()) < facts.n_features, "it names columns that are not there")
    _demand(np.unique(columns).size == columns.size, "it names a column twice")
    check(query.query, replace(facts, n_features=int(columns.size)))


def _scores(query: SignScores, facts: SiteFacts) -> None:
    _vector(query.centre, facts, "its centre is out of range")
    _table(query.table, query.bins, facts)


def _demand(holds: Any, why_not: str) -> None:
    if not holds:
        raise RefusedError(f"the question is refused: {why_not}.")


def _vector(values: FloatArray, facts: SiteFacts, why_not: str) -> None:
    """A number for each feature, so that squares of differences do not overflow."""
    _demand(values.shape == (facts.n_features,), "it is about another number of features")
    _demand(float(np.abs(values).max()) <= 1e150, why_not)


def _spans(query: histograms.LinearHistograms, facts: SiteFacts) -> None:
    for side in (query.lower, query.upper):
        _vector(side, facts, "its spans are out of range")
    _demand(float((query.upper - query.lower).min()) > 1e-150, "its spans are empty")
    _demand(query.bins <= MOST_COLUMNS, "it has too many bins")


def _grid(grid: Grid, facts: SiteFacts) -> None:
    for side in (grid.centre, grid.half_width):
        _vector(side, facts, "its bounds are out of range")
    _demand(float(grid.half_width.min()) > 1e-150, "its bounds are empty")
    if grid.limits is not None:
        _demand(grid.limits.shape == (2, facts.n_features), "its limits have another shape")
        _demand((grid.limits[0] <= grid.limits[1]).all(), "its limits are out of order")


def _bins(bins: histograms.Bins, facts: SiteFacts) -> None:
    if bins.categories is None and bins.edges.shape == (0,):  # one bin for everybody, whatever the response is
        return
    _demand(bins.categories == facts.response.categories, "it is about another kind of response")
    _demand(bins.edges.ndim == 1 and bins.count <= MOST_BINS, "it has too many bins")
    _demand(bins.categories is None or bins.edges.size == 0, "categories have no edges")
    _demand((np.diff(bins.edges) > 0).all(), "its edges do not increase")


def _whitening(whitening: Whitening, facts: SiteFacts) -> None:
    _grid(whitening.source, facts)
    _vector(whitening.mean, facts, "its mean is out of range")
    p = facts.n_features
    _demand(whitening.matrix.shape == (p, p), "its matrix has another shape")
    _demand(1e-100 < float(np.abs(whitening.matrix).max(initial=0.0)) < 1e100, "its matrix is out of range")
    _demand(0.5 <= whitening.cap <= CAP_UNITS / 2, "its cap is out of range")


def _residual(residual: Residual, facts: SiteFacts) -> None:
    _whitening(residual.whitening, facts)
    _table(residual.table, residual.bins, facts)
    fits = residual.coefficients.shape == (facts.n_features + 1, residual.table.shape[1])
    _demand(fits, "its table has another shape")
    _demand(1e-6 <= residual.scale <= 1e6, "its scale is out of range")


def _table(table: FloatArray, bins: histograms.Bins, facts: SiteFacts) -> None:
    """One row for each bin of the response."""
    _bins(bins, facts)
    _demand(table.ndim == 2 and table.shape[0] == bins.count, "its table has another shape")
    _demand(0 < table.shape[1] <= MOST_COLUMNS, "its table has too many columns")
    _demand(float(np.abs(table).max()) <= LARGEST_COEFFICIENT, "its table is out of range")


def _size(size: float, residual: Residual) -> None:
    _demand(2.0**-14 <= size / residual.scale <= 2.0**4, "its size is out of range")


def _functions(functions: FloatArray, bins: histograms.Bins) -> None:
    fits = functions.ndim == 2 and functions.shape[0] == bins.count
    _demand(fits and 0 < functions.shape[1] <= MOST_COLUMNS, "its functions have another shape")
    _demand(float(np.abs(functions).max()) <= LARGEST_FUNCTION, "its functions are out of range")


def _groups(bins: histograms.Bins, group_of: IntArray, groups: int, facts: SiteFacts) -> None:
    _bins(bins, facts)
    _demand(group_of.shape == (bins.count,) and groups <= MOST_COLUMNS, "its groups have another shape")
    _demand(int(group_of.min()) >= 0 and int(group_of.max()) < groups, "its groups are out of range")
