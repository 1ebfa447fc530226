"""Predictions from the picture alone: what was paid for tells what y to expect."""

import numpy as np
import pytest

from sfumato import Bounds, PrivateSIR, PrivateSparseSIR
from sfumato.errors import InputError
from sfumato.model import load_model, save_model

N = 20_000
BOX = Bounds(-4.0, 4.0)


def drawn(n, seed):
    """y = index + index^2 / 2, skewed noise; what is to be expected of it is known."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(n, 5)), -4.0, 4.0)
    index = x @ [0.6, 0.8, 0.0, 0.0, 0.0]
    expected = 50.0 + 10.0 * (index + 0.5 * index**2)
    return x, expected + 5.0 * (rng.exponential(size=n) - 1.0), expected


@pytest.fixture(scope="module")
def fitted():
    x, y, _ = drawn(N, 0)
    return PrivateSIR(1.0, 1e-6, 1, BOX, picture=True, random_state=0).fit(x, y)


def test_the_mean_of_y_is_predicted_in_its_units(fitted):
    x, _, expected = drawn(5_000, 1)
    error = fitted.predict(x) - expected
    assert np.sqrt((error**2).mean()) < 0.5 * expected.std()  # the outer columns hold few records


def test_the_stated_error_of_a_prediction_is_its_size_where_most_records_are():
    """Root mean square of error over stated error: 1 if they are right; the curve has about ten free values."""
    x, _, expected = drawn(2_000, 1)
    inner = np.abs(x @ [0.6, 0.8, 0.0, 0.0, 0.0]) < 1.5
    ratios = []
    for seed in range(4):
        sample, y, _ = drawn(N, seed + 10)
        sir = PrivateSIR(1.0, 1e-6, 1, BOX, picture=0.2, random_state=seed).fit(sample, y)
        predicted, error = sir.predict(x[inner], return_std=True)
        assert (error > 0).all()
        ratios.append((((predicted - expected[inner]) / error) ** 2).mean())
    assert 0.2 < np.sqrt(np.mean(ratios)) < 2.5


def test_intervals_hold_the_part_of_records_they_promise(fitted):
    x, y, _ = drawn(5_000, 2)
    for coverage in (0.5, 0.9):
        low, high = fitted.predict_interval(x, coverage).T
        assert (low < high).all()
        assert ((low <= y) & (y <= high)).mean() == pytest.approx(coverage, abs=0.07)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_hold_values_that_many_records_share(coverage):
    """Of four values an interval holds whole ones: at least what it promises."""
    rng = np.random.default_rng(5)
    x = np.clip(rng.normal(size=(2 * N, 5)), -4.0, 4.0)
    y = np.round(np.clip(x[:, 0] + rng.normal(size=2 * N), -1.0, 2.0))
    sir = PrivateSIR(1.0, 1e-6, 1, BOX, picture=True, random_state=0).fit(x[:N], y[:N])
    low, high = sir.predict_interval(x[N:], coverage).T
    assert ((low <= y[N:]) & (y[N:] <= high)).mean() > coverage - 0.02


def test_of_a_response_whose_size_does_not_show_nothing_is_promised():
    x, _, _ = drawn(100, 6)
    sir = PrivateSIR(1.0, 1e-6, 1, BOX, picture=True, random_state=0).fit(x, np.linspace(5.0, 9.0, 100))
    assert np.ptp(sir.picture_.response_cuts) == 0.0  # too few records
    assert np.isinf(sir.predict_interval(x)).all() and np.isinf(sir.predict(x, return_std=True)[1]).all()


def test_class_shares_follow_the_direction():
    rng = np.random.default_rng(3)
    x = np.clip(rng.normal(size=(N, 4)), -4.0, 4.0)
    share = 1.0 / (1.0 + np.exp(-2.0 * x[:, 0]))
    y = np.where(rng.random(N) < share, "yes", "no")
    sir = PrivateSIR(1.0, 1e-6, 1, BOX, classes=["no", "yes"], picture=True, random_state=0).fit(x, y)
    shares = sir.predict_proba(x)
    assert shares.shape == (N, 2) and np.allclose(shares.sum(axis=1), 1.0)
    assert np.abs(shares[:, 1] - share).mean() < 0.06
    best = ((share > 0.5) == (y == "yes")).mean()
    assert (sir.predict(x) == y).mean() > best - 0.02
    assert not hasattr(sir, "predict_interval")


@pytest.mark.parametrize("classes", [["no", "maybe", "yes"], [*"abcdefghijklmnopqrst", "no", "yes"]])
def test_classes_that_the_picture_does_not_show_apart_are_not_predicted(classes):
    """One that nobody has, or more of them than the picture has groups."""
    rng = np.random.default_rng(3)
    x = np.clip(rng.normal(size=(4_000, 4)), -4.0, 4.0)
    y = np.where(x[:, 0] > 0, "yes", "no")
    sir = PrivateSIR(2.0, 1e-6, 1, BOX, classes=classes, picture=0.2, random_state=0).fit(x, y)
    assert (sir.predict(x) == np.asarray(classes)[sir.predict_proba(x).argmax(axis=1)]).all()
    assert (sir.predict(x) == y).mean() > 0.8


def test_where_nothing_is_to_be_seen_the_overall_mean_is_predicted():
    """Of seed 2 noise finds a bin of the response that reaches to 10**11."""
    rng = np.random.default_rng(4)
    x, y = np.clip(rng.normal(size=(3_000, 4)), -4.0, 4.0), rng.exponential(size=3_000)
    off = []
    for seed in range(8):
        sir = PrivateSIR(1.0, 1e-6, 1, BOX, picture=True, random_state=seed).fit(x, y)
        predicted, error = sir.predict(x, return_std=True)
        assert np.isfinite(error).all() and np.abs(sir.predict_interval(x)).max() < 20.0
        off.append(((predicted - 1.0) ** 2).mean())
    assert np.sqrt(np.mean(off)) < 0.35


def test_without_a_picture_one_sentence_says_so():
    x, y, _ = drawn(2_000, 0)
    sir = PrivateSIR(1.0, 1e-6, 1, BOX, random_state=0).fit(x, y)
    assert not hasattr(sir, "predict")
    with pytest.raises(AttributeError) as refused:
        sir.predict(x)
    assert isinstance(refused.value.__cause__, InputError)
    assert "fit again with picture=True" in str(refused.value.__cause__)


def test_predictions_survive_a_model_file(fitted, tmp_path):
    save_model(fitted, tmp_path / "model.json")
    x, _, _ = drawn(100, 5)
    again = load_model(tmp_path / "model.json")
    assert again.predict(x) == pytest.approx(fitted.predict(x))
    assert again.predict_interval(x) == pytest.approx(fitted.predict_interval(x))


def test_predicting_reads_no_more_than_the_picture(fitted):
    x, _, _ = drawn(100, 6)
    spent = fitted.ledger_.total()
    fitted.predict(x)
    fitted.predict_interval(x)
    assert fitted.ledger_.total() == spent


def test_sparse_fits_predict_from_the_columns_they_kept():
    rng = np.random.default_rng(7)
    x = np.clip(rng.normal(size=(4_000, 200)), -4.0, 4.0)
    y = 3.0 * x[:, 5] + rng.normal(size=4_000)
    sir = PrivateSparseSIR(4.0, 1e-5, 1, BOX, picture=True, random_state=0).fit(x, y)
    assert np.corrcoef(sir.predict(x), 3.0 * x[:, 5])[0, 1] > 0.9


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1, 2])
def test_a_coverage_that_is_no_probability_is_refused(fitted, coverage):
    with pytest.raises(InputError, match="coverage must be between 0 and 1"):
        fitted.predict_interval(np.zeros((2, 5)), coverage)
