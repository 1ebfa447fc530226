"""Bounds: the papers' rates, corrected where they are wrong, their conditions, constants only where one is known."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from sfumato import SIR, limits, subspace_distance
from sfumato.errors import InputError


def test_the_rates_are_those_printed():
    assert limits.sir(1000, 10, 0.5, 1e-9, 2.0).value == pytest.approx(10 / 2000 + 100 / (2 * 1e6 * 0.25))
    sparse = limits.sparse_sir(1000, 100, 3, 0.5, 1e-9)
    size = 3 * math.log(100)
    assert sparse.value == pytest.approx(size / 1000 + size**2 / (1e6 * 0.25))
    assert limits.sparse_pca(1000, 100, 3, 0.5, 1e-9).value == pytest.approx(sparse.value)
    assert limits.local_regression(1e6, 50, 0.5).value == pytest.approx(50 * math.log(50) / (1e6 * 0.25))
    assert limits.local_regression(1e6, 50, 0.5, interactive=True).value == pytest.approx(50 / (1e6 * 0.25))
    assert limits.local_regression(1e6, 50, 0.5, s=3).value == pytest.approx(150 * math.log(50) / (1e6 * 0.25))
    assert limits.local_regression(1e6, 50, 0.5, s=3, interactive=True).value == pytest.approx(150 / (1e6 * 0.25))
    assert limits.local_sum(1e6, 50, 0.5).value == pytest.approx(50 / (1e6 * 0.25))
    assert limits.label_regression(1e6, 50, 2, 0.5).value == pytest.approx(2 * math.log(25) / (1e6 * 0.25))
    assert limits.pca(1000, 10, epsilon=0.5).value == pytest.approx(0.01 + (10 / 500) ** 2)
    assert limits.pca(1000, 10, rho=0.5).value == pytest.approx(0.01 + 10 / (1e6 * 0.5))
    assert limits.sir_zcdp(1000, 10, 0.5, s=2).value == pytest.approx(2 * math.log(10) * (1e-3 + 1 / (1e6 * 0.5)))


def test_the_upper_rates_are_those_printed():
    n, log, tail = 20_000, math.log(20_000), math.log(1e5)
    assert limits.sir_upper(n, 15, 0.5, 1e-5, 0.5).value == pytest.approx(
        15 * log / (0.25 * n) + 225 * tail * log**7 / (0.25 * n**2 * 0.25)
    )
    assert limits.sir_start_upper(n, 15, 0.5, 1e-5).value == pytest.approx(15 / n + 15**3 * tail / (n**2 * 0.25))
    size = 2 * math.log(500)
    assert limits.sparse_sir_upper(n, 500, 2, 0.5, 1e-5).value == pytest.approx(
        size * log / n + size**2 * log**7 * tail / (n**2 * 0.25)
    )
    flow = limits.rayleigh_flow_upper(n, 500, 0.1, s=2, failure=0.1)
    assert flow.value == pytest.approx(size / n + size * log * math.log(10) / (n**2 * 0.1))
    assert limits.label_regression_upper(1e6, 500, 2, 0.5, 1e-5, steps=3).value == pytest.approx(
        4**-3 + size * tail / (1e6 * 0.25)
    )
    assert limits.fsir_kernel_upper(n, 10, 5, 0.5, 1e-5).value == pytest.approx(
        1 / 5 + 25 * 10 / n + 5 * math.sqrt(10 / n)
    )
    missed, kept = limits.fsir_filter_failures(100, 1000, 5, 6, 4)
    assert missed == pytest.approx(5 * 4**1.5 * (16 * 6 * math.exp(-100 / 6) / math.e**2) ** 2)
    assert kept == pytest.approx(missed * 995 / 5)


THEOREMS = {
    "Xia, Zhang and Cai": {"1", "2", "3", "4", "5", "B.6", "B.7", "appendix A"},
    "He, Zhang and Chen": {"4", "Lemma 5", "6", "8", "9", "10"},
    "Wang, Smith and Xu": {"1", "2", "3", "4", "5"},
    "Hu, Xiang, Liu and Wang": {"4", "8", "9", "10", "11", "12"},
}
"""Every theorem of the papers that states a loss, or what must vanish for a method to be consistent."""


def test_every_theorem_of_the_papers_is_a_function():
    page = (Path(__file__).parents[1] / "docs/explanation/limits.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|([^|]*)\| ([^|]+) \| (`[^|]+) \|$", page.split("## Theorem by theorem")[1], re.MULTILINE)
    found, paper = {name: set() for name in THEOREMS}, ""
    for name, theorems, functions in rows:
        paper = name.strip() or paper
        found[paper] |= set(theorems.split(", "))
        assert all(callable(getattr(limits, function.strip("`"))) for function in functions.split(", "))
    assert found == THEOREMS


def test_theorem_five_may_hold_where_its_bound_says_nothing():
    """Its conditions have log(n)^2, its bound log(n)^7."""
    bound = limits.sparse_sir_upper(20_000, 500, 2, 0.5, 1e-5)
    assert bound.holds and bound.value > 2.0


def test_the_flow_against_the_records_own_eigenvector_has_no_sampling_term():
    drawn, fixed = (limits.rayleigh_flow_upper(1e4, 20, 0.1, fixed_records=fixed) for fixed in (False, True))
    assert fixed.sampling == 0.0 < drawn.sampling and fixed.privacy == drawn.privacy
    approximate = limits.rayleigh_flow_upper(1e4, 20, epsilon=0.5, delta=1e-6, s=3)
    assert approximate.privacy == pytest.approx(
        3 * math.log(20) * math.log(1e4) * math.log(20) * 4 * math.log(1e6) / (1e8 * 0.25)
    )
    assert not limits.rayleigh_flow_upper(100, 20, 1e-6).holds
    for wrong in ({}, {"epsilon": 1.0}, {"rho": 1.0, "delta": 0.1}, {"rho": 1.0, "epsilon": 1.0, "delta": 0.1}):
        with pytest.raises(InputError, match="either rho or both epsilon and delta"):
            limits.rayleigh_flow_upper(100, 20, **wrong)


def test_the_excess_error_of_prediction_is_the_loss_where_x_are_signs():
    """So a bound of the one is a bound of the other: over all 2^4 signs E x x' is the identity."""
    signs = 2.0 * ((np.arange(16)[:, None] >> np.arange(4)) & 1) - 1.0
    truth, found = np.array([1.0, 0, 0, 0]), np.array([0.7, 0.1, 0, -0.2])
    assert np.mean((signs @ (found - truth)) ** 2) == pytest.approx(((found - truth) ** 2).sum())


