"""Post-processing: pure mathematics on what was released."""

import numpy as np
import pytest

from sfumato.release import Release
from sfumato.steps.descent import cosines, indicators
from sfumato.steps.dimension import choose
from sfumato.steps.links import directions_in_x
from sfumato.steps.noisy_histograms import likely_counts, nearest_shares, quantile, standing_out
from sfumato.steps.symmetric import inverse_root, noise_edge, upper_to_full


def test_cosines_are_averages_over_the_interval_of_ranks():
    shares = np.array([0.1, 0.0, 0.35, 0.05, 0.5])
    table = cosines(shares, np.array([1.0, 0.5, 2.0]))
    ends = np.concatenate([[0.0], np.cumsum(shares)])
    for i in (0, 2, 3, 4):
        u = np.linspace(ends[i], ends[i + 1], 20_001)
        u = (u[1:] + u[:-1]) / 2  # midpoint rule: error below 1e-8 for these cosines
        for j, weight in enumerate((1.0, 0.5, 2.0)):
            assert table[i, j] == pytest.approx(weight * np.sqrt(2) * np.cos((j + 1) * np.pi * u).mean(), abs=1e-7)
    assert np.isfinite(table).all()


def test_cosines_have_mean_zero_and_are_orthonormal_when_bins_are_fine():
    shares = np.full(2000, 1 / 2000)
    table = cosines(shares, np.ones(4))
    assert np.abs(shares @ table).max() < 1e-12
    assert np.allclose((table.T * shares) @ table, np.eye(4), atol=1e-4)


def test_indicators_turn_regression_into_slice_means():
    rng = np.random.default_rng(0)
    codes = rng.choice(4, p=[0.4, 0.3, 0.3, 0.0], size=2000)
    z = rng.normal(size=2000) + codes
    shares = np.bincount(codes, minlength=4) / 2000
    table = indicators(shares)
    assert table.shape == (4, 3) and not table[3].any()
    means = np.array([z[codes == h].mean() for h in range(3)])
    covariance = (z[:, None] * table[codes]).mean(axis=0)
    assert covariance == pytest.approx(np.sqrt(shares[:3]) * (means - z.mean()), abs=1e-12)


def test_a_rare_class_cannot_blow_up_the_table():
    assert np.abs(indicators(np.array([1 - 1e-9, 1e-9]))).max() <= 2.0


def test_quantiles_of_noisy_counts_are_upper_edges():
    counts, edges = np.array([10.0, -5.0, 10.0, 20.0]), np.array([1.0, 2.0, 3.0, 4.0])
    assert [quantile(counts, edges, level) for level in (0.1, 0.3, 0.6, 1.0)] == [1.0, 3.0, 4.0, 4.0]
    assert quantile(np.full(4, -1.0), edges, 0.5) == 4.0


def test_counts_below_their_noise_are_dropped():
    release = Release(np.array([2.9, 3.1, -9.0, 100.0]), np.array([1.0, 1.0, 1.0, 50.0]))
    assert standing_out(release).tolist() == [0.0, 3.1, 0.0, 0.0]
    assert standing_out(release, 1.5).tolist() == [2.9, 3.1, 0.0, 100.0]


def test_noise_in_many_bins_does_not_move_a_quantile():
    rng, edges, missed = np.random.default_rng(5), np.arange(64.0), 0
    for _ in range(50):
        counts = np.zeros(64)
        counts[20:26] = 50.0
        noisy = Release(counts + rng.normal(0, 25.0, 64), np.full(64, 25.0))
        missed += not 19 <= quantile(likely_counts(noisy, 300.0), edges, 0.5) <= 26
    assert missed <= 2


def test_nearest_shares_are_the_projection_on_probabilities():
    rng = np.random.default_rng(6)
    for _ in range(20):
        counts, n = rng.normal(size=12) * 30.0 + 20.0, float(rng.uniform(1.0, 400.0))
        shares = nearest_shares(counts, n)
        assert shares.sum() == pytest.approx(1.0) and (shares >= 0).all()
        apart = (
            counts - n * shares
        )  # the same where shares are positive, less elsewhere: the conditions of Kuhn and Tucker
        level = apart[shares > 0].mean()
        assert np.allclose(apart[shares > 0], level) and (apart[shares == 0] <= level + 1e-9).all()
    assert nearest_shares(np.array([-1.0, -2.0]), -3.0).tolist() == [0.5, 0.5]


