"""Known noise leaves no trace, on average, in kernels and maps."""

import numpy as np
import pytest

from sfumato.steps.cca import canonical
from sfumato.steps.pca import revealing_map
from sfumato.steps.second_order import SliceMoments, save_kernel, square_bias

RNG = np.random.default_rng(0)


def noise(p, s):
    upper = np.triu(RNG.normal(size=(p, p)) * s / np.sqrt(2.0))
    np.fill_diagonal(upper, RNG.normal(size=p) * s)
    return upper + np.triu(upper, 1).T


def test_the_mean_square_of_symmetric_noise_is_what_is_subtracted():
    root = np.diag([1.0, 2.0, 0.5])
    mean = np.mean([np.linalg.matrix_power(root @ noise(3, 0.7) @ root, 2) for _ in range(20_000)], axis=0)
    assert np.allclose(mean, square_bias(np.array([0.7]), root)[0], atol=0.1 * mean.max())


def test_noise_alone_gives_a_kernel_of_mean_zero():
    kernels = []
    for _ in range(3000):
        seconds = np.stack([np.eye(4) + noise(4, 0.2) for _ in range(3)])
        slices = SliceMoments(np.full(3, 1 / 3), np.zeros((3, 4)), seconds, np.zeros(3), np.full(3, 0.2))
        kernels.append(save_kernel(slices, np.eye(4)))
    assert np.abs(np.mean(kernels, axis=0)).max() < 0.01  # 0.1 without the correction


def test_the_map_lowers_the_noise_across_the_leading_subspace():
    values = np.concatenate([[5.0, 4.0, 3.0], np.full(97, 0.5)])
    w = np.diag(revealing_map(np.diag(values), 3, 1e-3))
    turn = (w**2 @ values) / (w[:3] * (values[:3] - 0.5))
    assert turn.max() == pytest.approx(turn.min()) and turn.max() < 0.7 * values.sum() / 2.5


def test_canonical_correlations_of_independent_tables_are_noise():
    found = canonical(np.eye(6), 3, 0.01, 1e4, None)
    assert found.choice.n_directions == 1 and found.correlations[0] == pytest.approx(0.0, abs=1e-12)
