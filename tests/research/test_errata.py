"""One worked number for each entry of docs/explanation/errata.md that has one."""

import math

import numpy as np
import pytest

from sfumato.privacy.accounting import gdp_delta, gdp_mu


@pytest.mark.parametrize(("epsilon", "delta", "printed", "needed"), [(1, 1e-5, 3.393, 3.731), (2, 1e-8, 2.146, 2.653)])
def test_fsir_noise_scale_is_too_small_for_small_delta(epsilon: float, delta: float, printed: float, needed: float):
    scale = math.sqrt(math.log(1 / delta)) / epsilon
    assert scale == pytest.approx(printed, abs=5e-4)
    assert 1 / gdp_mu(epsilon, delta) == pytest.approx(needed, abs=5e-4)
    assert gdp_delta(1 / scale, epsilon) > delta


def test_us_times_its_transpose_is_the_square_of_a_covariance():
    covariance = np.cov(np.random.default_rng(0).standard_normal((4, 50)))
    u, s, _ = np.linalg.svd(covariance)
    merged = (u * s) @ (u * s).T
    np.testing.assert_allclose(merged, covariance @ covariance, atol=1e-12)
    assert not np.allclose(merged, covariance)


def test_noise_shaped_by_the_private_matrix_differs_between_neighbours():
    """Same bits, neighbouring matrices: additive noise must cancel in the difference, the MVG noise does not."""

    def mvg(matrix: np.ndarray, seed: int) -> np.ndarray:
        u, s, _ = np.linalg.svd(matrix)
        noise = np.random.default_rng(seed).standard_normal(matrix.shape)
        return matrix + (u / np.sqrt(s)) @ noise

    d = np.random.default_rng(1).standard_normal((3, 5))
    neighbour = d.copy()
    neighbour[:, 0] += 0.5
    differences = [mvg(d, seed) - mvg(neighbour, seed) for seed in (0, 1)]
    assert np.abs(differences[0] - differences[1]).max() > 0.01


def kernel(x: np.ndarray, slices: np.ndarray) -> np.ndarray:
    """n times the SIR kernel of uncentred records: total minus within-slice scatter."""
    within = np.zeros((x.shape[1],) * 2)
    for h in np.unique(slices):
        rest = x[slices == h] - x[slices == h].mean(axis=0)
        within += rest.T @ rest
    return x.T @ x - within


def test_replacing_one_record_moves_the_kernel_by_at_most_six_squared_radii():
    """The worst pair: y leaves a slice full of -y, x joins one full of -x, x and y orthogonal: 3 sqrt(2)."""
    m = 400
    e1, e2 = np.eye(2)
    slices = np.repeat([0, 1], m)
    crowd = np.where(slices[:, None] == 0, -e1, -e2)
    before = kernel(np.vstack([crowd, e1]), np.append(slices, 0))
    after = kernel(np.vstack([crowd, e2]), np.append(slices, 1))
    moved = float(np.linalg.norm(after - before))
    assert 3 * math.sqrt(2) * (1 - 2 / m) < moved <= 6.0


def test_validation_prefers_the_worst_candidate_as_printed():
    losses = np.array([-1.0, 0.0])  # loss = -trace: the first candidate is the better one
    printed = np.exp(+losses)
    assert printed[1] > printed[0]


def test_quadratic_form_of_a_sparse_vector_reaches_s_not_its_root():
    s = 9
    b = np.ones(s) / math.sqrt(s)
    assert b @ np.ones((s, s)) @ b == pytest.approx(s)
    assert s > math.sqrt(s)


def test_arctan_puts_a_response_in_the_hundred_thousands_into_one_bin():
    y = np.random.default_rng(3).normal(1e5, 2e4, 1000)
    assert len(np.unique(np.floor((np.arctan(y) / np.pi + 0.5) * 100))) == 1


def test_disjoint_parts_with_epsilon_over_t_each_need_more_noise_than_full_batches():
    steps, n = 10, 20_000
    parts = (1 / gdp_mu(1 / steps, 1e-6 / steps)) / (n / steps)  # noise of a mean over one part
    full = math.sqrt(steps) / gdp_mu(1, 1e-6) / n
    assert parts > 10 * full


