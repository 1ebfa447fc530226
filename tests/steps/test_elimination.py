"""Features that do not show are left out, and the others are what least squares on them alone would be."""

import numpy as np
import pytest

from sfumato import SIR, Bounds, InputError, PrivateSIR, subspace_distance
from sfumato.model import load_model, save_model
from sfumato.simulate import xia
from sfumato.steps.sparsity import eliminate


def correlated(p: int, rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(p, p)) / np.sqrt(p) + np.eye(p)
    return np.asarray(root @ root.T)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_what_is_left_is_generalised_least_squares_on_it(k):
    rng = np.random.default_rng(k)
    covariance = correlated(8, rng)
    rows = rng.normal(size=(k, 8)) * (np.arange(8) < 4) + 0.02 * rng.normal(size=(k, 8))
    errors = np.outer(np.full(k, 0.02), np.sqrt(np.diag(np.linalg.inv(covariance))))
    sparse = eliminate(rows, errors, covariance)
    left = np.flatnonzero((sparse != 0).any(axis=0))
    assert k <= len(left) < 8
    direct = rows @ covariance[:, left] @ np.linalg.inv(covariance[np.ix_(left, left)])
    direct /= np.linalg.norm(direct, axis=1, keepdims=True)
    np.testing.assert_allclose(sparse[:, left], direct, atol=1e-10)


def test_no_other_set_of_features_scores_better_where_features_are_uncorrelated():
    """There the best set is that of the features whose squared z-values exceed the penalty: no search is needed."""
    z = np.array([9.0, 0.3, -4.0, 2.4, 2.6, -0.1])
    sparse = eliminate(z[None], np.ones((1, 6)), np.eye(6), penalty=6.25)
    assert (sparse[0] != 0).tolist() == (z**2 > 6.25).tolist()


def test_features_that_do_nothing_are_kept_as_rarely_as_the_penalty_says():
    """Of 12 squared normal errors the largest exceeds 1 + 2 log 12 in 12 % of draws, at most; 60 of 300 is 4 sd off."""
    rng = np.random.default_rng(0)
    rows = np.eye(1, 13) * 30.0 + rng.normal(size=(300, 1, 13))
    kept = [np.count_nonzero(eliminate(row, np.ones((1, 13)), np.eye(13))) for row in rows]
    assert np.mean(np.array(kept) > 1) < 0.2


def test_as_many_features_as_directions_stay_where_nothing_shows():
    rng = np.random.default_rng(1)
    assert np.count_nonzero(eliminate(0.1 * rng.normal(size=(2, 6)), np.ones((2, 6)), np.eye(6)).any(axis=0)) == 2


def test_a_direction_without_error_stays_what_it_is():
    """One feature makes one direction, whose error is none."""
    for rows in (np.array([[-1.0]]), np.eye(2)):
        sparse = eliminate(rows, np.zeros_like(rows), np.eye(len(rows)))
        np.testing.assert_array_equal(sparse, rows)


def test_features_without_spread_and_directions_without_error_raise_and_warn_nothing():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(6, 3))
    covariance = half @ half.T * np.outer(*[[1e4, 1.0, 1.0, 1e-2, 1.0, 0.0]] * 2)  # of rank three at most
    errors = np.array([[0.1] * 6, [0.0] * 6])
    with np.errstate(all="raise"):
        sparse = eliminate(rng.normal(size=(2, 6)), errors, covariance)
    assert np.allclose(np.linalg.norm(sparse, axis=1), 1.0)


def test_a_private_fit_without_idle_features_is_nearer_to_the_truth_and_costs_nothing():
    sample = xia("M1", n=20_000, p=15, random_state=4)
    sir = PrivateSIR(bounds=Bounds(-1.5, 1.5), n_directions=1).fit(sample.x, sample.y)
    spent, sparse = sir.ledger_.total(), sir.sparse_directions()
    assert sir.ledger_.total() == spent
    idle = sample.directions[0] == 0
    assert not sparse[0, idle].any() and (sparse[0] @ sir.directions_[0]) > 0.99
    assert subspace_distance(sparse, sample.directions) < subspace_distance(sir.directions_, sample.directions)


def test_plain_sir_has_it_too():
    sample = xia("M3", n=20_000, p=15, random_state=4)
    sir = SIR(n_directions=2, n_slices=20).fit(sample.x, sample.y)
    idle = ~sample.directions.any(axis=0)
    assert not sir.sparse_directions()[:, idle].any()


def test_a_model_file_does_not_hold_what_it_needs(tmp_path):
    sample = xia("M1", n=3_000, p=4, random_state=4)
    sir = PrivateSIR(bounds=Bounds(-1.5, 1.5), n_directions=1).fit(sample.x, sample.y)
    with pytest.raises(InputError, match="ask right after the fit"):
        load_model(save_model(sir, tmp_path / "model.json")).sparse_directions()
