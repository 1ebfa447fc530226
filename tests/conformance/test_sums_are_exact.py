"""Sums are integers, exact, and the same in whatever way the records are cut, ordered or spread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sfumato.bounds import Bounds
from sfumato.records import Records, Response
from sfumato.settings.central import Central
from sfumato.sources import ArraySource, chunk_rows
from sfumato.statistics.whitening import Whitening

WIDTHS = (1, 2, 3, 5, 8, 17, 33, 100)


def rows(records, which):
    return Records(records.x[which], records.y[which])


def test_merging_chunks_equals_pooling_bit_for_bit(case):
    rng = np.random.default_rng(0)
    query, records = case.query, case.records(rng, 400)
    pooled = query.of(records)
    for n_cuts in (1, 7, 399):
        cuts = np.sort(rng.choice(np.arange(1, 400), n_cuts, replace=False))
        chunks = np.split(rng.permutation(400), cuts)
        assert np.array_equal(sum(query.of(rows(records, chunk)) for chunk in chunks), pooled)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_a_bit(case, threads):
    rng = np.random.default_rng(1)
    records = case.records(rng, chunk_rows(case.p) + 500)
    pieces = [rows(records, slice(i, i + 900)) for i in range(0, len(records), 900)]
    with ThreadPoolExecutor(threads) as pool:
        summed = sum(pool.map(case.query.of, pieces))
    source = ArraySource(records.x, records.y, Response())
    assert len(source.parts()) == 2
    assert np.array_equal(summed, Central(source, threads=threads).sum(case.query))


def test_a_second_pass_over_the_same_records_gives_the_same_sum(case):
    records = case.records(np.random.default_rng(2), 50)
    query = case.query
    first = query.of(records)
    assert np.array_equal(first, query.of(records))
    assert np.array_equal(first, case.build(case.p).of(records))  # equal query, another object: nothing stale is reused


@pytest.mark.parametrize("p", WIDTHS)
def test_a_contribution_depends_on_neither_neighbours_nor_position(case, p):
    rng = np.random.default_rng(p)
    query, n = case.build(p), 40
    records = case.records(rng, n, p)
    alone = [query.of(rows(records, [i])) for i in range(n)]
    assert np.array_equal(query.of(records), sum(alone))
    for i in (0, 1, n // 2, n - 1):
        without = query.of(rows(records, np.delete(np.arange(n), i)))
        assert np.array_equal(query.of(records) - without, alone[i])


def test_the_layout_of_memory_does_not_change_a_bit(case):
    records = case.records(np.random.default_rng(5), 64, p=17)
    query = case.build(17)
    expected = query.of(records)
    wide = np.zeros((64, 40))
    wide[:, 1:35:2] = records.x
    for x in (np.asfortranarray(records.x), wide[:, 1:35:2], records.x[::-1][::-1]):
        assert np.array_equal(query.of(Records(x, records.y)), expected)


def test_records_are_left_untouched(case):
    records = case.records(np.random.default_rng(6), 30)
    x, y = records.x.copy(), records.y.copy()
    records.x.flags.writeable = records.y.flags.writeable = False
    case.query.of(records)
    assert np.array_equal(records.x, x) and np.array_equal(records.y, y)


def test_sums_are_integers_of_the_stated_shape(case):
    query, records = case.query, case.records(np.random.default_rng(7), 10)
    total = query.of(records)
    assert total.dtype == np.int64 and total.shape == query.shape
    for public in (query.weights, query.grid):
        assert np.broadcast_to(public, query.shape).shape == query.shape
        assert np.isfinite(public).all() and (public > 0).all()
    assert query.describe and "\n" not in query.describe


def test_no_records_sum_to_zero(case):
    empty = case.records(np.random.default_rng(8), 0)
    assert not case.query.of(empty).any()


@pytest.mark.parametrize("p", [1, 2, 3, 15, 16, 127, 128, 1024, 2000])
def test_the_largest_chunk_of_the_heaviest_record_sums_exactly(case, p):
    """Entries times rows stay below 2**53, so that float64 adds them exactly; and so it does."""
    query, most = case.build(p), chunk_rows(p)
    largest = (query.norm / query.weights).max()
    assert largest * most < 2.0**53
    if p in (3, 128) or (p == 1024 and np.prod(query.shape) < 10_000):
        # The heaviest of a few records, in a full chunk: odd entries would lose their last bit beyond 2**53.
        records = case.records(np.random.default_rng(p), 8, p)
        single = max((query.of(rows(records, [i])) for i in range(8)), key=lambda v: np.abs(v).max())
        heaviest = next(i for i in range(8) if np.array_equal(query.of(rows(records, [i])), single))
        copies = Records(np.repeat(records.x[[heaviest]], most, axis=0), np.repeat(records.y[[heaviest]], most))
        assert np.array_equal(query.of(copies), most * single)


@pytest.mark.parametrize("p", [1, 3, 17, 200])
def test_records_are_whitened_by_integers(p):
    """A float matrix would round differently in chunks of different shapes; so rarely that no search would see it."""
    matrix = np.random.default_rng(p).normal(size=(p, p)) * np.pi
    integers = Whitening(Bounds(-1.0, 1.0).grid(p), matrix, np.zeros(p), 3.0).integer_matrix
    assert np.array_equal(integers, np.rint(integers)) and np.abs(integers).max() > 2**16


def test_whitened_products_stay_below_two_to_the_53_for_every_width():
    for p in range(1, 2001):
        grid = Bounds(-1.0, 1.0).grid(p)
        assert p * 4**grid.bits < 2**53  # squared length of a record on the grid
        row = Whitening(grid, np.ones((1, p)), np.zeros(p), 3.0 * np.sqrt(p))  # the heaviest row a map can have
        assert row.integer_matrix.sum() * 2 * 2**grid.bits < 2**53
        assert row.unit >= 1 and row.cap * row.unit < 2**15  # fits the 16 bits the records keep