def test_what_fsir_leaves_out_is_what_stays_large_where_p_is_nearly_n():
    terms = limits.fsir_terms(1e9, 1e9**0.5, 10, 1.0, 1e-5)
    assert terms["covariance"] < 1e-3 and terms["noise of the covariance"] < 1
    large = limits.fsir_terms(1e9, 1e9**0.9, 10, 1.0, 1e-5)
    assert large["covariance"] < 0.2 and large["noise of the covariance"] > 100
    assert (
        limits.fsir_sparse_terms(10, 1000, 5, 6, 4)["slices"]
        > 1
        > limits.fsir_sparse_terms(1e4, 1000, 5, 6, 4)["slices"]
    )


def test_no_upper_bound_lies_below_the_lower_bound_of_its_problem():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, p, epsilon = 10 ** rng.uniform(3, 7), rng.integers(3, 200), rng.uniform(0.05, 0.99)
        gap, delta = rng.uniform(0.05, 1.0), n**-1.1
        for upper in (limits.sir_upper, limits.sir_start_upper):
            assert upper(n, p, epsilon, delta, gap).value >= limits.sir(n, p, epsilon, delta, gap).value
        wide = (n, 50 * p, 3, epsilon, delta, gap)
        assert limits.sparse_sir_upper(*wide).value >= limits.sparse_sir(*wide).value
        assert limits.rayleigh_flow_upper(n, p, epsilon).value >= limits.sir_zcdp(n, p, epsilon).value
        assert limits.sir_upper(n, p, epsilon, delta, gap).side == "upper"


def test_the_loss_of_the_proofs_own_model_falls_as_one_over_lambda_and_not_as_its_square():
    """y = b'x + noise, the model of the proof of Theorem 1, by SIR with 10 slices: lambda 0.48 and 0.023."""
    n, p, scaled = 5_000, 5, []
    rng = np.random.default_rng(0)
    for variance in (1.0, 40.0):
        losses, gaps = [], []
        for _ in range(60):
            x = rng.standard_normal((n, p))
            y = x[:, 0] + math.sqrt(variance) * rng.standard_normal(n)
            sir = SIR(n_directions=1, n_slices=10).fit(x, y)
            losses.append(subspace_distance(sir.directions_, np.eye(p)[:1]) ** 2)
            z = norm.ppf(np.arange(1, 10) / 10)
            edges = norm.pdf(np.concatenate([[-np.inf], z, [np.inf]]))
            gaps.append(10 * np.sum(np.diff(edges) ** 2) / (1 + variance))
        scaled.append((np.mean(losses) * n / p, np.mean(gaps)))
    (strong, large), (weak, small) = scaled
    assert large / small > 20
    assert 1 / 3 < (weak * small) / (strong * large) < 3  # times lambda: the same order
    assert (weak * small**2) / (strong * large**2) < 1 / 8  # times its square: falls with lambda


