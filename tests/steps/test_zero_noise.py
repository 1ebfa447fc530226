"""Without noise and without clipping, the private methods are the textbook's."""

import numpy as np
import pytest
from scipy.linalg import eigh

from sfumato import Bounds, subspace_distance
from sfumato.methods.sir import Task
from sfumato.privacy.asking import drive
from sfumato.records import Response
from sfumato.statistics.histograms import Bins
from sfumato.statistics.whitening import Whitening
from sfumato.steps.descent import Descent, Schedule
from sfumato.steps.links import unit_directions
from sfumato.steps.one_shot import SLICES, OneShot
from sfumato.steps.picture import groups
from sfumato.steps.ranks import Ranks
from sfumato.steps.shape import Shape

N, P = 3000, 5
STEPS = 60
PATIENT = Schedule(
    (1.0,) * STEPS, sized=tuple(range(2, STEPS + 1)), levels=(1.0, 1.0), weights=(1.0, 0.6), extra=1, fading=1.0
)
"""Many steps, and room for the largest residual: gradient descent on two functions of y."""


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=(N, P)) @ (np.eye(P) + 0.3 * rng.normal(size=(P, P)))
    return x, np.sin(x[:, 0]) + (x[:, 1] + 0.5) ** 2 + 0.1 * rng.normal(size=N)


def cosine_table(shares):
    """sqrt(2) w_j times the mean of cos(j pi u) over each bin's interval of ranks, from its integral."""
    ends = np.concatenate([[0.0], np.cumsum(shares)])
    columns = [np.diff(np.sin(j * np.pi * ends)) / (j * np.pi * shares) for j in (1, 2)]
    return np.sqrt(2.0) * np.column_stack(columns) * [1.0, 0.6]


def least_squares(x, f):
    return np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), f, rcond=None)[0][:-1]


def tolerance(unit, slope):
    """Rounding z and e to their grids is noise of 0.3 units, averaged over N records; ten times that."""
    return 10 * 0.3 * (1 / unit + 2.0**-13) / np.sqrt(N) / slope


def test_descent_converges_to_least_squares(silent, data):
    x, y = data
    bins = Bins(np.quantile(y, np.linspace(0, 1, 20)[1:-1]))
    index = np.digitize(y, bins.edges)
    shares = np.bincount(index, minlength=bins.count) / N
    grid = Bounds(-4.0, 4.0).grid(P)
    root = np.linalg.cholesky(np.linalg.inv(np.cov(x.T)))
    whitening = Whitening(grid, 4.0 * root.T, x.mean(axis=0) / 4.0, cap=9.0)
    curator = silent(x, y, Descent(PATIENT, 0.9, 0.1).lines)
    shape = Shape(whitening, np.eye(P), np.zeros(P))
    fit = drive(Descent(PATIENT, 0.9, 0.1).run(shape, Ranks(bins, shares, float(N)), float(N), 2), curator)
    expected = least_squares(x, cosine_table(shares)[index])
    found = unit_directions(fit.links, whitening.exact_matrix / 4.0, np.ones(2))
    smallest = np.linalg.svd(root.T @ expected, compute_uv=False)[-1]
    assert subspace_distance(found, expected.T) < tolerance(whitening.unit, smallest)


def test_the_whole_pipeline_converges_to_least_squares(silent, data):
    x, y = data
    task = Task(P, N, Response(), 2, Bounds(-4.0, 4.0), schedule=PATIENT)
    outcome = drive(task.run(), silent(x, y, task.plan().lines))
    index = np.digitize(y, outcome.ranks.bins.edges)
    shares = np.bincount(index, minlength=outcome.ranks.bins.count) / N
    assert np.allclose(outcome.ranks.probabilities, shares, atol=1e-5)  # what is left is noise of one in 10**6
    kept = shares > 0
    f = cosine_table(shares[kept])[np.cumsum(kept)[index] - 1]
    expected = least_squares(x, f)
    smallest = np.linalg.svd(np.linalg.cholesky(np.cov(x.T)).T @ expected, compute_uv=False)[-1]
    # z is capped at three root p, so its unit is 2**15 / (3 sqrt(p)); the released shares are off by 1e-6 noises.
    assert subspace_distance(outcome.directions, expected.T) < tolerance(2**15 / (3 * np.sqrt(P)), smallest)


def test_the_ranks_of_a_categorical_response_give_least_squares_on_indicators(silent):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, N)
    x = rng.uniform(-1, 1, size=(N, P)) + np.eye(3, P)[codes]
    task = Task(P, N, Response(categories=4), 2, Bounds(-3.0, 3.0), schedule=PATIENT)
    outcome = drive(task.run(), silent(x, codes, task.plan().lines, response=Response(categories=4)))
    expected = least_squares(x, np.eye(3)[codes])  # rank 2: indicators add up to one
    u, s, _ = np.linalg.svd(expected)
    assert subspace_distance(outcome.directions, u[:, :2].T) < tolerance(2**15 / (3 * np.sqrt(P)), s[1] / 2)


def test_one_shot_is_sliced_inverse_regression(silent, data):
    x, y = data
    bins = Bins(np.quantile(y, np.linspace(0, 1, 40)[1:-1]))
    index = np.digitize(y, bins.edges)
    ranks = Ranks(bins, np.bincount(index, minlength=bins.count) / N, float(N))
    whitening = Whitening(Bounds(-4.0, 4.0).grid(P), 4.0 * np.eye(P), np.zeros(P), cap=9.0)
    shape = Shape(whitening, np.eye(P), np.zeros(P))
    fit = drive(OneShot(1.0).run(shape, ranks, float(N), 2), silent(x, y, OneShot(1.0).lines))
    slice_of, edges = groups(ranks, SLICES)
    label = slice_of[index]
    centred = x - x.mean(axis=0)
    means = np.stack([centred[label == h].mean(axis=0) for h in range(len(edges) - 1)])
    between = (means.T * np.bincount(label) / N) @ means
    values, vectors = eigh(between, centred.T @ centred / N)
    found = unit_directions(fit.links, whitening.exact_matrix, np.ones(2))
    gap = np.sqrt(values[-2]) - np.sqrt(values[-3])
    assert subspace_distance(found, vectors[:, -2:].T) < tolerance(whitening.unit, gap)
    assert fit.eigenvalues == pytest.approx(values[::-1][:2], abs=1e-4)


def test_directions_are_unit_rows_of_uncorrelated_scores_and_wide_bounds_do_not_matter(silent, data):
    x, y = data
    found = []
    for width in (4.0, 40.0):
        task = Task(P, N, Response(), 2, Bounds(-width, width), schedule=PATIENT)
        found.append(drive(task.run(), silent(x, y, task.plan().lines)).directions)
        assert np.allclose(np.linalg.norm(found[-1], axis=1), 1.0, atol=1e-12)
        assert abs(np.corrcoef(found[-1] @ x.T)[0, 1]) < 0.1  # uncorrelated under the covariance of clipped records
    assert subspace_distance(*found) < 1e-3
