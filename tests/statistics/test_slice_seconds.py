"""Second moments by slice: the plain statistic where nothing is clipped, and nothing of one slice in another."""

import numpy as np

from sfumato.bounds import Bounds
from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.statistics.slices import SlicedMoments, SliceSecondMoments
from sfumato.statistics.whitening import Whitening

P, EDGES = 3, np.array([-0.5, 0.5])


def query():
    whitening = Whitening(Bounds(-2.0, 2.0).grid(P), np.eye(P), np.zeros(P), cap=4.0)
    return SliceSecondMoments(whitening, Bins(EDGES), np.arange(3), 3)


def records(n=400):
    rng = np.random.default_rng(0)
    return Records(rng.uniform(-1, 1, size=(n, P)), rng.normal(size=n))


def test_unclipped_records_give_sums_and_second_moments_of_each_slice():
    data, asked = records(), query()
    found = asked.of(data) * asked.grid
    for h in range(3):
        u = data.x[np.digitize(data.y, EDGES) == h] / 2.0
        plain = np.concatenate([u.sum(axis=0), (u.T @ u)[np.triu_indices(P)]])
        assert np.abs(found[h] - plain).max() < len(u) / asked.whitening.unit


def test_a_record_touches_one_slice_only():
    data, asked = records(20), query()
    for i in range(20):
        rows = asked.of(Records(data.x[[i]], data.y[[i]]))
        assert (np.abs(rows).sum(axis=1) > 0).sum() == 1


def test_summed_over_slices_it_is_the_total_that_the_other_query_releases():
    data, asked = records(), query()
    other = SlicedMoments(asked.whitening, asked.bins, asked.slice_of, 3)
    assert np.array_equal(asked.of(data)[:, P:].sum(axis=0), other.of(data)[3 * P :])
