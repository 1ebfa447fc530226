"""Fully local SIR: each record is a site of one; its bound needs nobody else."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Bounds, LocalSIR, subspace_distance
from sfumato.errors import InputError
from sfumato.local.records import UNITS, RecordRandomiser
from sfumato.privacy.noise import SeededNoise
from sfumato.statistics.moments import joint_diameter


@parametrize_with_checks([LocalSIR(), LocalSIR(epsilon=5.0, edges=(-1.0, 1.0), random_state=1)])
def test_scikit_learns_conventions_hold(estimator, check):
    check(estimator)


def _sample(n, p, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(0.2, 1 / 3, (n, p))
    return x, x[:, 0] - 0.2 + 0.05 * rng.standard_normal(n)


def test_enough_people_show_the_direction_even_off_centre():
    x, y = _sample(60_000, 3)
    fitted = LocalSIR(3.0, 1e-6, 1, Bounds(-1, 1), random_state=2).fit(x, y)
    assert subspace_distance(fitted.directions_, [1, 0, 0]) < 0.35


def test_no_two_records_are_farther_apart_than_the_proof_says():
    device = RecordRandomiser(3, Bounds(-1, 1), (0.0,), 1.0, 1e-6, radius=0.5)
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0, 0.3, 1e9], (300, 3)) * rng.choice([1.0, 0.1], (300, 1))
    rows = device._contributions(x, rng.choice([-1.0, 1.0], 300)).astype(float)
    weights = joint_diameter(1.0, 1.0) / device.event.mu / device.stds
    scaled = rows * weights / device._units
    distances = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
    assert 0.9 * joint_diameter(1.0, 1.0) < distances.max() <= joint_diameter(1.0, 1.0)
    assert np.abs(rows[:, :3]).max() <= UNITS


def test_every_answer_has_the_stated_noise():
    device = RecordRandomiser(2, Bounds(-1, 1), (0.0,), 2.0, 1e-6)
    answers = device.randomize(np.zeros((40_000, 2)), np.ones(40_000), SeededNoise(1))
    assert np.abs(answers.std(axis=0) / device.stds - 1).max() < 0.02
    assert device.event.mu * device.stds[0] == pytest.approx(joint_diameter(1.0, 1.0))


def test_a_missing_value_is_refused():
    device = RecordRandomiser(2, Bounds(-1, 1), (0.0,), 1.0, 1e-6)
    for x, y in (([[0.0, np.nan]], [0.0]), ([[0.0, 0.0]], [np.inf])):
        with pytest.raises(InputError, match="missing"):
            device.randomize(x, y)


def test_explain_says_how_many_people_and_warns_of_too_few():
    few = LocalSIR(1.0, bounds=Bounds(-1, 1)).explain(5_000, 10)
    assert few.hopeless and few.people_for_a_tenth > 1e6 and "too few" in str(few)
    many = LocalSIR(1.0, bounds=Bounds(-1, 1)).explain(100_000_000, 5)
    assert not many.hopeless and many.loss < 0.1


def test_the_forecast_is_what_people_get():
    x, y = _sample(60_000, 3)
    y = x[:, 0] - 0.2 + np.random.default_rng(1).standard_normal(60_000) / 3
    losses = [
        subspace_distance(LocalSIR(3.0, 1e-6, 1, Bounds(-1, 1), random_state=s).fit(x, y).directions_, [1, 0, 0])
        for s in range(8)
    ]
    expected = LocalSIR(3.0, 1e-6, 1, Bounds(-1, 1)).explain(60_000, 3).loss
    assert 0.5 < np.mean(losses) / expected < 2.0


def test_the_guarantee_covers_the_whole_record():
    x, y = _sample(200, 2)
    ledger = LocalSIR(1.0, 1e-5).fit(x, y).ledger_
    assert "whole record" in ledger.guarantee and ledger.total() == pytest.approx(1.0)
