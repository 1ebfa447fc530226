"""Low bits: the attack of Mironov (2012) works on textbook noise and finds nothing in ours."""

import numpy as np
import pytest
from scipy import stats

from sfumato.audit import audit
from sfumato.privacy.events import Gaussian
from sfumato.privacy.mechanisms import gaussian
from sfumato.privacy.noise import SeededNoise, rounded_gaussian
from sfumato.statistics.histograms import Bins, ResponseHistogram

COUNTS = ResponseHistogram(Bins(np.zeros(1)))


def uniform(noise):
    """A double of the usual grid of 2**-53, never zero."""
    return max(1.0, float(noise.words(1)[0] >> np.uint64(11))) * 2.0**-53


def textbook_laplace(x, noise):
    u = uniform(noise) - 0.5
    return x - np.sign(u) * np.log(1 - 2 * abs(u))


def reachable(y):
    """Whether y is exactly the logarithm of a number the generator can give: what the attacker asks about y - x."""
    grid = 2.0**-52  # 1 - 2|u| is one of its multiples
    steps = np.maximum(np.rint(np.exp(-abs(y)) / grid) + np.arange(-4, 5), 1)
    return bool((np.abs(np.log(steps * grid)) == abs(y)).any())


def test_textbook_noise_tells_the_data_by_its_low_bits():
    seen = audit(lambda x, noise: [float(reachable(textbook_laplace(x, noise)))], 0.0, 1.0, (1.0, 0.0), runs=1_500)
    assert not seen.passed and seen.audited_lower > 2  # the Laplace mechanism is 1-DP on paper


def low_bits(exact, noise):
    """The lowest 8 bits of a release's float, and whether it lies on the public grid."""
    release = gaussian(np.array([exact, 0]), COUNTS, "replace", Gaussian(1.0), noise)
    unit = release.noise_std[0] / np.rint(np.sqrt(2.0) * 2**22)
    steps = release.value[0] / unit
    word = int(np.float64(release.value[0]).view(np.uint64))
    return [float(word & 255), float(abs(steps - np.rint(steps)) < 1e-4)]


def test_our_low_bits_do_not_depend_on_the_data():
    result = audit(low_bits, 3, 4, (0.05, 0.0), runs=1_500)
    assert result.passed
    bits = np.array([low_bits(value, SeededNoise(seed)) for seed in range(300) for value in (0, 1)])
    assert bits[:, 1].all()


@pytest.mark.parametrize("std", [1, 3, 20])
def test_every_integer_near_the_sum_can_be_reached_whatever_the_sum(std):
    draws = rounded_gaussian(SeededNoise(std), std, 200_000)
    near = np.arange(-3 * std, 3 * std + 1)
    assert np.isin(near, draws).all()  # no holes: the supports of two neighbours are the same set


def test_neighbours_share_the_distribution_of_parities():
    noise = SeededNoise(3)
    odd = [
        np.mean(gaussian(np.full(2000, c), _wide(2000), "replace", Gaussian(0.5), noise).value % 1 > 0.5)
        for c in (7, 8)
    ]
    assert abs(odd[0] - odd[1]) < 5 * np.sqrt(0.5 / 2000)


def _wide(size):
    return ResponseHistogram(Bins(np.empty(0), categories=size))


@pytest.mark.parametrize("mu", [1e-4, 1e-2, 1.0, 1e2])
def test_the_scale_is_right_from_tiny_to_huge_budgets(mu):
    release = gaussian(np.zeros(4000, dtype=np.int64), _wide(4000), "add-remove", Gaussian(mu), SeededNoise(1))
    square = float(((release.value * mu) ** 2).sum())
    assert stats.chi2(4000).cdf(square) > 1e-6 and stats.chi2(4000).sf(square) > 1e-6
    assert np.isfinite(release.value).all()
