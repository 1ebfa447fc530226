"""Release: noisy sums add like sums, their noise in quadrature."""

import numpy as np
import pytest

from sfumato.release import Release


def test_releases_add_and_noise_adds_in_quadrature():
    a, b = Release(np.array([1.0, 2.0]), np.array([3.0, 0.0])), Release(np.array([10.0, 20.0]), np.array([4.0, 1.0]))
    assert (a + b).value.tolist() == [11.0, 22.0] and (a + b).noise_std.tolist() == [5.0, 1.0]


def test_noise_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="same shape"):
        Release(np.zeros(3), np.zeros(1))
