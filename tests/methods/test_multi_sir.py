"""Several responses at once: cells of ranks, all their combinations at the price of one."""

import numpy as np
import pytest

from sfumato import Bounds, InputError, PrivateMultiSIR, PrivateSIR, scan, subspace_distance
from sfumato.methods.multi_sir import WEIGHTS, MultiTask, combinations, pieces_of
from sfumato.privacy.asking import drive
from sfumato.records import Records, Response
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.statistics.parts import Cells, OnCells
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.cells import project
from sfumato.steps.descent import cosines

N, P, BOX = 20_000, 4, Bounds(-5.0, 5.0)


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(3).normal(size=(N, P))


@pytest.fixture(scope="module")
def together(x):
    """Two responses, each of which is noise by itself; the second coordinate of x says how they go together."""
    noise, r = np.random.default_rng(4).normal(size=(N, 2)), np.tanh(2.0 * x[:, 1])
    return np.column_stack([noise[:, 0], r * noise[:, 0] + np.sqrt(1.0 - r**2) * noise[:, 1]])


def projective_resampling(x, y, ways, slices=10):
    """The estimator of Li, Wen and Zhu by hand: the mean over combinations of y of SIR's kernel."""
    values, vectors = np.linalg.eigh(np.cov(x.T))
    root = (vectors / np.sqrt(values)) @ vectors.T
    z, kernel = (x - x.mean(axis=0)) @ root, np.zeros((x.shape[1],) * 2)
    for way in ways:
        for members in np.array_split(np.argsort(y @ way), slices):
            kernel += len(members) / len(x) * np.outer(z[members].mean(axis=0), z[members].mean(axis=0))
    return root @ np.linalg.eigh(kernel)[1][:, ::-1]


def test_without_noise_it_is_projective_resampling(x, together, silent):
    task = MultiTask(P, N, Response(), 1, BOX)
    found = drive(task.run(), silent(np.hstack([x, together]), np.zeros(N), task.plan().lines))
    ways = np.random.default_rng(5).normal(size=(50, 2))
    expected = projective_resampling(x, together, ways / np.linalg.norm(ways, axis=1, keepdims=True))
    places = np.stack([pieces_of(one, 12) for one in together.T], axis=1)
    plain = task.plain_directions(Records(x, np.zeros(N)), np.ones(N), places, 1)
    assert subspace_distance(plain, expected[:, :1].T) < 0.02
    # The descent clips long residuals: another estimator of the same direction, with a sampling error of its own.
    assert subspace_distance(found.directions, expected[:, :1].T) < 0.1


def test_what_no_response_shows_by_itself_is_found_in_both(x, together):
    fitted = PrivateMultiSIR(n_directions=1, bounds=BOX).fit(x, together)
    assert abs(fitted.directions_[0, 1]) > 0.98
    for alone in together.T:
        assert PrivateSIR(bounds=BOX).fit(x, alone).choice_.announced == 0


def test_each_response_may_have_a_direction_of_its_own(x):
    y = x[:, [2, 0]] ** 3 + np.random.default_rng(6).normal(size=(N, 2))
    fitted = PrivateMultiSIR(bounds=BOX).fit(x, y)
    assert fitted.directions_.shape == (2, P)
    assert subspace_distance(fitted.directions_, np.eye(P)[[0, 2]]) < 0.1


def test_the_first_response_rises_along_the_first_direction(x):
    noise = np.random.default_rng(7).normal(size=(N, 2))
    for sign in (1.0, -1.0):
        y = np.column_stack([sign * x[:, 3], -sign * x[:, 3]]) + 0.5 * noise
        assert sign * PrivateMultiSIR(n_directions=1, bounds=BOX).fit(x, y).directions_[0, 3] > 0.98


def test_scale_shift_and_order_of_magnitude_of_a_response_do_not_matter(x):
    y = x[:, :2] + 0.5 * np.random.default_rng(8).normal(size=(N, 2))
    fitted = PrivateMultiSIR(n_directions=2, bounds=BOX).fit(x, y * [1e-6, 1e9] + [0.0, 7e9])
    assert subspace_distance(fitted.directions_, np.eye(2, P)) < 0.1


def test_a_cell_is_a_digit_of_each_response():
    edges = [np.array([-1.0, 0.0, 1.0]), np.array([0.5])]
    cells = Cells.cut(edges)
    rng = np.random.default_rng(9)
    y = rng.normal(size=(500, 2))
    count = ResponseHistogram(Bins(np.empty(0), categories=8))
    found = OnCells(count, cells).of(Records(np.hstack([y[:, :1], y]), np.zeros(500)))
    pieces = np.stack([np.digitize(y[:, 0], edges[0]), np.digitize(y[:, 1], edges[1])], axis=1)
    for cell, place in enumerate(cells.places):
        assert found[cell] == (pieces == place).all(axis=1).sum()


