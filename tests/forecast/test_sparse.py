"""Sparse fits have forecasts: what the picks let through under their known noise, then the fit on it."""

import numpy as np
import pytest
from tests.clock import quickest

from sfumato import Bounds, PrivateSparsePCA, PrivateSparseSIR, subspace_distance
from sfumato.forecast import forecast
from sfumato.forecast.populations import missed_distance
from sfumato.methods.sparse_pca import SparseComponent
from sfumato.methods.sparse_sir import ACTIVE, FewActiveFeatures

pytestmark = pytest.mark.filterwarnings("ignore:random_state")


def expected(estimator, n, p, signal, draws=16):
    explanation = estimator.explain(n, p)
    return forecast(explanation.fit, explanation.budget, n, explanation.prospect.explaining(signal), draws=draws)


def test_the_forecast_of_a_screened_fit_is_the_measured_mean():
    n, p, signal, losses = 10_000, 300, 0.5, []
    true = np.repeat([1.0, 0.0], [ACTIVE, p - ACTIVE])
    estimator = PrivateSparseSIR(1.0, 1e-6, 1, Bounds(-4, 4))
    for seed in range(8):
        rng = np.random.default_rng([41, seed])
        x = rng.standard_normal((n, p))
        y = np.sqrt(signal / ACTIVE) * x @ true + np.sqrt(1 - signal) * rng.standard_normal(n)
        losses.append(subspace_distance(estimator.set_params(random_state=seed).fit(x, y).directions_, true))
    assert 0.6 < expected(estimator, n, p, signal).loss / np.mean(losses) < 1.67  # means of 8: 20 % each


def test_the_forecast_of_a_sparse_component_is_the_measured_mean():
    n, p, signal, losses = 10_000, 200, 0.5, []
    true = np.repeat([1.0, 0.0], [6, p - 6])
    estimator = PrivateSparsePCA(1, 1.0, 1e-6, Bounds(-20, 20))
    for seed in range(8):
        rng = np.random.default_rng([42, seed])
        x = rng.standard_normal((n, p)) + np.outer(rng.standard_normal(n), true)
        losses.append(subspace_distance(estimator.set_params(random_state=seed).fit(x).directions_, true))
    assert 0.75 < expected(estimator, n, p, signal).loss / np.mean(losses) < 1.33


@pytest.mark.parametrize("estimator", [PrivateSparseSIR(1.0, 1e-6, 1), PrivateSparsePCA(1)])
def test_with_few_records_nothing_is_found_and_with_many_almost_all(estimator):
    few, many = (expected(estimator, n, 2_000, 0.5) for n in (300, 50_000))
    assert few.loss > 0.8 * few.useless and many.loss < 0.1
    assert many.loss > 0.8 * many.plain  # with so many records privacy costs next to nothing, and gains nothing


@pytest.mark.parametrize("estimator", [PrivateSparseSIR(), PrivateSparsePCA(2, max_features=20)])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_explain_prints_expectations_in_two_seconds_and_needs_no_data(estimator, relation):
    estimator.set_params(relation=relation)
    seconds, text = quickest(lambda i: str(estimator.explain(3_000 + i, 5_000)), 2.0)
    assert seconds < 2.0
    assert "expected loss" in text and "least expected loss at this size: screen" in text


def test_what_was_missed_counts_and_what_was_seen_counts_with_its_own_error():
    assert missed_distance(3, 3, 0.2) == 0.2
    assert missed_distance(1, 2, 0.0) == pytest.approx(1.0)
    assert missed_distance(1, 2, 0.3) > 1.0 and missed_distance(0, 3, 0.0) == pytest.approx(np.sqrt(2))


def test_too_few_or_too_many_features_have_no_quick_forecast():
    assert FewActiveFeatures(4).quick and not FewActiveFeatures(3).quick and not FewActiveFeatures(10**6).quick
    assert SparseComponent(50, picks=8).quick and not SparseComponent(4, picks=4).quick
    assert not PrivateSparsePCA(1).explain(1_000, 5).has_forecast
