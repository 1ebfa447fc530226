"""One worked number for each entry of docs/explanation/errata.md that has one."""

import csv
import math
import re
import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from sfumato import SIR, PrivacyWarning, limits, subspace_distance
from sfumato.privacy.accounting import gdp_delta, gdp_mu
from sfumato.research.fsir import _means, fsir_paper, pseudo_values
from sfumato.research.he_tables import SLICES, TRUNCATION, delta_of
from sfumato.research.study import printed_table
from sfumato.simulate import he, xia


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


def test_the_first_versions_peeling_has_noise_enough_by_joint_composition():
    """s selections of epsilon_0 and s values of epsilon_0 / 2 each, by advanced composition at the same delta."""
    epsilon, delta, s = 1.0, 1e-4, 6
    each = epsilon / math.sqrt(3 * s * math.log(1 / delta))  # 2 lambda over the Laplace scale
    costs = np.array([each] * s + [each / 2] * s)
    total = math.sqrt(2 * math.log(1 / delta) * (costs**2).sum()) + (costs * np.expm1(costs)).sum()
    assert 0.91 < total < 1.0


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


def test_the_gradient_of_the_penalised_problem_has_twice_the_penalty_printed():
    """Central differences of -tr(B'MB) + penalty |B'SB - I|^2 at a random B; the problem is of degree four."""
    rng = np.random.default_rng(8)
    p, k, penalty, h = 4, 2, 0.7, 1e-4
    root, base, B = rng.normal(size=(p, p)), rng.normal(size=(p, p)), rng.normal(size=(p, k))
    M, S = root @ root.T, base @ base.T

    def loss(B):
        excess = B.T @ S @ B - np.eye(k)
        return -np.trace(B.T @ M @ B) + penalty * (excess**2).sum()

    steps = [np.eye(p * k)[i].reshape(p, k) * h for i in range(p * k)]
    slope = np.array([(loss(B + step) - loss(B - step)) / (2 * h) for step in steps]).reshape(p, k)
    right, printed = (-2 * M @ B + c * penalty * S @ B @ (B.T @ S @ B - np.eye(k)) for c in (4, 2))
    assert np.abs(slope - right).max() < 1e-3 < 1 < np.abs(slope - printed).max()


def test_the_minimiser_of_lemma_g3_is_that_of_half_the_penalty():
    """B = V (I + L / penalty)^(1/2) makes -2MB + 2 penalty SB(B'SB - I) vanish, the printed gradient."""
    values, penalty = np.array([0.8, 0.3]), 0.5
    B = np.eye(3)[:, :2] * np.sqrt(1 + values / penalty)
    M, S = np.diag([0.8, 0.3, 0.0]), np.eye(3)
    gradient = {c: -2 * M @ B + c * penalty * S @ B @ (B.T @ S @ B - np.eye(2)) for c in (2, 4)}
    assert np.abs(gradient[2]).max() < 1e-12 < 0.1 < np.abs(gradient[4]).max()


def slice_means(model: str = "III", n: int = 5000, slices: int = 6) -> np.ndarray:
    sample = he(model, n=n, random_state=0)
    label = np.searchsorted(np.quantile(sample.y, np.arange(1, slices) / slices), sample.y, side="right")
    return np.clip(sample.x, -2, 2).T @ np.eye(slices)[label] / n


def test_mvg_ratios_as_printed_pass_their_own_bound_hundreds_of_times():
    """||D^-1||_F = bound * |r|_F, so |r|_F must be at most one; with the inverse inside the sum it is."""
    values = pseudo_values(np.linalg.svd(slice_means(), compute_uv=False), 10)
    printed, normalised = (1 / values / total for total in (values.sum(), (1 / values).sum()))
    assert np.linalg.norm(normalised) <= 1.0
    assert np.linalg.norm(printed) > 400  # so the noise is more than 20 times too small


