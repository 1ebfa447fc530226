"""Pursuit of features: what it picks with hardly any noise, and that it ends well whatever the releases are."""

import numpy as np
import pytest

from sfumato.audit.releases import Memory
from sfumato.bounds import Bounds
from sfumato.methods.sparse_sir import PrivateSparseSIR
from sfumato.privacy.asking import drive
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import SeededNoise
from sfumato.privacy.plan import Plan
from sfumato.records import Records
from sfumato.release import Release
from sfumato.statistics.histograms import Bins
from sfumato.steps.pursuit import Pursuit, Rule, centred, functions_of, normal_scores
from sfumato.steps.ranks import Ranks

RULE = Rule()
EIGHTHS = np.full(8, 0.125)


def ranks_of(y):
    return Ranks(Bins(np.quantile(y, np.arange(1, 8) / 8)), EIGHTHS, float(len(y)))


def pursue(x, y, ranks, picks, at_least=1, rho=1e6, rule=RULE):
    """Without noise to speak of."""
    step = Pursuit(picks, 0.5, 0.5, picks, rule)
    plan = Plan.of(step).calibrate(Budget.zcdp(rho))
    door = Curator(Memory(Records(x, y)), plan, Ledger(Budget.zcdp(rho), "replace", rehearsal=True), SeededNoise(1))
    return drive(step.run(np.zeros(x.shape[1]), ranks, float(len(y)), at_least), door)


def test_ten_features_are_found_in_the_order_of_their_effects_and_nothing_else():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6000, 80))
    effects = np.linspace(1.0, 0.5, 10)
    y = x[:, :10] @ effects + 0.5 * rng.standard_normal(6000)
    found = pursue(x, y, ranks_of(y), 13, rule=Rule(least=4.0))
    assert found.kept.tolist() == list(range(10))
    assert np.corrcoef(found.picked[:10], np.arange(10))[0, 1] > 0.9


def test_a_feature_in_the_shadow_of_another_is_left_out_once_that_is_taken_off():
    """0.8 correlated with one that matters and worth nothing by itself: its score falls with every step."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((8000, 30))
    x[:, 1] = 0.8 * x[:, 0] + 0.6 * x[:, 1]
    y = x[:, 0] + 0.5 * x[:, 2] + 0.3 * rng.standard_normal(8000)
    damped, whole = (pursue(x, y, ranks_of(y), 4, rule=Rule(damping=part)) for part in (0.5, 1.0))
    alone = pursue(x, y, ranks_of(y), 4, rule=Rule(damping=0.0))

    def shadow(screen):
        return screen.scores[screen.picked == 1].max(initial=0.0) / screen.scores.max()

    assert shadow(alone) > shadow(damped) > shadow(whole)


def test_a_symmetric_effect_is_found_by_the_even_function():
    rng = np.random.default_rng(2)
    x = rng.exponential(size=(6000, 40)) - np.log(2.0)
    y = np.where(x[:, 3] > 0, 1.0, 0.2) * rng.standard_normal(6000)  # feature 3 moves the spread of y, not its middle
    found = pursue(x, y, ranks_of(y), 10)
    assert 3 in found.kept and found.picked[0] == 3


def test_a_feature_far_from_its_centre_that_does_not_matter_scores_nothing():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6000, 10))
    x[:, 4] += 3.0
    y = x[:, 0] + rng.standard_normal(6000)
    found = pursue(x, y, ranks_of(y), 10)
    assert found.scores[found.picked == 4].max() < 4.0 < 0.2 * found.scores.max()


@pytest.mark.parametrize("scale", [0.67, 0.3, 5.0])
@pytest.mark.parametrize("shares", [[0.02, 0.98], [0.5, 0.5], [0.1, 0.0, 0.6, 0.3], [1.0, 0.0]])
def test_the_mean_is_zero_after_the_cut(shares, scale):
    p = np.array(shares)
    for table in functions_of(Ranks(Bins(np.empty(0), categories=len(p)), p, 100.0)).T:
        moved = np.clip(centred(table, p, scale) / scale, -1.0, 1.0)
        assert abs(p @ moved) < 1e-12 and not moved[p == 0].any()


def test_normal_scores_of_equal_slices_are_odd_and_their_squares_even():
    scores = normal_scores(EIGHTHS)
    assert np.allclose(scores[:, 0], -scores[::-1, 0]) and np.allclose(scores[:, 1], scores[::-1, 1])


@pytest.mark.parametrize("response", ["one value", "two classes", "many classes", "numbers"])
@pytest.mark.parametrize("at_least", [1, 3, 5])
def test_there_are_always_as_many_features_as_directions(response, at_least):
    """Even if every function picks the same one, and the releases are nonsense."""
    shares = {"one value": [1.0], "two classes": [0.5, 0.5], "many classes": [0.2] * 5, "numbers": EIGHTHS}[response]
    p = np.asarray(shares, dtype=float)
    bins = Bins(np.linspace(-1, 1, 7)) if response == "numbers" else Bins(np.empty(0), categories=len(p))

    class Stubborn:
        def select(self, query, name):
            return np.array([0])

        def answer(self, query, name):
            return Release(np.array([1e300 if name == "sum 2" else -0.0]), np.full(1, 1e-3))

    screen = drive(Pursuit(5, 0.5, 0.5, 5).run(np.zeros(5), Ranks(bins, p, 9.0), 9.0, at_least), Stubborn())
    assert len(screen.kept) >= at_least and len(set(screen.picked.tolist())) == len(screen.picked)
    assert np.isfinite(screen.scores).all()


def test_more_records_and_more_budget_pay_for_more_picks_and_more_features_for_fewer():
    def picks(n, p, epsilon):
        return sum(line.name.startswith("pick ") for line in _plan(n, p, epsilon).lines)

    def _plan(n, p, epsilon):
        return PrivateSparseSIR(epsilon, 1e-4, 1, Bounds(-1, 1)).explain(n, p).plan

    assert picks(1000, 1000, 1.0) < picks(2000, 1000, 1.0) < picks(4000, 1000, 1.0) <= 48
    assert picks(2000, 1000, 0.5) < picks(2000, 1000, 1.0) > picks(2000, 100_000, 1.0)
