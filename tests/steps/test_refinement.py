"""Functions of the response lose what x has nothing to do with, and nothing else."""

import numpy as np
import pytest

from sfumato.release import Release
from sfumato.steps.descent import cosines
from sfumato.steps.refinement import SLIGHT, refine

BINS, N = 40, 1e4
EACH = np.full(BINS, 1.0 / BINS)
SMOOTH = np.linalg.qr(cosines(EACH, np.ones(12)))[0] * BINS**0.5  # bins take a little off quick cosines


def released(functions, means, noise_std=0.0, seed=0):
    """How residuals move with cosines, where the mean of ``C^T z`` on each bin is known."""
    exact = N * SMOOTH.T @ (EACH[:, None] * (functions - means))
    noise = noise_std * np.random.default_rng(seed).normal(size=exact.shape)
    return Release(exact + noise, np.full(exact.shape, noise_std))


@pytest.mark.parametrize("reached", [0.4, 0.9, 1.3])
def test_what_x_does_not_move_with_goes_however_far_the_descent_is(reached):
    truth, wrong = SMOOTH[:, :1] - 0.3 * SMOOTH[:, 2:3], 0.5 * SMOOTH[:, 3:4] - 0.2 * SMOOTH[:, 7:8]
    functions = truth + wrong
    found = refine(functions, EACH, SMOOTH, released(functions, reached * truth), N, 0.0)
    assert np.allclose(found, truth)


def test_functions_that_are_right_stay_as_they_are():
    functions = SMOOTH[:, :2] @ np.array([[1.0, 0.3], [-0.2, 0.8]])
    means = functions @ np.array([[0.7, 0.1], [0.0, 0.5]])
    assert np.allclose(refine(functions, EACH, SMOOTH, released(functions, means), N, 0.0), functions)


def test_two_functions_span_what_x_moves_with():
    truth = np.column_stack([SMOOTH[:, 0] + 0.4 * SMOOTH[:, 2], SMOOTH[:, 1] - 0.5 * SMOOTH[:, 4]])
    functions = truth + 0.4 * SMOOTH[:, 5:7]
    means = truth @ np.array([[0.8, 0.2], [-0.1, 0.6]])
    found = refine(functions, EACH, SMOOTH, released(functions, means), N, 0.0)
    outside = found - truth @ np.linalg.lstsq(truth, found, rcond=None)[0]
    assert np.abs(outside).max() < 1e-9
    assert np.allclose(truth.T @ found, truth.T @ functions)  # slopes on z are made of these, and stay


def test_a_function_that_x_hardly_explains_is_left_alone():
    functions = SMOOTH[:, :1] + 0.5 * SMOOTH[:, 3:4]
    little = 0.8 * SLIGHT * SMOOTH[:, :1]
    assert np.array_equal(refine(functions, EACH, SMOOTH, released(functions, little), N, 0.0), functions)


def test_noise_moves_functions_by_less_than_itself():
    """A correction of noise alone passes four variances in 1 of 22 cosines, and loses most of itself there."""
    functions, noise = SMOOTH[:, :1], 0.05
    off = []
    for seed in range(200):
        found = refine(functions, EACH, SMOOTH, released(functions, 0.8 * functions, noise * N, seed), N, 0.0)
        off.append(EACH @ (found - functions)[:, 0] ** 2)
    assert np.mean(off) < 0.25 * 11 * (noise / 0.8) ** 2


def test_functions_of_nothing_stay_finite():
    functions = np.zeros((BINS, 2))
    found = refine(functions, EACH, SMOOTH, released(functions, functions, 10.0), N, 0.01)
    assert np.isfinite(found).all()