def test_the_noise_edge_is_where_pure_noise_ends():
    rng, size = np.random.default_rng(1), 200
    largest = []
    for _ in range(10):
        upper = rng.normal(size=(size, size)) / np.sqrt(2)
        matrix = np.triu(upper, 1) + np.triu(upper, 1).T + np.diag(rng.normal(size=size))
        largest.append(np.linalg.eigvalsh(matrix)[-1])
    # The edge of the semicircle; at this size the largest eigenvalue is within 3 % of it (Tracy-Widom).
    assert np.mean(largest) == pytest.approx(noise_edge(1.0, size), rel=0.03)


def test_inverse_root_whitens_and_raises_small_eigenvalues():
    rng = np.random.default_rng(2)
    factor = rng.normal(size=(5, 5))
    matrix = factor @ factor.T + np.eye(5)
    root = inverse_root(matrix, 1e-9)
    assert np.allclose(root @ matrix @ root, np.eye(5)) and np.allclose(root, root.T)
    assert np.linalg.norm(inverse_root(-matrix, 0.25), 2) == pytest.approx(2.0)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_upper_triangle_makes_the_matrix_again(size):
    matrix = np.random.default_rng(3).normal(size=(size, size))
    matrix += matrix.T
    assert np.array_equal(upper_to_full(matrix[np.triu_indices(size)], size), matrix)


def test_directions_span_the_mapped_singular_vectors_and_are_orthonormal():
    rng = np.random.default_rng(4)
    to_z, basis = rng.normal(size=(6, 6)), rng.normal(size=(6, 2))
    spectrum = directions_in_x(basis @ rng.normal(size=(2, 5)), 0.01, to_z, 2)
    assert np.allclose(spectrum.directions @ spectrum.directions.T, np.eye(2))
    assert np.linalg.matrix_rank(np.vstack([spectrum.directions, (to_z.T @ basis).T]), tol=1e-9) == 2
    assert spectrum.standard_errors.shape == (2, 6) and (spectrum.standard_errors > 0).all()


def test_standard_errors_are_the_spread_that_the_noise_causes():
    rng = np.random.default_rng(5)
    p, noise = 5, 0.01
    coefficients = np.zeros((p, 3))
    coefficients[0, 0] = 1.0
    draws = [directions_in_x(coefficients + noise * rng.normal(size=(p, 3)), noise, np.eye(p), 1) for _ in range(400)]
    signed = np.array([draw.directions[0] * np.sign(draw.directions[0, 0]) for draw in draws])
    observed = signed.std(axis=0)[1:]  # orthogonal to the direction; along it the noise is second order
    stated = np.mean([draw.standard_errors[0, 1:] for draw in draws], axis=0)
    assert observed == pytest.approx(stated, rel=0.2)  # 400 draws: a standard deviation is known to 3.5 %


def test_pure_noise_keeps_one_direction_and_a_strong_signal_all_of_its_own():
    rng = np.random.default_rng(6)
    noise = [choose(0.1 * rng.normal(size=(10, 6)), 0.1, 1e6, None) for _ in range(100)]
    assert np.mean([choice.n_directions == 1 for choice in noise]) > 0.95
    signal = np.zeros((10, 6))
    signal[[0, 1, 2], [0, 1, 2]] = 5.0
    found = choose(signal + 0.1 * rng.normal(size=(10, 6)), 0.1, 1e6, None)
    assert found.n_directions == 3 and "3 singular values" in found.why


def test_an_order_for_directions_is_obeyed():
    choice = choose(np.random.default_rng(7).normal(size=(10, 6)), 100.0, 10.0, 4)
    assert choice.n_directions == 4 and choice.given and "4" in choice.why