def test_the_proofs_eigen_gap_exceeds_one_where_the_true_one_is_a_three_hundredth():
    """Noise of standard deviation 10, slices cut where one tenth lies above; the proof averages before conditioning."""
    sigma = 10.0
    c = norm.ppf(0.9)
    e = norm.ppf((np.arange(20_000) + 0.5) / 20_000) * sigma
    u = c * math.sqrt(1 + sigma**2) - e
    below, above = (np.mean(np.exp(norm.logpdf(u) - tail(u))) for tail in (norm.logcdf, norm.logsf))
    assert 0.9 * below**2 + 0.1 * above**2 == pytest.approx(18.3, abs=0.1)
    true = norm.pdf(c) ** 2 / (0.9 * 0.1) / (1 + sigma**2)
    assert true == pytest.approx(0.0034, abs=5e-5)


def test_a_theorem_says_when_its_conditions_fail():
    assert limits.sir(20_000, 15, 0.5, 1e-6).holds
    assert not limits.sir(20_000, 15, 2.0, 1e-6).holds
    assert not limits.sir(20_000, 15, 0.5, 0.01).holds
    assert not limits.sir(20, 15, 0.5, 1e-6).holds
    assert not limits.local_regression(1e6, 50, 1.0).holds
    assert not limits.pca(10, 100, rho=0.5).holds


def test_local_losses_never_exceed_the_size_of_the_ball():
    assert limits.local_regression(10, 1000, 0.1).value == 1.0


def test_only_the_label_bound_claims_a_constant_and_it_grows_without_limit_as_epsilon_falls():
    assert limits.label_direction(1e4, 10, 1.0).constant_known
    assert not limits.sir(1e4, 10, 0.5, 1e-6).constant_known
    without = limits.label_direction(1e4, 10, math.inf)
    assert without.privacy == 0.0
    ratio = limits.label_direction(1e4, 10, 0.01).value / without.value
    assert ratio == pytest.approx(4 / 0.01**2, rel=1e-3)


def test_hiding_x_too_costs_polynomially_more():
    labels, both = limits.label_regression(1e7, 1000, 1, 0.5), limits.local_regression(1e7, 1000, 0.5)
    assert both.value > 500 * labels.value


@pytest.mark.parametrize("bad", [{"n": 0.0}, {"p": -1.0}, {"epsilon": math.nan}])
def test_nonsense_is_refused(bad):
    with pytest.raises(InputError, match="must be positive"):
        limits.sir(**{"n": 100.0, "p": 3.0, "epsilon": 0.5, "delta": 1e-6, **bad})


def test_exactly_one_of_epsilon_and_rho():
    with pytest.raises(InputError, match="epsilon and rho"):
        limits.pca(100, 3)
    with pytest.raises(InputError, match="signal"):
        limits.label_direction(100, 3, 1.0, signal=1.0)


def channel(rng, inputs, outputs, epsilon):
    """A random channel whose rows differ by factors of at most e^epsilon, often exactly that."""
    columns = np.exp(epsilon * rng.choice([0.0, 1.0, rng.random()], (inputs, outputs))) * rng.random(outputs)
    for _ in range(200):  # rows to sum one, keeping every column within the factor: alternate the two
        columns /= columns.sum(axis=1, keepdims=True)
        columns = np.maximum(columns, columns.max(axis=0) * np.exp(-epsilon))
    q = columns / columns.sum(axis=1, keepdims=True)
    return q if (q.max(axis=0) / q.min(axis=0)).max() <= np.exp(epsilon) * (1 + 1e-9) else None


def kept_information(q, prior):
    """The largest part of the variance of a mean-zero function of the input that the output explains."""
    joint = prior[:, None] * q
    correlation = joint / np.sqrt(np.outer(prior, joint.sum(axis=0)))
    return np.linalg.svd(correlation, compute_uv=False)[1] ** 2


def test_no_private_channel_keeps_more_information_than_the_contraction_says():
    rng, tried = np.random.default_rng(0), 0
    for _ in range(2000):
        epsilon = float(rng.choice([0.1, 0.5, 1.0, 3.0]))
        q = channel(rng, int(rng.integers(2, 6)), int(rng.integers(2, 7)), epsilon)
        if q is not None:
            tried += 1
            assert kept_information(q, rng.dirichlet(np.ones(len(q)))) <= np.tanh(epsilon / 2) ** 2 * (1 + 1e-9)
    assert tried > 500


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response_on_a_fair_coin_attains_the_contraction(epsilon):
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    q = np.array([[truth, 1 - truth], [1 - truth, truth]])
    assert kept_information(q, np.array([0.5, 0.5])) == pytest.approx(np.tanh(epsilon / 2) ** 2)
    private, plain = (limits.label_direction(1e4, 10, e, 0.3).value for e in (epsilon, np.inf))
    assert plain / private == pytest.approx(kept_information(q, np.array([0.5, 0.5])))
