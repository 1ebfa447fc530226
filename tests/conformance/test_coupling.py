"""Coupling: with the same noise on neighbours, all that differs is the sum, and by no more than was claimed."""

import numpy as np
import pytest

from sfumato.privacy.events import Gaussian
from sfumato.privacy.mechanisms import gaussian
from sfumato.privacy.noise import SeededNoise
from sfumato.records import Records

MU = 0.37


def neighbours(case, relation):
    """Data sets that differ in one record, an ordinary one and an extreme one."""
    records = case.records(np.random.default_rng(11), 30)
    far = np.where(np.arange(case.p) % 2, 1e9, -1e9)
    other = Records(np.vstack([far, records.x[1:]]), records.y)
    return records, other if relation == "replace" else Records(records.x[1:], records.y[1:])


def is_on_a_grid(values, unit):
    """Whether every value is a whole multiple, below 2**52, of the unit over some power of two up to 2**25."""
    found = np.zeros(values.shape, dtype=bool)
    for shift in range(26):
        worth = unit * 2.0**-shift
        multiples = np.rint(values / worth)
        found |= (np.abs(multiples) < 2**52) & (multiples * worth == values)
    return found.all()


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_neighbours_differ_by_at_most_mu_noises_whatever_the_seed(case, relation):
    sums = [case.query.of(records) for records in neighbours(case, relation)]
    differences = []
    for seed in range(3):
        a, b = (gaussian(total, case.query, relation, Gaussian(MU), SeededNoise(seed)) for total in sums)
        assert np.array_equal(a.noise_std, b.noise_std)
        assert a.value.shape == case.query.shape == a.noise_std.shape
        differences.append((a.value - b.value) / a.noise_std)
    # Two floats of up to 2**24 noises are subtracted: relative to one noise that is 2**-28.
    assert np.allclose(differences[0], differences[1], atol=1e-8) and np.allclose(
        differences[0], differences[2], atol=1e-8
    )
    assert np.linalg.norm(differences[0]) <= MU * (1 + 1e-6)


def test_released_values_lie_on_the_grid_and_float_noise_would_not(case):
    total = case.query.of(case.records(np.random.default_rng(12), 30))
    release = gaussian(total, case.query, "replace", Gaussian(MU), SeededNoise(1))
    assert is_on_a_grid(release.value, case.query.grid)
    naive = total * case.query.grid + release.noise_std * np.random.default_rng(1).normal(size=total.shape)
    assert not is_on_a_grid(naive, case.query.grid)
