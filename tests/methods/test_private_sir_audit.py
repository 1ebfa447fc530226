"""A small audit from outside: how well can two neighbours be told apart, against what was claimed?"""

import numpy as np
import pytest
from scipy import stats

from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.events import Gaussian
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import SeededNoise
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Records
from sfumato.statistics.histograms import Bins, ResponseHistogram

MU, RUNS = 3.0, 3000
BUDGET = Budget.zcdp(MU**2 / 2)
PLAN = Plan((Line("ranks", "ranks of the response", 1.0, "sqrt(2) / 1"),)).calibrate(BUDGET)
BINS = Bins(np.array([-1.0, 0.0, 1.0]))
WORST = {
    "replace": (np.array([-5.0, 0.5, 0.5]), np.array([5.0, 0.5, 0.5])),  # from one end bin to the other
    "add-remove": (np.array([-5.0, 0.5, 0.5]), np.array([0.5, 0.5])),
}


class Understated(ResponseHistogram):
    """A sum that claims less than it can weigh: what the audit must catch."""

    factor = 2.0

    @property
    def norm(self):
        return 1.0 / self.factor

    @property
    def diameter(self):
        return 2.0**0.5 / self.factor


class SlightlyUnderstated(Understated):
    factor = 1.15


class Few:
    """The setting of a handful of records: adds them in place."""

    def __init__(self, y):
        self.records = Records(np.zeros((len(y), 1)), y)

    def sum(self, query):
        return query.of(self.records)


def releases(query, y, relation, seed):
    """The released histogram, run after run, each with fresh noise."""
    setting, noise = Few(y), SeededNoise(seed)
    ledgers = (Ledger(BUDGET, relation, rehearsal=True) for _ in range(RUNS))
    return np.stack([Curator(setting, PLAN, ledger, noise).answer(query, "ranks").value for ledger in ledgers])


def audited_mu(query, relation):
    """Estimate of mu and its standard error: the best direction from one half of the runs, tried on the other."""
    a, b = (releases(query, y, relation, seed) for seed, y in enumerate(WORST[relation], start=5))
    half = RUNS // 2
    shift = b[:half].mean(axis=0) - a[:half].mean(axis=0)
    direction = shift / (a[:half].var(axis=0) + b[:half].var(axis=0))
    u, v = a[half:] @ direction, b[half:] @ direction
    mu = (v.mean() - u.mean()) / np.sqrt((u.var(ddof=1) + v.var(ddof=1)) / 2)
    return mu, np.sqrt(2 / half + mu**2 / (4 * half))  # of a difference of means over a pooled deviation


def test_the_plan_claims_what_it_says():
    assert isinstance(PLAN.lines[0].event, Gaussian) and PLAN.lines[0].event.mu == pytest.approx(MU, rel=1e-8)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_neighbours_are_told_apart_as_well_as_claimed_and_no_better(relation):
    mu, error = audited_mu(ResponseHistogram(BINS), relation)
    assert mu + stats.norm.ppf(0.01) * error <= MU  # nothing above the claim is certified at 99 %
    assert abs(mu - MU) <= 0.1 * MU  # five standard errors: the noise is not larger than needed either


@pytest.mark.parametrize(("kind", "relation"), [(Understated, "replace"), (SlightlyUnderstated, "add-remove")])
def test_the_audit_catches_too_little_noise(kind, relation):
    mu, error = audited_mu(kind(BINS), relation)
    assert mu + stats.norm.ppf(0.01) * error > MU
