"""Slopes that may be zero: what is shrunk, what is not, and that it helps where it should."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato import Bounds, Budget, subspace_distance
from sfumato.federated.task import FEW_ROUNDS
from sfumato.methods.sir import Task
from sfumato.privacy.asking import drive
from sfumato.records import Response
from sfumato.research.many_sites import MergedSites
from sfumato.sources import ArraySource
from sfumato.steps.sparsity import APART, MATTER, SIZES, WIDER, believed, sparse_slopes, varimax

P = 10


def disjoint():
    """Two directions, each of five features of its own."""
    return np.kron(np.eye(2), np.full((P // 2, 1), np.sqrt(2.0 / P)))


def dense(rng):
    return np.linalg.qr(rng.normal(size=(P, 2)))[0]


def turned(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def losses(rng, truth, noise):
    """Distance of noisy slopes, and of what is believed of them."""
    found = truth + noise * rng.normal(size=truth.shape)
    kept = sparse_slopes(found, np.full(truth.shape[1], noise))
    return subspace_distance(found.T, truth.T), subspace_distance(kept.T, truth.T)


@pytest.mark.parametrize(("noise", "most"), [(0.02, 0.75), (0.05, 0.8), (0.1, 0.95)])
@pytest.mark.parametrize("angle", [0.0, 0.4])
def test_zeros_are_found_however_the_directions_are_turned(noise, most, angle):
    rng = np.random.default_rng(0)
    raw, kept = np.mean([losses(rng, disjoint() @ turned(angle), noise) for _ in range(200)], axis=0)
    # Two directions of ten features err in sixteen coordinates; ten slopes are zero, eight of them across the plane, so
    # that whoever knows which is at the root of a half.
    assert kept < most * raw


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_where_no_slope_is_zero_little_is_lost(noise):
    rng = np.random.default_rng(1)
    raw, kept = np.mean([losses(rng, dense(rng), noise) for _ in range(200)], axis=0)
    assert kept < 1.15 * raw  # with slopes that must lie apart from zero it would be 1.3 times as far in little noise


def test_a_feature_that_does_nothing_is_left_out_and_others_stay():
    rng = np.random.default_rng(2)
    truth = np.vstack([disjoint(), np.zeros((4, 2))])
    kept = np.mean([sparse_slopes(truth + 0.02 * rng.normal(size=truth.shape), np.full(2, 0.02)) for _ in range(50)], 0)
    assert np.abs(kept[P:]).max() < 0.003 and np.allclose(kept[:P], truth[:P], atol=0.02)


def test_what_is_believed_does_not_depend_on_sign_or_order():
    z = np.array([[12.0, 0.3, -7.0, 1.5, 2.5], [1.0, 40.0, 35.0, -1.0, 0.0]]).T
    shuffle = np.array([3, 0, 4, 1, 2])
    kept = believed(z)
    assert np.allclose(believed(-z), kept, rtol=0, atol=1e-12)
    assert np.allclose(believed(z[shuffle]), kept[shuffle], rtol=0, atol=1e-12)
    assert np.allclose(believed(z[:, ::-1]), kept[:, ::-1], rtol=0, atol=1e-12)
    shown = np.abs(z * kept)[np.argsort(np.abs(z[:, 0])), 0]
    assert (np.diff(shown) > 0).all()  # what shows more is believed to do more


def test_the_mean_by_the_rule_is_that_of_draws_from_what_it_assumes():
    """What the rule averages over is drawn as it weighs it at first, then an estimate; slopes near a value of it."""
    rng = np.random.default_rng(3)
    n = 1_000_000
    part = rng.choice(MATTER, n, p=MATTER / MATTER.sum())
    size, wider, apart = (
        SIZES[rng.integers(len(SIZES), size=n)],
        WIDER[rng.integers(3, size=n)],
        APART[rng.integers(2, size=n)],
    )
    lengths = np.linalg.norm(rng.normal(size=(3, n)), axis=0)  # of density v^2 exp(-v^2 / 2)
    true = size * np.where(apart > 0, lengths * rng.choice([-1.0, 1.0], n), rng.normal(size=n))
    true = np.sqrt(wider) * np.where(rng.uniform(size=n) < part, true, 0.0)
    z = true + np.sqrt(wider) * rng.normal(size=n)
    for at in (1.0, 2.0, 4.0, 8.0):
        near = np.abs(z - at) < 0.05
        error = true[near].std() / np.sqrt(near.sum())
        assert abs(float(believed(np.array([[at]]))[0, 0]) * at - true[near].mean()) < 4 * error + 0.01


def test_no_slopes_are_too_large_or_too_small():
    with np.errstate(all="raise", under="ignore"):
        for slopes in (np.zeros((4, 2)), np.full((4, 2), 1e-200), 1e12 * np.eye(4, 2), np.ones((1, 1))):
            for error in (0.0, 1e-12, 1e6):
                assert np.isfinite(sparse_slopes(slopes, np.full(slopes.shape[1], error))).all()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_turn_is_a_rotation_that_no_other_betters(k):
    rng = np.random.default_rng(4)
    loadings = rng.normal(size=(12, k))
    turn = varimax(loadings)

    def varies(rows):
        return (rows**2).var(axis=0).sum()

    assert np.allclose(turn.T @ turn, np.eye(k), rtol=0, atol=1e-12)
    others = (np.linalg.qr(rng.normal(size=(k, k)))[0] for _ in range(300))
    assert varies(loadings @ turn) >= max(varies(loadings @ other) for other in others) - 1e-9


def sites_fit(schedule, scale):
    """Features of very different units, half of them for each direction, at ten sites."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(10_000, 6))
    y = x[:, :3].sum(axis=1) / (1.0 + np.exp(x[:, 3:].sum(axis=1))) + 0.3 * rng.normal(size=10_000)
    task = Task(6, 10_000, Response(), 2, Bounds(-6.0 * scale, 6.0 * scale), schedule=schedule)
    sites = MergedSites(ArraySource(x * scale, y, Response()), 10, Budget.approximate(2.0, 1e-5))
    truth = np.kron(np.eye(2), np.ones(3)) / scale
    return task, subspace_distance(drive(task.run(), sites.open(task.plan())).directions * scale, truth * scale)


def test_a_sparse_descent_costs_nothing_and_is_nearer_whatever_the_units():
    sparse = replace(FEW_ROUNDS, sparse=True)
    for scale in (np.ones(6), np.array([1.0, 1e3, 1e-3, 1.0, 1e-2, 50.0])):
        (usual, raw), (task, kept) = (
            (found[0][0], np.mean([distance for _, distance in found]))
            for found in ([sites_fit(schedule, scale) for _ in range(8)] for schedule in (FEW_ROUNDS, sparse))
        )
        assert task.plan() == usual.plan()
        assert kept < 0.85 * raw