def test_the_printed_mvg_column_needs_the_misprint():
    """III, n = 5000, K = 10, epsilon = 1: printed 0.151."""
    sample = he("III", n=50_000, noise=0.5, random_state=0)
    label = np.searchsorted(np.quantile(sample.y, np.arange(1, 6) / 6), sample.y, side="right")
    sites = list(zip(np.split(sample.x, 10), np.split(label, 10), strict=True))
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for normalised in (False, True):
            losses = []
            for seed in range(6):
                options = {"truncation": 2.1, "smallest": 833, "normalised": normalised}
                rng = np.random.default_rng(seed)
                b, _ = fsir_paper(sites, 2, 6, 1.0, 10 / 834**1.1, "mvg", rng=rng, **options)
                losses.append(subspace_distance(b, sample.directions))
            found[normalised] = np.mean(losses)
    assert found[False] < 0.25 and found[True] > 1.0


def test_step_eight_uploads_means_of_records_that_were_not_truncated():
    """One record far away moves the upload by as much as it is far, whatever the truncation level."""
    x = np.random.default_rng(0).normal(size=(300, 4))
    far = x.copy()
    far[0] = 1e6
    label = np.arange(300) % 3
    means = [_means(z, label, 3, 1.0, 0.01, "mvg", 2.0, 100, True, np.random.default_rng(1)) for z in (x, far)]
    assert np.abs(means[1] - means[0]).max() > 1e6 / 300 / 2


def test_p_over_n_vanishing_does_not_make_the_noise_of_the_covariance_vanish():
    assert [limits.fsir_covariance_noise(n, n**0.9, 1.0, 1e-5) for n in (1e4, 1e6, 1e8)] == sorted(
        limits.fsir_covariance_noise(n, n**0.9, 1.0, 1e-5) for n in (1e4, 1e6, 1e8)
    )


def test_the_least_number_of_records_lacks_a_factor_two():
    """Noise of Proposition 2 at a slice of that many records is twice what is tolerated."""
    epsilon, delta, p, truncation, tolerated = 0.5, 1e-3, 10, 1.5, 0.2
    least = truncation * math.sqrt(p * math.log(1 / delta)) / (tolerated * epsilon)
    noise = 2 * truncation * math.sqrt(p) / least * math.sqrt(math.log(1 / delta)) / epsilon
    assert noise == pytest.approx(2 * tolerated)


def test_a_ratio_of_means_may_exceed_the_mean_of_ratios():
    """What the proof of Lemma C.1 takes to be impossible."""
    a, b = np.array([1.0, 9.0]), np.array([1.0, 3.0])
    assert a.mean() / b.mean() > (a / b).mean()


def test_the_start_of_dp_gep_costs_twice_its_budget():
    rho, n, c = 0.1, 1000, 2.0
    variance = c**2 / (2 * n**2 * rho)
    one_matrix = (c / n) ** 2 / (2 * variance)
    assert one_matrix == pytest.approx(rho)  # and there are two matrices
    step = c**2 * 7 / (n**2 * rho)
    assert 7 * 2 * (c / n) ** 2 / (2 * step) == pytest.approx(rho)  # the flow's seven steps cost rho


@pytest.mark.parametrize(("s", "true_delta"), [(1, 4e-8), (8, 1.2e-3), (64, 0.10)])
def test_iht_labels_reach_further_than_their_noise_is_made_for(s: int, true_delta: float):
    """C = 1, (1, 1e-5) claimed: noise for |y| <= 2, but |<theta, x>| + C reaches sqrt(s) + 1."""
    sigma = math.sqrt(32 * math.log(1.25 / 1e-5))
    assert gdp_delta(2 * (math.sqrt(s) + 1) / sigma, 1.0) == pytest.approx(true_delta, rel=0.1)


def test_the_captions_delta_lets_every_thirteenth_record_be_published():
    """Publishing each record with probability delta is (0, delta)-private; n delta records are expected."""
    assert delta_of(500, SLICES) == pytest.approx(0.0764, abs=5e-5)
    expected = {n: n * delta_of(n, SLICES) for n in TRUNCATION}
    assert expected[500] == pytest.approx(38.2, abs=0.1) and min(expected.values()) > 30


