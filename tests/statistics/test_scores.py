"""What a selection compares moves by no more than the stated peak, and two of them apart by no more than the spread."""

import numpy as np
import pytest

from sfumato.bounds import Bounds
from sfumato.records import Records
from sfumato.research.sums import CandidateSums, ProductRows, SliceSums
from sfumato.statistics.histograms import Bins
from sfumato.statistics.moments import SquareSums
from sfumato.statistics.parts import OnColumns
from sfumato.statistics.scores import UNITS, QuantileScores, SignResiduals, Signs, SignScores
from sfumato.steps.pursuit import cut_scores
from sfumato.steps.screening import class_contrasts

BINS, GRID = Bins(np.array([-0.5, 0.5])), Bounds(-1.0, 1.0).grid(4)
TABLE = np.array([[1.0, -1.0], [0.0, 0.5], [-1.0, 1.0]])
QUERIES = {
    "signs": SignScores(np.zeros(4), BINS, TABLE),
    "residuals": SignResiduals(
        Signs(np.zeros(4)), BINS, TABLE[:, 0], np.array([1, 2]), np.array([0.5, 2.0]), 0.67, np.array([0, 1, 3])
    ),
    "some": OnColumns(SignScores(np.zeros(2), BINS, TABLE), np.array([1, 3])),
    "candidates": CandidateSums(GRID, BINS, (np.eye(4)[:, :2], np.ones((4, 1))), 1.0),
    "quantile": QuantileScores(BINS, 2, 5),
    "kernel": SliceSums(GRID, BINS),
    "squares": SquareSums(GRID, 0.5),
    "rows": ProductRows(GRID, BINS, TABLE, np.arange(2), np.ones((2, 2)), 1.0, 3.0 * np.ones((4, 2))),
}


def corners(rng, n):
    """Records at and inside the corners of the box, with few different values: the worst cases are among them."""
    return Records(rng.choice([-1.0, -0.2, 0.0, 1.0], (n, 4)), rng.choice([-1.0, 0.0, 1.0], n))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_no_score_moves_by_more_than_the_peak(name, relation):
    query, rng, largest = QUERIES[name], np.random.default_rng(0), 0.0
    for _ in range(600):
        n = int(rng.integers(1, 7))
        records, other = corners(rng, n), corners(rng, 1)
        rest = Records(records.x[1:], records.y[1:])
        total = query.of(rest)
        before = query.scores(total + query.of(Records(records.x[:1], records.y[:1])))
        after = query.scores(total if relation == "add-remove" else total + query.of(other))
        largest = max(largest, float(np.abs(before - after).max()))
    assert 0.4 * query.peak(relation) < largest <= query.peak(relation)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_no_score_moves_by_more_than_the_peak_beside_a_billion_records(name, relation):
    query, rng = QUERIES[name], np.random.default_rng(4)
    for _ in range(300):
        many = corners(rng, 3)
        rest = sum(int(rng.integers(10**8, 10**9)) * query.of(Records(many.x[[i]], many.y[[i]])) for i in range(3))
        before = query.scores(rest + query.of(corners(rng, 1)))
        after = query.scores(rest if relation == "add-remove" else rest + query.of(corners(rng, 1)))
        assert np.abs(before - after).max() <= query.peak(relation)
        assert np.ptp(before - after) <= query.spread(relation)


def neighbours(rng):
    """The sums of others, up to thousands of them alike, and the record that comes, goes or changes."""
    some = corners(rng, int(rng.integers(1, 5)))
    weights = rng.integers(0, 4, len(some)) * int(rng.choice([1, 100, 3000]))
    pair = corners(rng, 2)
    return some, weights, pair


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_worst_neighbour_nearly_attains_the_spread_and_none_passes_it(name, relation):
    """A search that goes on from the worst found so far, by changing one of its records."""
    query, rng, largest, best = QUERIES[name], np.random.default_rng(6), 0.0, None
    one = {}

    def of(x, y):
        key = (*x, y)
        if key not in one:
            one[key] = query.of(Records(np.array([x]), np.array([y])))
        return one[key]

    for turn in range(4000):
        some, weights, pair = neighbours(rng)
        if best is not None and turn % 8:
            old, old_weights, old_pair = best
            if turn % 2:
                pair = old_pair
            else:
                some, weights = old, old_weights
        rest = sum(int(w) * of(x, y) for w, x, y in zip(weights, some.x, some.y, strict=True))
        a, b = (of(x, y) for x, y in zip(pair.x, pair.y, strict=True))
        moved = query.scores(rest + a) - query.scores(rest if relation == "add-remove" else rest + b)
        apart = float(np.ptp(moved))
        if apart >= largest:
            largest, best = apart, (some, weights, pair)
    assert 0.95 * query.spread(relation) <= largest <= query.spread(relation)


def test_sign_scores_are_the_sums_of_signs_and_zero_counts_as_zero():
    x = np.array([[1.0, -2.0, 0.0, 5.0], [3.0, 1.0, 0.0, -5.0]])
    query = SignScores(np.zeros(4), BINS, np.array([[1.0], [1.0], [1.0]]))
    assert query.of(Records(x, np.zeros(2))).tolist() == [[2 * UNITS, 0, 0, 0]]


def test_the_selected_columns_are_all_that_is_seen():
    rng = np.random.default_rng(1)
    records = corners(rng, 20)
    some = OnColumns(SignScores(np.zeros(2), BINS, TABLE), np.array([3, 0]))
    assert np.array_equal(some.of(records), QUERIES["signs"].of(records)[:, [3, 0]])


def test_the_score_nearest_to_a_quantile_is_the_quantile():
    y = np.arange(100.0)
    edges = np.arange(0.5, 99.5)
    query = QuantileScores(Bins(edges), 3, 4)
    best = edges[query.scores(query.of(Records(np.zeros((100, 1)), y))).argmax()]
    assert best == 74.5


def test_kernel_scores_are_the_diagonal_of_the_kernel():
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-1, 1, (300, 4)), rng.choice([-1.0, 0.0, 1.0], 300)
    kernel = sum((y == v).sum() * x[y == v].mean(axis=0) ** 2 for v in (-1.0, 0.0, 1.0))
    query = QUERIES["kernel"]
    assert np.allclose(query.scores(query.of(Records(x, y))) / 2**14, kernel, rtol=1e-3, atol=0.02)


@pytest.mark.parametrize("probabilities", [[0.1, 0.6, 0.3], [0.0, 1.0, 0.0], [0.2] * 5, [0.97, 0.01, 0.02]])
def test_contrasts_are_bounded_and_have_mean_zero(probabilities):
    share = np.array(probabilities)
    for table in (cut_scores(share), class_contrasts(share)):
        assert np.abs(table).max() <= 1.0
        assert np.abs(share @ table).max() < 1e-12


def test_a_table_of_zeros_asks_nothing_and_still_has_positive_bounds():
    query = SignScores(np.zeros(4), BINS, np.zeros((3, 1)))
    assert query.norm > 0 and query.peak("replace") > 0
    assert not query.of(corners(np.random.default_rng(3), 9)).any()
