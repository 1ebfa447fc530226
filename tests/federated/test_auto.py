"""``method="auto"`` of a federation is chosen at the noise its sites really add, from public numbers alone."""

import numpy as np
import pytest

from sfumato import Bounds, PrivateSIR, subspace_distance
from sfumato.federated import simulate
from sfumato.federated.task import federated_task
from sfumato.records import Response
from sfumato.settings.federated import SiteFacts

pytestmark = pytest.mark.judged
BOX = Bounds(-3, 3)


def facts(sites, n, p=5):
    return {f"site {i}": SiteFacts(p, n, Response()) for i in range(sites)}


def chosen(epsilon, sites, n, noises=None, relation="replace"):
    estimator = PrivateSIR(epsilon, 1e-6, 1, BOX, relation=relation)
    return federated_task(estimator, facts(sites, n), relation, noises).method


def test_noise_that_adds_up_over_sites_changes_the_choice():
    assert chosen(0.5, 1, 1_500) == "descent"
    assert chosen(0.5, 10, 150) == "one-shot"  # the same records, ten times the variance
    assert chosen(0.5, 10, 150, noises=10 / 9) == "descent"  # secure aggregation: shares of the noise


def test_a_method_asked_for_is_kept():
    for method in ("descent", "one-shot"):
        estimator = PrivateSIR(0.5, 1e-6, 1, BOX, method)
        assert federated_task(estimator, facts(5, 400), "replace").method == method


def test_a_private_number_of_records_decides_nothing_at_sites_either():
    hidden = {name: SiteFacts(5, None, Response()) for name in facts(5, 1)}
    estimator = PrivateSIR(0.5, 1e-6, 1, BOX, relation="add-remove")
    assert federated_task(estimator, hidden, "add-remove").method == "descent"


def mean_loss(method, sites, n, p, epsilon, replications=16):
    losses = []
    for seed in range(replications):
        rng = np.random.default_rng([3, seed])
        x = rng.standard_normal((sites * n, p))
        y = x[:, 0] + rng.standard_normal(sites * n)
        parts = [(x[i::sites], y[i::sites]) for i in range(sites)]
        fitted = simulate(PrivateSIR(epsilon, 1e-6, 1, BOX, method, random_state=seed), parts)
        losses.append(subspace_distance(fitted.directions_, np.eye(1, p)))
    return np.mean(losses)


@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize(("sites", "n", "better"), [(10, 150, "one-shot"), (5, 2_000, "descent")])
def test_auto_at_sites_is_the_method_that_measures_better(sites, n, better):
    losses = {method: mean_loss(method, sites, n, 5, 0.5) for method in ("descent", "one-shot")}
    assert chosen(0.5, sites, n) == better == min(losses, key=losses.get)
