"""A forecast predicts what fits measure, without data and quickly."""

import math

import numpy as np
import pytest
from tests.clock import quickest

from sfumato import Bounds, LabelPrivateSIR, PrivateSIR, limits, subspace_distance
from sfumato.errors import InputError
from sfumato.forecast import IndexResponse, forecast, records_needed
from sfumato.forecast.loss import label_loss
from sfumato.forecast.populations import random_distance

LOWEST = 0.67
"""A bound is a root mean square, a forecast the mean of some draws: lower, by a third where p is small."""


def _gaussian(n, p, signal, seed):
    """Independent features within +-3 standard deviations and a response of given R squared."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal((n, p)), -3, 3)
    return x, np.sqrt(signal) * x[:, 0] + np.sqrt(1 - signal) * rng.standard_normal(n)


def foreseen(estimator, n, p, signal, **options):
    explanation = estimator.explain(n, p)
    population = IndexResponse(p, 1, signal)
    return forecast(explanation.fit, explanation.budget, n, population, relation=explanation.relation, **options)


@pytest.mark.parametrize(
    ("n", "p", "epsilon", "signal", "method"),
    [(20_000, 10, 1.0, 0.9, "descent"), (10_000, 20, 0.4, 0.5, "descent"), (20_000, 10, 1.0, 0.5, "one-shot")],
)
def test_the_forecast_is_the_measured_mean(n, p, epsilon, signal, method):
    losses = []
    estimator = PrivateSIR(epsilon, 1e-5, 1, Bounds(-3, 3), method=method)
    for seed in range(10):
        x, y = _gaussian(n, p, signal, seed)
        losses.append(subspace_distance(estimator.set_params(random_state=seed).fit(x, y).directions_, np.eye(1, p)))
    expected = foreseen(estimator, n, p, signal, draws=10)
    assert 0.75 < expected.loss / np.mean(losses) < 1.33


def test_more_of_anything_good_loses_less():
    def loss(epsilon=1.0, n=20_000, p=10, signal=0.5):
        return foreseen(PrivateSIR(epsilon, bounds=Bounds(-1, 1)), n, p, signal, draws=12).loss

    base = loss()
    assert loss(epsilon=0.2) > base > loss(epsilon=5.0)
    assert loss(n=5_000) > base > loss(n=100_000)
    assert loss(p=30) > base > loss(p=4)
    assert loss(signal=0.2) > base > loss(signal=0.9)


def test_with_a_large_budget_only_sampling_error_is_left():
    seen = foreseen(PrivateSIR(1000.0, bounds=Bounds(-1, 1)), 20_000, 10, 0.5)
    assert 0.8 < seen.ratio < 1.25


def test_without_hope_the_forecast_says_random():
    seen = foreseen(PrivateSIR(0.05, bounds=Bounds(-1, 1)), 200, 20, 0.2, draws=20)
    assert 0.8 * seen.useless < seen.loss <= math.sqrt(2)


def test_records_needed_meets_the_target():
    explanation = PrivateSIR(0.5, bounds=Bounds(-1, 1)).explain(1_000, 8)
    needed = explanation.records_for(0.1)
    population = IndexResponse(8, 1, 0.5)
    found = forecast(explanation.fit, explanation.budget, needed, population, draws=2)
    assert found.loss == pytest.approx(0.1, rel=0.1)
    assert records_needed(0.1, lambda n: 1.0) == math.inf
    with pytest.raises(InputError, match="target"):
        records_needed(0.0, lambda n: 1.0)


def test_epsilon_needed_meets_the_target_or_says_that_none_does():
    explanation = PrivateSIR(1.0, bounds=Bounds(-1, 1)).explain(3_000, 8)
    needed = explanation.epsilon_for(0.15)
    at_it = PrivateSIR(needed, bounds=Bounds(-1, 1), method="descent")
    assert foreseen(at_it, 3_000, 8, 0.5, draws=40).loss == pytest.approx(0.15, rel=0.3)
    assert explanation.epsilon_for(0.001) == math.inf  # below what 3,000 records show without privacy
    assert "or with these records epsilon of about" in str(explanation)
    with pytest.raises(InputError, match="target"):
        explanation.epsilon_for(-1.0)


def test_two_directions_have_a_forecast_too():
    seen = PrivateSIR(1.0, n_directions=2, bounds=Bounds(-1, 1)).explain(20_000, 10).forecast(0.9)
    assert 0.01 < seen.loss < 0.5 and seen.useless == random_distance(10, 2)


@pytest.mark.judged
def test_explain_prints_expectations_in_two_seconds_and_needs_no_data():
    seconds, text = quickest(lambda i: str(PrivateSIR(epsilon=1.0).explain(20_000 + i, 15)), 2.0)
    assert seconds < 2.0
    for words in ("expected loss", "without privacy", "records", "randomised labels", "rate of"):
        assert words in text


def test_where_no_direction_can_be_missed_there_is_no_forecast():
    explanation = PrivateSIR(epsilon=1.0).explain(20_000, 1)
    assert not explanation.has_forecast and "expected loss" not in str(explanation)
    with pytest.raises(InputError, match="method must be one of 'descent', 'one-shot'"):
        explanation.prospect.fit("two-shot")


@pytest.mark.parametrize("bounds", [Bounds(-3, 3), "search"], ids=["given", "found"])
@pytest.mark.parametrize(("n", "p"), [(300, 4), (1_000, 4), (1_000, 12)])
def test_small_tables_are_foreseen_with_bounds_and_without(n, p, bounds):
    losses = []
    for seed in range(30):
        x, y = _gaussian(n, p, 0.5, seed)
        fitted = PrivateSIR(1.0, 1e-6, 1, bounds, "descent", random_state=seed).fit(x, y)
        losses.append(subspace_distance(fitted.directions_, np.eye(1, p)))
    told = foreseen(PrivateSIR(1.0, 1e-6, 1, bounds, "descent"), n, p, 0.5, draws=30)
    assert told.loss == pytest.approx(np.mean(losses), rel=0.35)


def test_what_a_search_for_bounds_costs_is_foreseen():
    # So few records of so many features that nothing is looked for inside bounds that are given.
    given, found = (
        foreseen(PrivateSIR(1.0, 1e-6, 1, b, "descent"), 2_000, 30, 0.5, draws=30) for b in (Bounds(-3, 3), "search")
    )
    assert found.loss > 1.05 * given.loss


def test_the_label_loss_is_the_measured_mean_before_refining():
    losses = []
    for seed in range(8):
        x, y = _gaussian(10_000, 8, 0.8, seed)
        fitted = LabelPrivateSIR(1.0, 1, edges=[0.0], refine=False, random_state=seed).fit(x, y)
        losses.append(subspace_distance(fitted.directions_, np.eye(1, 8)))
    assert 0.75 < label_loss(10_000, 8, 1.0, 0.8) / np.mean(losses) < 1.33


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("signal", [0.2, 0.5, 0.9])
def test_no_forecast_for_labels_is_below_what_any_method_can_reach(epsilon, signal):
    assert label_loss(10_000, 12, epsilon, signal) > limits.label_direction(10_000, 12, epsilon, signal).root


def test_a_population_like_a_public_study_has_its_directions():
    x, y = _gaussian(4_000, 5, 0.7, 0)
    mixed = x @ np.tril(np.ones((5, 5))).T
    population = IndexResponse.of(mixed, y, np.linalg.solve(np.tril(np.ones((5, 5))).T, np.eye(5))[:, :1].T)
    index, _, mixing, _ = population.sample
    assert abs(np.corrcoef(index[:, 0], x[:, 0])[0, 1]) > 0.99
    assert np.allclose(mixing @ mixing.T, np.cov(mixed.T, bias=True), atol=0.02)
    assert np.allclose(np.cov(population.points(np.random.default_rng(0)).x.T), np.cov(mixed.T), atol=0.2)
    with pytest.raises(InputError, match="signal"):
        IndexResponse(5, signal=0.0)


@pytest.mark.judged
def test_methods_are_compared_with_the_bounds_below_them():
    pytest.importorskip("matplotlib").use("Agg")
    explanation = PrivateSIR(1.0, bounds=Bounds(-1, 1), method="one-shot").explain(20_000, 10)
    seen = explanation.compare([5_000, 50_000])
    assert explanation.recommended == "descent" == seen.best()
    assert all((curve > LOWEST * seen.bounds["no method without privacy"]).all() for curve in seen.losses.values())
    assert len(seen.rows()) == 2 and len(seen.header()) == len(seen.rows()[0])
    assert len(seen.plot().lines) == len(seen.losses) + len(seen.bounds)


@pytest.mark.parametrize(("along", "falls"), [("n", True), ("epsilon", True), ("p", False)])
def test_losses_fall_with_records_and_epsilon_and_rise_with_features(along, falls):
    pytest.importorskip("matplotlib").use("Agg")
    explanation = PrivateSIR(0.5, bounds=Bounds(-1, 1)).explain(20_000, 10)
    seen = explanation.compare([5, 20, 50] if along == "p" else None, along=along)
    curve = seen.losses["descent"]
    assert (curve[0] > 2 * curve[-1]) if falls else (2 * curve[0] < curve[-1])
    assert all((curve > LOWEST * seen.bounds["no method without privacy"]).all() for curve in seen.losses.values())
    assert explanation.plot(along).get_xlabel() == {"n": "records", "p": "features", "epsilon": "epsilon"}[along]
    with pytest.raises(InputError, match="along"):
        explanation.compare(along="time")


def test_the_terminal_shows_what_to_expect():
    from rich.console import Console

    from sfumato.cli.show import show_forecast

    console = Console(record=True, width=100)
    show_forecast(console, PrivateSIR(1.0).explain(20_000, 5))
    assert "expected loss" in console.export_text()


def test_bounds_to_give_are_said_where_they_are_worth_something_beside_what_epsilon_is_worth():
    few = str(PrivateSIR(1.0, 1e-6, 1).explain(400, 4))
    assert "Give bounds for the 4 features" in few and "at twice the epsilon" in few
    assert "Give bounds" not in str(PrivateSIR(1.0, 1e-6, 1).explain(100_000, 6))
    assert "Give bounds" not in str(PrivateSIR(1.0, 1e-6, 1, Bounds(-3, 3)).explain(400, 4))


def test_a_search_in_vain_is_announced_before_the_fit_refuses_it():
    x, y = _gaussian(300, 4, 0.5, 0)
    assert "`fit` will refuse" in str(PrivateSIR(1.0, 1e-6, 1).explain(300, 4))
    with pytest.raises(InputError, match="too few"):
        PrivateSIR(1.0, 1e-6, 1).fit(x, y)
    assert "will hardly be found" in str(PrivateSIR(1.0, 1e-6, 1, "search").explain(300, 4))


def test_a_table_with_more_features_than_records_is_not_passed_over_in_silence():
    text = str(PrivateSIR(1.0, 1e-6, 1, Bounds(-3, 3)).explain(150, 400))
    assert "More features than records" in text and "PrivateSparseSIR" in text
    assert "No loss is foreseen for more than 100" in str(PrivateSIR(1.0, 1e-6, 1, Bounds(-3, 3)).explain(9_000, 400))