def test_off_diagonals_need_less_noise_by_the_root_of_two():
    rng = np.random.default_rng(4)
    a = rng.standard_normal((5, 5))
    difference = a + a.T
    upper = np.triu_indices(5, 1)
    weighted = (difference.diagonal() ** 2).sum() + ((math.sqrt(2) * difference[upper]) ** 2).sum()
    assert weighted == pytest.approx(np.linalg.norm(difference) ** 2)


def test_iht_climbs_with_the_printed_sign_and_descends_with_the_right_one():
    rng = np.random.default_rng(5)
    x = rng.choice([-1.0, 1.0], (200, 3))
    theta = np.array([0.5, -0.3, 0.0])
    y = x @ theta
    start = np.zeros(3)
    right = start + x.T @ (y - x @ start) / 200
    printed = start - x.T @ (y - x @ start) / 200
    assert np.linalg.norm(right - theta) < np.linalg.norm(theta) < np.linalg.norm(printed - theta)


def test_the_covariance_noise_lost_a_square_root_and_is_p_times_too_large():
    p, n, epsilon, delta = 10, 1000, 1.0, 1e-5
    inner = 2 * math.log((p**2 + p) / (delta * 2 * math.sqrt(2 * math.pi)))
    printed, with_root = ((p + 1) / (n * epsilon) * inner**power + 1 / (n * math.sqrt(epsilon)) for power in (1, 0.5))
    frobenius = math.sqrt(2) / n / gdp_mu(epsilon, delta)
    assert (printed, with_root, frobenius) == pytest.approx((0.322, 0.060, 0.0053), rel=0.01)
    assert with_root > p * frobenius


def test_a_covariance_moves_by_the_root_of_two_over_n_at_most():
    """Two records of the unit ball: |xx' - zz'|_F^2 = |x|^4 + |z|^4 - 2 (x'z)^2, at most 2, attained where x'z = 0."""
    rng = np.random.default_rng(6)
    pairs = rng.standard_normal((1000, 2, 4))
    pairs /= np.maximum(np.linalg.norm(pairs, axis=2, keepdims=True), 1.0)
    moved = [np.linalg.norm(np.outer(x, x) - np.outer(z, z)) for x, z in pairs]
    e1, e2 = np.eye(4)[:2]
    assert max(moved) <= np.linalg.norm(np.outer(e1, e1) - np.outer(e2, e2)) == pytest.approx(math.sqrt(2))


def test_one_record_moves_a_pooled_median_from_end_to_end():
    half = np.repeat([0.0, 1.0], 50)
    assert np.median(np.append(half, 0.0)) == 0.0 and np.median(np.append(half, 1.0)) == 1.0


def test_the_first_versions_peeling_has_four_per_cent_too_little_noise():
    delta = 1e-4
    assert math.sqrt(math.log(1 / delta) / math.log(2 / delta)) == pytest.approx(0.964, abs=5e-4)


def test_swapped_scatters_find_the_direction_that_tells_the_classes_apart_least():
    """Means apart along the first axis; within-class over between-class scatter leads anywhere but there."""
    within, between = np.eye(3), np.diag([4.0, 0.1, 0.1])
    right, swapped = (
        np.linalg.eigh(np.linalg.solve(b, a))[1][:, -1] for a, b in ((between, within), (within, between))
    )
    assert abs(right[0]) == pytest.approx(1.0) and abs(swapped[0]) == pytest.approx(0.0, abs=1e-12)


def test_an_uncentred_between_class_scatter_follows_a_shift_of_all_records():
    means, shift = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.0, 10.0])
    leading = [np.linalg.eigh((means + s).T @ (means + s))[1][:, -1] for s in (0.0, shift)]
    assert abs(leading[0] @ leading[1]) < 1e-12


def test_sigma_xy_in_both_corners_is_not_symmetric():
    cross = np.array([[0.0, 0.8], [0.2, 0.0]])
    printed, right = (np.block([[np.zeros((2, 2)), cross], [low, np.zeros((2, 2))]]) for low in (cross, cross.T))
    assert (right == right.T).all() and not (printed == printed.T).all()


def test_a_noisy_b_has_no_real_square_root():
    noise = np.random.default_rng(7).standard_normal((10, 10)) * 0.5
    upper = np.triu(noise)
    noisy = np.eye(10) + upper + np.triu(noise, 1).T
    assert np.linalg.eigvalsh(noisy).min() < 0