def test_what_is_printed_in_parentheses_cannot_be_standard_errors():
    """Distances to one direction lie in [0, sqrt(2)]: they deviate by half of that at most, means of 400 by a 20th."""
    text = files("sfumato.research").joinpath("he_tables.csv").read_text(encoding="utf-8")
    printed = [float(row["std"]) for row in csv.DictReader(text.splitlines()) if row["model"] in ("I", "II")]
    most = math.sqrt(2) / 2 / math.sqrt(400)
    assert most == pytest.approx(0.0354, abs=5e-5)
    assert max(printed) == 0.344 and sum(value > most for value in printed) > len(printed) / 2


def test_no_step_size_meets_the_assumption_of_the_flows_theorems():
    """nu < 1/2 with eta lambda_max(B) < 1 / (1 + c): nu is above sqrt(7/8) whatever is chosen."""
    rng = np.random.default_rng(0)
    c, gamma, condition = rng.random(100_000), rng.random(100_000), 10 ** rng.uniform(0, 4, 100_000)
    smallest = 10 ** rng.uniform(-4, 4, 100_000)
    eta = rng.random(100_000) / ((1 + c) * smallest * condition)  # of B's largest eigenvalue
    upper = (1 + c) / (1 - c)
    nu = np.sqrt(1 - (1 + c) / 8 * eta * smallest * (1 - gamma) / (upper * condition + gamma))
    assert nu.min() > math.sqrt(7 / 8) > 0.5


def test_the_oracles_column_of_m2_is_that_of_half_the_records_its_rows_name():
    """Table 2, (2000, 2000) and (4000, 2000): 0.082 and 0.059; the text has n of 1000 and 2000."""
    found = {}
    for n in (1000, 2000, 4000):
        samples = (xia("M2", n=n, p=6, high_dimensional=True, random_state=seed) for seed in range(40))
        losses = [subspace_distance(SIR(1, n_slices=10).fit(s.x, s.y).directions_, s.directions) for s in samples]
        found[n] = np.mean(losses), np.std(losses) / math.sqrt(40)
    for row in (2000, 4000):
        printed = printed_table("002", 2)["M2", row, 2000]["Oracle-SIR"]
        by_text, by_table = found[row // 2], found[row]
        assert abs(by_text[0] - printed) < 3 * by_text[1]
        assert abs(by_table[0] - printed) > 5 * by_table[1]


def test_a_mean_number_of_directions_below_two_is_a_loss_by_itself():
    """A rounded mean of 1.8 needs one direction in at least 15 % of the runs, and one is at least 1 away from two."""
    printed = [values for (model, *_), values in printed_table("002", 1).items() if model in ("M3", "M4")]
    low = [values for values in printed if values["k-hat"] == 1.8]
    assert len(printed) == 8 and len(low) == 6
    assert all(min(value for name, value in values.items() if name != "k-hat") >= 0.15 for values in low)
    rng = np.random.default_rng(0)
    for _ in range(100):
        one, two = (np.linalg.qr(rng.normal(size=(5, k)))[0].T for k in (1, 2))
        assert subspace_distance(one, two) >= 1.0 - 1e-9


def test_a_step_on_a_part_needs_t_over_n_and_not_its_root():
    """Lemma 3: a mean over one of T parts moves T times as far as a mean over all, whatever the record."""
    n, parts = 400, 8
    x = np.random.default_rng(9).uniform(-1, 1, n)
    moved = x.copy()
    moved[0] = -x[0]
    whole, part = (abs(z[:m].mean() - w[:m].mean()) for m in (n, n // parts) for z, w in ((x, moved),))
    assert part / whole == pytest.approx(parts)
    assert parts > math.sqrt(parts)


def test_the_short_version_names_every_mistake_of_the_long_one_and_tells_what_is_inferred():
    """The last entry is no mistake but a hint."""
    pages = Path(__file__).parents[2] / "docs/explanation"
    whole, short = ((pages / name).read_text(encoding="utf-8") for name in ("errata.md", "errata-short.md"))
    entries = re.findall(r"^(\d+)\. \*\*", whole, re.MULTILINE)
    assert entries == [str(number) for number in range(1, len(entries) + 1)]
    assert set(re.findall(r"\[(\d+)\](?!\()", short)) == set(entries[:-1])
    assert short.count("Proved:") == whole.count("\n## ") == 4
    assert short.count("Inferred:") == whole.count("*Inferred.*") == 2