def test_records_are_whitened_once_however_often_their_cells_are_asked_about(monkeypatch):
    """And what is kept of records with a cell for a response is not taken for what they are as they stand."""
    x = np.random.default_rng(11).normal(size=(50, 3))
    records, whitening = Records(x, np.zeros(50)), Whitening(BOX.grid(2), np.eye(2), np.zeros(2), 3.0)
    bins, compute, whitened = Bins(np.empty(0), categories=4), Whitening._compute, []
    monkeypatch.setattr(Whitening, "_compute", lambda *given: whitened.append(1) or compute(*given))
    halves, quarters = Cells.cut([np.zeros(1)]), Cells.cut([np.array([-0.7, 0.0, 0.7])])
    asked = SlicedMoments(whitening, bins, np.arange(4), 4)
    for cells, edges in ((halves, [0.0]), (quarters, [-0.7, 0.0, 0.7])) * 3:
        plain = asked.of(Records(x[:, :2], np.digitize(x[:, 2], edges)))
        np.testing.assert_array_equal(OnCells(asked, cells).of(records), plain)
    assert len(whitened) == 6 + 2  # of six tables that are new each time, and once in each of two views


def test_many_combinations_are_no_longer_than_one():
    """So that they need no more noise than one: the sensitivity of a step is tied to the length of a record's f(y)."""
    places, shares = Cells.cut([np.zeros(5), np.zeros(5)]).places, np.full(36, 1 / 36)
    one = cosines(np.full(6, 1 / 6), WEIGHTS)
    for count in (2, 30):
        ways = np.random.default_rng(10).normal(size=(count, 2))
        table = project(places, shares, ways / np.linalg.norm(ways, axis=1, keepdims=True), WEIGHTS)
        assert shares @ (table**2).sum(axis=1) <= (WEIGHTS**2).sum() * (1 + 1e-12)
        assert (table**2).sum(axis=1).max() < 2.0 * (one**2).sum(axis=1).max()


@pytest.mark.parametrize("q", [1, 2, 3, 7])
def test_combinations_have_length_one_and_name_every_response(q):
    ways = combinations(q)
    np.testing.assert_allclose(np.linalg.norm(ways, axis=1), 1.0)
    assert np.linalg.matrix_rank(ways) == q


def test_responses_that_are_all_equal_have_an_answer_all_the_same(x):
    fitted = PrivateMultiSIR(n_directions=2, bounds=BOX).fit(x, np.ones((N, 3)))
    assert fitted.directions_.shape == (2, P) and np.isfinite(fitted.directions_).all()
    assert PrivateMultiSIR(bounds=BOX).fit(x[:500], np.arange(500.0)).directions_.shape[1] == P


def test_a_mistake_is_one_sentence_before_anything_is_spent(x):
    with pytest.raises(InputError, match="at most 7: leave some out, or use PrivateCCA"):
        PrivateMultiSIR(bounds=BOX).fit(x[:50], np.zeros((50, 8)))
    with pytest.raises(InputError, match="takes at most 7"):
        PrivateMultiSIR(bounds=BOX).explain(1_000, 4, 0)
    with pytest.raises(InputError, match="requires y to be passed"):
        PrivateMultiSIR(bounds=BOX).fit(x[:50])
    with pytest.raises(InputError, match="y has missing or infinite values"):
        PrivateMultiSIR(bounds=BOX).fit(x[:50], np.full((50, 2), np.nan))


def test_a_file_is_fitted_as_the_table_is(x, together, tmp_path):
    import pandas as pd

    table = pd.DataFrame(np.hstack([x, together])[:2_000], columns=[*"abcd", "high", "wide"])
    table.to_parquet(tmp_path / "t.parquet")
    source = scan(tmp_path / "t.parquet", second=["high", "wide"])
    fits = [PrivateMultiSIR(n_directions=1, bounds=BOX, random_state=1) for _ in range(2)]
    with pytest.warns(match="random_state is set"):
        one = fits[0].fit(source)
    with pytest.warns(match="random_state is set"):
        other = fits[1].fit(table[[*"abcd"]], table[["high", "wide"]])
    np.testing.assert_array_equal(one.directions_, other.directions_)
    assert one.y_feature_names_in_.tolist() == other.y_feature_names_in_.tolist() == ["high", "wide"]


@pytest.mark.judged
def test_a_clear_direction_is_reliable(x, together):
    assert PrivateMultiSIR(n_directions=1, bounds=BOX).fit(x, together).verdict_.level == "reliable"


def test_no_direction_is_announced_where_there_is_none(x, together):
    shuffled = np.random.default_rng(11).permutation(together)
    assert PrivateMultiSIR(bounds=BOX).fit(x, shuffled).choice_.announced == 0


@pytest.mark.judged
def test_a_forecast_is_met():
    sir, rng = PrivateMultiSIR(n_directions=2, bounds=BOX), np.random.default_rng(12)
    losses = []
    for z in rng.normal(size=(12, 5_000, P)):
        y = np.sqrt(0.5) * (z[:, :2] + rng.normal(size=(5_000, 2)))  # each explains half of a response
        losses.append(subspace_distance(sir.fit(z, y).directions_, np.eye(2, P)))
    assert sir.explain(5_000, P, 2).forecast(0.5).loss == pytest.approx(np.mean(losses), rel=0.5)
