"""``method="auto"`` takes what measures better, knows only public numbers, and decides in no time."""

import numpy as np
import pytest
from tests.clock import quickest

from sfumato import Bounds, PrivatePCA, PrivateSIR, subspace_distance
from sfumato.forecast import forecast
from sfumato.forecast.prospect import _choose

pytestmark = pytest.mark.judged
BOX = Bounds(-3, 3)


def mean_loss(method, n, p, epsilon, replications):
    losses = []
    for seed in range(replications):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, p))
        y = x[:, 0] + rng.standard_normal(n)
        fitted = PrivateSIR(epsilon, 1e-6, 1, BOX, method, random_state=seed).fit(x, y)
        losses.append(subspace_distance(fitted.directions_, np.eye(1, p)))
    return np.mean(losses)


@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize(("n", "p", "epsilon", "better"), [(300, 5, 1.0, "one-shot"), (3_000, 8, 1.0, "descent")])
def test_auto_is_the_method_that_measures_better(n, p, epsilon, better):
    assert PrivateSIR(epsilon, 1e-6, 1, BOX).explain(n, p).fit.method == better
    losses = {method: mean_loss(method, n, p, epsilon, 24) for method in ("descent", "one-shot")}
    assert min(losses, key=losses.get) == better


@pytest.mark.parametrize("epsilon", [0.25, 1.0])
@pytest.mark.parametrize(("n", "p"), [(20_000, 15), (20_000, 30), (40_000, 15), (40_000, 30), (50_000, 10)])
def test_auto_is_the_descent_on_every_row_of_table_1(n, p, epsilon):
    for k in (1, 2):
        assert PrivateSIR(epsilon, n**-1.1, k, Bounds(-1.5, 1.5)).explain(n, p).fit.method == "descent"


def test_a_private_number_of_records_decides_nothing():
    few, many = (PrivateSIR(relation="add-remove", bounds=BOX).explain(n, 5) for n in (30, 300_000))
    assert few.plan == many.plan and few.fit.method == "descent"


@pytest.mark.parametrize("estimator", [PrivateSIR(0.2, bounds=BOX), PrivatePCA(1, 0.2, bounds=BOX)])
def test_a_fit_makes_the_same_releases_whatever_the_private_number_of_records(estimator):
    releases = []
    for n in (40, 400, 20_000):
        x = np.random.default_rng(n).standard_normal((n, 6))
        fitted = estimator.set_params(relation="add-remove").fit(x, x[:, 0])
        releases.append([(entry.purpose, entry.event) for entry in fitted.ledger_])
    assert releases[0] == releases[1] == releases[2]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("p", [3, 10, 30])
def test_over_all_numbers_of_records_the_descent_loses_less(p, epsilon):
    explanation = PrivateSIR(epsilon, 1e-6, 1, BOX, relation="add-remove").explain(1_000, p)
    prospect, options = explanation.prospect, {"relation": "add-remove", "draws": 4}
    descent, one_shot = (
        [forecast(fit, explanation.budget, n, prospect.population, **options).loss for n in np.geomspace(30, 3e5, 9)]
        for _, fit in prospect.fits
    )
    assert np.log(descent).mean() < np.log(one_shot).mean() - 0.02
    assert prospect.best(explanation.budget, None, "add-remove") == "descent"


def test_the_choice_takes_milliseconds():
    assert quickest(lambda i: PrivateSIR(bounds=BOX).explain(700 + i, 20), 0.3)[0] < 0.3  # 70 ms on an idle machine
    assert PrivateSIR(bounds=BOX).explain(20_000, 500).recommended == "descent"  # too wide for a forecast


def test_a_choice_is_made_once_for_the_same_public_numbers():
    for bounds in (BOX, None, {0: (0, 1)}):
        before = _choose.cache_info()
        choices = [PrivateSIR(bounds=bounds).explain(5_123, 4).fit.method for _ in range(2)]
        after = _choose.cache_info()
        assert choices[0] == choices[1]
        assert after.misses - before.misses <= 1 <= after.hits - before.hits


def test_classes_have_a_recommendation_too():
    explanation = PrivateSIR(bounds=BOX, classes=[0, 1, 2]).explain(20_000, 8)
    assert explanation.recommended == "descent"
