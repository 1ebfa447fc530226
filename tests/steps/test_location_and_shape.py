"""Bounds and whitening that were bought."""

import numpy as np
import pytest

from sfumato import Bounds
from sfumato.bounds import PartialBounds
from sfumato.privacy.asking import drive
from sfumato.records import Records
from sfumato.steps.location import Locating, Location
from sfumato.steps.shape import RoughShape

N = 5000


def bounds_of(make, x, **more):
    location = Location(PartialBounds.nothing(x.shape[1]), 1.0)
    door = make(x, np.zeros(len(x)), Locating(location).lines, **more)
    return drive(Locating(location).run(x.shape[1], len(x)), door).bounds


def test_bounds_hold_the_records_and_little_more(silent, noisy):
    rng = np.random.default_rng(0)
    scale, centre = np.array([1.0, 1e-6, 1e6, 3.0, 1.0]), np.array([0.0, 0.0, 5e6, -100.0, 0.2])
    x = rng.normal(size=(N, 5)) * scale + centre
    for bounds in (bounds_of(silent, x), bounds_of(noisy, x, rho=0.5)):
        assert (bounds.lower < x.mean(axis=0) - 2 * scale).all() and (bounds.upper > x.mean(axis=0) + 2 * scale).all()
        assert ((x > bounds.lower) & (x < bounds.upper)).mean() > 0.99
        assert (bounds.upper - bounds.lower < 50 * scale).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -7.5e11, 1e308, -1e308, 5e-324, 2.0**40, -(2.0**-40)])
def test_a_constant_feature_has_bounds_of_positive_width(silent, noisy, value):
    for make in (silent, noisy):
        bounds = bounds_of(make, np.full((300, 1), value))
        assert (bounds.upper > bounds.lower).all() and np.isfinite(bounds.upper).all()
        if 1e-300 < abs(value) < 1e300 and make is silent:
            assert bounds.lower[0] <= value <= bounds.upper[0]


def test_pure_noise_falls_back_to_public_bounds(noisy):
    for seed in range(5):
        bounds = bounds_of(noisy, np.zeros((1, 3)), seed=seed, rho=1e-4)
        assert np.isfinite(bounds.lower).all() and (bounds.upper > bounds.lower).all()


def shape_of(make, x, cap=3.0, **more):
    grid = Bounds(-8.0, 8.0).grid(x.shape[1])
    return drive(
        RoughShape(0.5, 0.5, cap).run(grid, float(len(x))),
        make(x, np.zeros(len(x)), RoughShape(0.5, 0.5).lines, **more),
    )


def test_whitened_records_are_centred_and_roughly_spherical(silent):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(N, 4)) @ (np.eye(4) + 0.3 * rng.normal(size=(4, 4))) + [1.0, 0.0, -1.0, 0.5]
    whitening = shape_of(silent, x)
    z = whitening.integers(Records(x, np.zeros(N)))[:, :-1] / whitening.unit
    assert np.abs(z.mean(axis=0)).max() < 0.3
    eigenvalues = np.linalg.eigvalsh(np.cov(z.T))
    assert eigenvalues.max() / eigenvalues.min() < 3 < np.linalg.cond(np.cov(x.T))
    assert (z**2).sum(axis=1).mean() == pytest.approx(4, rel=0.5)


def test_a_constant_feature_is_not_blown_up(noisy):
    x = np.column_stack([np.random.default_rng(2).normal(size=N), np.full(N, 2.0)])
    whitening = shape_of(noisy, x)
    assert np.isfinite(whitening.exact_matrix).all()
    assert np.linalg.norm(whitening.exact_matrix, 2) < 1e3


def test_pure_noise_gives_a_finite_map(noisy):
    for seed in range(5):
        whitening = shape_of(noisy, np.zeros((1, 3)), seed=seed, rho=1e-4)
        assert np.isfinite(whitening.exact_matrix).all() and np.abs(whitening.mean).max() <= 1.0
