"""The registry of bounded sums: a new one is added here and inherits every test of this folder."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from sfumato.audit.tracing import SignedSum
from sfumato.bounds import Bounds
from sfumato.records import Records
from sfumato.research.sums import CandidateSums, IndexProducts, ProductRows, SliceSums
from sfumato.statistics import histograms
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct, ResponseProduct
from sfumato.statistics.histograms import ProjectionHistogram
from sfumato.statistics.moments import Moments, SquareSums
from sfumato.statistics.parts import Cells, OfColumn, OnCells, OnColumns, Part, PerPerson
from sfumato.statistics.scores import QuantileScores, SignResiduals, Signs, SignScores
from sfumato.statistics.slices import SlicedMoments, SliceSecondMoments
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum

LOWER, UPPER = -2.0, 3.0
EDGES = np.array([-3.0, -1.0, 0.0, 1e-300, 0.5, 4.0])
CODES = 5
TINY_AND_HUGE = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-160, -1e-160, 1e154, -1e154, 1.7e308, -1.7e308]
BOUNDARY = [LOWER, UPPER, 0.5, np.nextafter(LOWER, -9), np.nextafter(UPPER, 9), np.nextafter(0.5, 0), 1.0, -1.0]
EXTREMES = np.array([*TINY_AND_HUGE, *BOUNDARY, 2.0**40, -(2.0**-40), 100.0])
ROUNDING = 1 + Fraction(1, 2**45)
"""Weights and bounds are floats of irrational numbers, each a few roundings (2**-52) away; the noise is rounded up
by far more."""


def grid(p):
    return Bounds(LOWER, UPPER).grid(p)


def whitening(p, cap=None):
    rng = np.random.default_rng(p)
    matrix = np.diag(2.0 ** rng.uniform(-1, 1, p)) + rng.normal(size=(p, p)) / (4 * p)
    return Whitening(grid(p), matrix, rng.uniform(-0.2, 0.2, p), 2.0 * np.sqrt(p) if cap is None else cap)


def residual(p, bins, spread=20.0, largest=1e7):
    """A table whose rows come with both signs; coefficients beyond the largest that are used."""
    rng = np.random.default_rng(p + 1)
    half = rng.normal(size=((bins.count + 1) // 2, 3)) * spread
    table = np.concatenate([half, -half])[: bins.count]
    coefficients = rng.normal(size=(p + 1, 3)) / np.sqrt(p)
    coefficients[0, 0] = largest
    return Residual(whitening(p), bins, table, coefficients, 1.0)


def numbers():
    return histograms.Bins(EDGES)


def codes():
    return histograms.Bins(np.empty(0), categories=CODES)


def six():
    return histograms.Bins(np.empty(0), categories=6)


def cells(p, make):
    """Two responses, one cut at 0 and 1/2 and the other at 4, of as many features as are left; none of one column."""
    sizes = np.array([2, 1] if p > 2 else [], dtype=np.int64)
    return OnCells(make(p - len(sizes)), Cells(np.array([0.0, 0.5, 4.0])[: sizes.sum()], sizes))


def slices(p, bins, weight, count_weight=0.0):
    slice_of, n_slices = np.arange(bins.count) // 2, (bins.count + 1) // 2
    return SlicedMoments(whitening(p, cap=0.5), bins, slice_of, n_slices, weight, count_weight)


def second_moments(p, bins, weight):
    return SliceSecondMoments(whitening(p, cap=0.5), bins, np.arange(bins.count) // 2, (bins.count + 1) // 2, weight)


def products(p, bins):
    rng, support = np.random.default_rng(p), np.arange(0, p, 2)
    half = rng.normal(size=((bins.count + 1) // 2, 2)) * 20
    table = np.concatenate([half, -half])[: bins.count]
    coefficients = rng.normal(size=(len(support), 2)) / p
    return ProductRows(grid(p), bins, table, support, coefficients, 1.5, offset=rng.normal(size=(p, 2)))


def picture(p, bins):
    direction = np.random.default_rng(p).normal(size=p)
    return ProjectionHistogram(whitening(p), direction, bins, np.arange(bins.count) % 3, 3, 8)


def signs(p, bins, centre=0.5):
    table = np.random.default_rng(p).choice([-1.0, 0.25, 1.0], (bins.count, 2))
    table[0] = 1.0
    return SignScores(np.full(p, centre), bins, table)


def by_functions(p, bins, size):
    """Some values of functions beyond the largest that is kept."""
    functions = np.random.default_rng(p).normal(size=(bins.count, 4)) * [0.1, 1e-4, 0.1, 50.0]
    return ResponseProduct(residual(p, bins), functions, size)


def sign_residuals(p, bins, columns, centre=0.5):
    """Some effects beyond what is left, one of them twice; records of both signs that are cut."""
    rng = np.random.default_rng(p)
    support, effects = rng.integers(0, p, 4), rng.normal(size=4) * [0.2, 1e-9, 3.0, 0.5]
    return SignResiduals(
        Signs(np.full(p, centre)), bins, rng.normal(size=bins.count) * 2, support, effects, 0.67, columns
    )


def candidates(p, bins):
    some = np.random.default_rng(p).normal(size=(p, 2))
    return CandidateSums(grid(p), bins, (some, 2.0 * some, some[:, :1]), 0.2)


@cache
def built(build, p):
    return build(p)


@dataclass(frozen=True)
class Case:
    """A bounded sum for every number of features, and how to make records for it."""

    name: str
    build: Callable[[int], BoundedSum]
    has_codes: bool = False
    p: int = 3
    largest: float = np.finfo(float).max

    @property
    def query(self) -> BoundedSum:
        return built(self.build, self.p)

    def records(self, rng, n, p=None):
        """Ordinary and extreme records, mixed."""
        p = p or self.p
        x = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-3, 3, size=(n, 1))
        wild = rng.random((n, p)) < 0.2
        x[wild] = rng.choice(EXTREMES, wild.sum())
        y = np.where(rng.random(n) < 0.5, rng.normal(size=n) * 3, rng.choice(np.append(EXTREMES, EDGES), n))
        return Records(np.clip(x, -self.largest, self.largest), rng.integers(0, CODES, n) if self.has_codes else y)

    def of(self, x, y):
        """Contribution of one record."""
        return self.query.of(Records(np.clip([x], -self.largest, self.largest), np.asarray([y])))

    def length(self, v):
        """Weighted length in floats, for the search."""
        return float(np.sqrt(((self.query.weights * v.astype(float)) ** 2).sum()))

    def is_within(self, v, bound):
        """Whether the weighted length of an integer vector is at most the bound, in exact arithmetic."""
        w = np.broadcast_to(self.query.weights, self.query.shape).ravel()
        square = sum(Fraction(float(w[j])) ** 2 * int(v.flat[j]) ** 2 for j in np.flatnonzero(v))
        return square <= Fraction(bound) ** 2 * ROUNDING


CASES = [
    Case("response", lambda p: histograms.ResponseHistogram(numbers())),
    Case("classes", lambda p: histograms.ResponseHistogram(codes()), has_codes=True),
    Case("lengths", lambda p: histograms.NormHistogram(grid(p))),
    Case("octaves", histograms.OctaveHistograms),
    Case("linear", lambda p: histograms.LinearHistograms(np.full(p, -1.0), np.linspace(1, 2, p), 6)),
    Case("distances", lambda p: histograms.DistanceHistograms(np.linspace(-1.0, 1e9, p), np.linspace(0.0, 0.5, p))),
    Case("moments", lambda p: Moments(grid(p), 0.8)),
    Case("moments of all", lambda p: Moments(grid(p), float(np.sqrt(p)), centre_weight=1.0)),
    Case("moments, centre first", lambda p: Moments(grid(p), 0.01, centre_weight=2.0)),
    Case("moments, one row of a person", lambda p: PerPerson(Moments(grid(p), 0.8), 1)),
    Case("residual sizes", lambda p: ResidualHistogram(residual(p, numbers(), 0.5, 1.0))),
    Case("residual products", lambda p: ResidualProduct(residual(p, numbers()), 1.0)),
    Case("residual products of classes", lambda p: ResidualProduct(residual(p, codes()), 0.3), has_codes=True),
    Case("residuals by functions of y", lambda p: by_functions(p, numbers(), 0.7)),
    Case("residuals by functions of classes", lambda p: by_functions(p, codes(), 0.2), has_codes=True),
    Case("slices", lambda p: slices(p, numbers(), 1.0)),
    Case("slices of classes", lambda p: slices(p, codes(), 0.4), has_codes=True),
    Case("slices with sizes", lambda p: slices(p, numbers(), 1.0, 0.5)),
    Case("slices of classes, sizes first", lambda p: slices(p, codes(), 0.4, 1.5), has_codes=True),
    Case("second moments by slice", lambda p: second_moments(p, numbers(), 1.0)),
    Case("second moments by class", lambda p: second_moments(p, codes(), 0.5), has_codes=True),
    Case("signed sum", lambda p: SignedSum(p, 0.7), largest=1e300),  # its records are normal scores
    Case("sums by slice", lambda p: SliceSums(grid(p), numbers())),
    Case("sums by class", lambda p: SliceSums(grid(p), codes()), has_codes=True),
    Case("product rows", lambda p: products(p, numbers())),
    Case("some product rows of classes", lambda p: products(p, codes()).on(np.arange(0, p, 2)), has_codes=True),
    Case("product rows of a part", lambda p: Part(products(p, numbers()), 1, 2)),
    Case("residual products of a part", lambda p: Part(ResidualProduct(residual(p, numbers()), 1.0), 0, 2)),
    Case("square sums", lambda p: SquareSums(grid(p), 1.0)),
    Case("square sums, clipped", lambda p: SquareSums(grid(p), 0.01)),
    Case("sign scores", lambda p: signs(p, numbers())),
    Case("sign scores about zero, of classes", lambda p: signs(p, codes(), 0.0), has_codes=True),
    Case("sign residuals", lambda p: sign_residuals(p, numbers(), np.arange(p))),
    Case("sign residual of one feature", lambda p: sign_residuals(p, numbers(), np.array([p - 1]))),
    Case("sign residuals of classes", lambda p: sign_residuals(p, codes(), np.arange(p), 0.0), has_codes=True),
    Case("some columns", lambda p: OnColumns(signs((p + 1) // 2, numbers()), np.arange(0, p, 2))),
    Case("median of a column", lambda p: OfColumn(QuantileScores(numbers(), 1, 2), np.array([p - 1]))),
    Case("median distance", lambda p: OfColumn(QuantileScores(histograms.Bins(EDGES[4:]), 1, 2), np.array([0]), 0.5)),
    Case("counts of cells", lambda p: cells(p, lambda features: histograms.ResponseHistogram(six()))),
    Case(
        "residual products of cells",
        lambda p: cells(p, lambda features: ResidualProduct(residual(features, six()), 0.3)),
    ),
    Case("candidates", lambda p: candidates(p, numbers())),
    Case("products of indices", lambda p: IndexProducts(grid(p), np.random.default_rng(p).normal(size=(p, 2)), 0.2)),
    Case("quantile", lambda p: QuantileScores(numbers(), 3, 8)),
    Case("picture", lambda p: picture(p, numbers())),
    Case("picture of classes", lambda p: picture(p, codes()), has_codes=True),
]


@pytest.fixture(params=CASES, ids=[case.name.replace(" ", "-") for case in CASES])
def case(request) -> Case:
    return request.param


@pytest.fixture
def registered() -> set[str]:
    """Qualified names of the classes in the registry."""
    kinds = {type(case.query) for case in CASES}
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}
