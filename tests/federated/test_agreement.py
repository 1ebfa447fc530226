"""Which site disagrees, from what was released anyway."""

import numpy as np
import pytest

from sfumato import Bounds, PrivateSIR, PrivateSparseSIR, subspace_distance
from sfumato.federated import simulate
from sfumato.simulate import he

ESTIMATOR = PrivateSIR(epsilon=2.0, delta=1e-5, n_directions=2, bounds=Bounds(-8, 8))


def parts(n=5_000, sites=4, seed=0):
    sample = he("V", n=n * sites, random_state=seed)
    return [(sample.x[i::sites].copy(), sample.y[i::sites].copy()) for i in range(sites)], sample


@pytest.mark.parametrize("seed", range(4))
def test_sites_of_one_distribution_agree(seed):
    assert simulate(ESTIMATOR, parts(seed=seed)[0]).disagreeing_ == {}


def _shifted(x, y):
    return x + 1.0, y


def _scaled(x, y):
    return 1.6 * x, y


def _rotated(x, y):
    return np.roll(x, 3, axis=1), y


def _other_mix(x, y):
    return x, np.where(np.arange(len(y)) % 2 == 0, np.abs(y), y)


@pytest.mark.parametrize("change", [_shifted, _scaled, _rotated, _other_mix])
def test_a_site_that_differs_is_named(change):
    sites, _ = parts()
    sites[2] = change(*sites[2])
    assert "site 3" in simulate(ESTIMATOR, sites).disagreeing_


def test_leaving_the_odd_site_out_mends_the_fit():
    sites, sample = parts(n=5_000)
    sites[2] = (-3.0 * np.roll(sites[2][0], 3, axis=1), sites[2][1])

    def loss(leave_out):
        return subspace_distance(simulate(ESTIMATOR, sites, leave_out=leave_out).directions_, sample.directions)

    assert np.mean([loss(True) for _ in range(2)]) < np.mean([loss(False) for _ in range(2)])


def test_shared_noise_lets_nobody_compare_sites():
    assert simulate(ESTIMATOR, parts()[0], "secure-aggregation").disagreeing_ == {}


def test_a_site_that_differs_is_also_named_in_a_sparse_fit():
    """Its questions are about some columns; the check looks at what they ask of these."""
    sample = he("V", n=6_000, p=40, sparse=4, random_state=3)
    sites = {f"h{i}": (sample.x[i::3] + (4.0 if i == 2 else 0.0), sample.y[i::3]) for i in range(3)}
    sparse = PrivateSparseSIR(2.0, 1e-4, 2, Bounds(-9, 9), random_state=1)
    assert list(simulate(sparse, sites).disagreeing_) == ["h2"]
