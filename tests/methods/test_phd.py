"""Principal Hessian directions: the mean Hessian of the sign of the rank, blind to trends."""

import numpy as np
import pytest

from sfumato import Bounds, InputError, PrivatePHD, subspace_distance
from sfumato.methods.phd import HessianTask
from sfumato.privacy.asking import drive
from sfumato.records import Response

N, P, BOX = 20_000, 4, Bounds(-5.0, 5.0)


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(3).normal(size=(N, P))


def hessian_directions(x, y, k):
    """Li's estimator by hand: eigenvectors of E[s z z'], s the sign of y about its median, z whitened."""
    values, vectors = np.linalg.eigh(np.cov(x.T))
    root = (vectors / np.sqrt(values)) @ vectors.T
    z = (x - x.mean(axis=0)) @ root
    hessian = (z.T * np.sign(y - np.median(y))) @ z / len(y)
    values, vectors = np.linalg.eigh(hessian)
    order = np.argsort(-np.abs(values))[:k]
    return (root @ vectors[:, order]).T, values[order]


def test_without_noise_it_is_lis_estimator(x, silent):
    y = x[:, 0] * x[:, 1] + 0.3 * np.random.default_rng(4).normal(size=N)
    task = HessianTask(P, N, Response(), 2, BOX)
    found = drive(task.run(), silent(x, y, task.plan().lines))
    expected, values = hessian_directions(x, y, 2)
    # Records longer than sqrt(p) are clipped, which a spherical distribution does not show in the directions.
    assert subspace_distance(found.directions, expected) < 0.05
    assert np.array_equal(np.sign(np.sort(found.fit.eigenvalues)), np.sign(np.sort(values)))


def test_a_trend_does_not_hide_curvature_and_shows_none(x):
    rng = np.random.default_rng(5)
    y = 2.0 * x[:, 2] + x[:, 0] ** 2 + 0.3 * rng.normal(size=N)
    curved = PrivatePHD(epsilon=4.0, n_directions=1, bounds=BOX).fit(x, y)
    assert abs(curved.directions_[0, 0]) > 0.95
    straight = PrivatePHD(epsilon=4.0, bounds=BOX).fit(x, x[:, 2] + 0.3 * rng.normal(size=N))
    assert (straight.choice_.singular_values < straight.choice_.edge).all()


def test_the_sign_says_whether_large_responses_are_far_out(x):
    for sign in (1.0, -1.0):
        fitted = PrivatePHD(epsilon=4.0, n_directions=1, bounds=BOX).fit(x, sign * x[:, 1] ** 2)
        assert np.sign(fitted.eigenvalues_[0]) == sign


def test_responses_that_are_all_equal_have_an_answer_all_the_same(x):
    fitted = PrivatePHD(n_directions=2, bounds=BOX).fit(x, np.ones(N))
    assert fitted.directions_.shape == (2, P) and np.isfinite(fitted.directions_).all()


def test_classes_are_refused_before_anything_is_spent(x):
    with pytest.raises(InputError, match="classes have no order"):
        PrivatePHD(bounds=BOX).fit(x, np.where(x[:, 0] > 0, "a", "b"))


@pytest.mark.judged
def test_a_forecast_is_met(x):
    phd = PrivatePHD(epsilon=1.0, n_directions=1, bounds=BOX)
    rng = np.random.default_rng(6)
    # The square explains half of y: its variance is 2.
    losses = [
        subspace_distance(phd.fit(z, z[:, 0] ** 2 + np.sqrt(2.0) * rng.normal(size=5_000)).directions_, np.eye(1, P))
        for z in rng.normal(size=(12, 5_000, P))
    ]
    assert phd.explain(5_000, P).forecast(0.5).loss == pytest.approx(np.mean(losses), rel=0.5)
