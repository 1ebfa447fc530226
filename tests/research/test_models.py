"""The simulated models are the papers': moments, truncation, links, true directions, SIR's printed loss."""

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.errors import InputError
from sfumato.methods.reference import SIR
from sfumato.research.models import _banded, ar1
from sfumato.simulate import he, xia
from sfumato.steps.subspace import subspace_distance

N = 100_000
# Five standard deviations of a sample correlation or of a mean of N terms of variance one.
FIVE_SD = 5 / np.sqrt(N)

XIA = {
    "M1": lambda b, x, e: x @ b[0] + e,
    "M2": lambda b, x, e: np.exp(x @ b[1]) + e,
    "M3": lambda b, x, e: 25 * (x @ b[2]) / (1 + (x @ b[3] + 1) ** 2) + 0.1 * e,
    "M4": lambda b, x, e: np.sin(x @ b[2]) * np.exp(x @ b[3] + e),
}


def _clipped_variance(c):
    """Variance of a standard normal moved into [-c, c]."""
    return 1 - 2 * norm.sf(c) - 2 * c * norm.pdf(c) + 2 * c**2 * norm.sf(c)


def _is_standard_normal(e):
    assert abs(e.mean()) < FIVE_SD
    assert abs(e.var() - 1) < FIVE_SD * np.sqrt(2)
    assert abs((e**3).mean()) < FIVE_SD * np.sqrt(15)


@pytest.mark.parametrize("model", XIA)
@pytest.mark.parametrize("version", ["newest", "first"])
def test_the_response_is_the_papers_formula(model, version):
    sample = xia(model, 200, 5, version=version, random_state=3)
    rng = np.random.default_rng(3)  # the same draws in the same order: coefficients, x, noise
    b = np.zeros((4, 5))
    b[:, :2] = rng.uniform(-10, 10, (4, 2))
    rng.standard_normal((200, 5))
    np.testing.assert_allclose(sample.y, XIA[model](b, sample.x, rng.standard_normal(200)), rtol=1e-12)
    used = {"M1": b[:1], "M2": b[1:2]}.get(model, b[2:])
    assert subspace_distance(sample.directions, used) < 1e-12
    np.testing.assert_allclose(sample.directions @ sample.directions.T, np.eye(len(used)), atol=1e-12)


@pytest.mark.parametrize(("version", "edge"), [("newest", 1.5), ("first", 1.0)])
def test_entries_are_normal_with_standard_deviation_one_half_moved_into_the_interval(version, edge):
    x = xia("M1", N, 6, version=version, random_state=0).x
    assert abs(x).max() == edge
    at_the_edge, expected = (abs(x) == edge).mean(axis=0), 2 * norm.sf(2 * edge)
    np.testing.assert_allclose(at_the_edge, expected, atol=5 * np.sqrt(expected / N))
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=0.5 * FIVE_SD)
    np.testing.assert_allclose(x.var(axis=0), 0.25 * _clipped_variance(2 * edge), atol=0.25 * 2 * FIVE_SD)


@pytest.mark.parametrize(("version", "reach"), [("newest", 9), ("first", 2)])
def test_correlations_halve_with_distance_up_to_the_versions_reach(version, reach):
    x = xia("M1", N, 8, version=version, random_state=1).x
    lag = abs(np.subtract.outer(np.arange(8), np.arange(8)))
    expected = np.where(lag <= reach, 0.5**lag, 0.0)
    # Moving the entries beyond two standard deviations in shrinks a correlation by less than 0.02.
    np.testing.assert_allclose(np.corrcoef(x.T), expected, atol=FIVE_SD + 0.02)


@pytest.mark.parametrize("p", [2, 3, 12])
def test_before_truncation_the_correlations_are_exact(p):
    lag = abs(np.subtract.outer(np.arange(p), np.arange(p)))
    for mix, expected in ((ar1, 0.5**lag), (_banded, np.where(lag <= 2, 0.5**lag, 0.0))):
        factor = mix(np.eye(p)).T
        np.testing.assert_allclose(factor @ factor.T, expected, atol=1e-14)


def test_high_dimensional_coefficients_are_all_between_minus_ten_and_minus_five():
    for seed in range(30):
        d = xia("M1", 5, 40, high_dimensional=True, random_state=seed).directions
        assert (d[0, :2] < 0).all()
        assert 0.5 < d[0, 0] / d[0, 1] < 2
        assert not d[:, 2:].any()
    first = [xia("M1", 5, 4, version="first", high_dimensional=True, random_state=s) for s in range(30)]
    assert any(s.directions[0, 0] > 0 for s in first)


@pytest.mark.parametrize(
    "simulate",
    [lambda seed: xia("M3", 10, 4, random_state=seed), lambda seed: he("II", 10, random_state=seed)],
)
def test_a_seed_repeats_the_sample_and_a_generator_goes_on(simulate):
    np.testing.assert_array_equal(simulate(5).y, simulate(5).y)
    rng = np.random.default_rng(5)
    first, second = simulate(rng), simulate(rng)
    np.testing.assert_array_equal(first.x, simulate(5).x)
    assert not np.array_equal(first.x, second.x)


@pytest.mark.parametrize(("model", "printed"), [("M1", 0.018), ("M2", 0.029)])
def test_ordinary_sir_has_the_mean_loss_that_the_newest_version_prints(model, printed):
    samples = (xia(model, 20_000, 15, random_state=seed) for seed in range(60))
    loss = [subspace_distance(SIR(1, n_slices=20).fit(s.x, s.y).directions_, s.directions) for s in samples]
    # Four standard errors of 60 replications (the paper has 1000), and its rounding to three digits.
    assert np.mean(loss) == pytest.approx(printed, abs=4 * np.std(loss) / np.sqrt(60) + 0.0005)


def test_model_one_is_the_side_of_a_plane():
    s = he("I", N, random_state=0)
    assert s.y.dtype == np.int64
    np.testing.assert_array_equal(s.y, s.x @ s.directions[0] < 0)
    assert (s.directions > 0).all()
    assert s.directions.max() / s.directions.min() < 2  # entries from (0.4, 0.8)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("model", "noise"),
    [
        ("II", lambda y, u: y - 1 / (0.5 + (u[0] + 1) ** 2)),
        ("III", lambda y, u: y - u[0] / (u[1] ** 3 + 1)),
        ("IV", lambda y, u: np.log(y / np.sin(u[0])) - u[1]),
    ],
)
def test_what_the_link_leaves_is_standard_normal_noise(model, noise, sparse):
    s = he(model, N, sparse=sparse, random_state=1)
    _is_standard_normal(noise(s.y, s.directions @ s.x.T))
    assert s.directions.shape == (1 if model == "II" else 2, 10)


def test_model_three_as_printed_has_one_index_only():
    s = he("III", N, as_printed=True, random_state=2)
    index = s.x @ s.directions[0]
    assert s.directions.shape == (1, 10)
    _is_standard_normal(s.y - index / (index**3 + 1))


@pytest.mark.parametrize(("model", "rho"), [("I", 0.0), ("II", 0.5), ("III", 0.0), ("IV", 0.5)])
def test_features_have_unit_variance_and_the_models_correlation(model, rho):
    x = he(model, N, random_state=3).x
    expected = np.where(np.eye(10, dtype=bool), 1, rho ** abs(np.subtract.outer(np.arange(10), np.arange(10))))
    np.testing.assert_allclose(np.cov(x.T), expected, atol=FIVE_SD * np.sqrt(2))


def test_model_five_is_the_inverse_regression_on_y_and_its_square():
    s = he("V", N, random_state=4)
    _is_standard_normal(s.y)
    noise = s.x - np.column_stack([s.y, s.y**2]) @ s.directions
    np.testing.assert_allclose(np.cov(noise.T), np.eye(10), atol=FIVE_SD * np.sqrt(2))
    np.testing.assert_allclose(noise.T @ s.y / N, 0, atol=FIVE_SD)


@pytest.mark.parametrize(("p", "active"), [(10, 5), (500, 5), (501, 10), (1000, 10)])
@pytest.mark.parametrize("model", ["I", "II", "III", "IV", "V"])
def test_sparse_models_use_the_first_features_only(model, p, active):
    directions = he(model, 5, p, sparse=True, random_state=5).directions
    assert np.flatnonzero(directions.any(axis=0)).tolist() == list(range(active))
    assert (np.count_nonzero(directions, axis=0) <= 1).all()


def test_the_printed_sparse_supports_overlap():
    printed = he("V", 5, 10, sparse=True, as_printed=True, random_state=6).directions
    b = np.zeros((2, 10))
    b[0, [0, 1, 2]] = b[1, [1, 2, 3, 4]] = 1  # features 1 to 3, and s - 3 = 2 to s = 5
    assert subspace_distance(printed, b) < 1e-12


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: xia("m1", 10, 5),
            "one of 'M1', 'M2', 'M3', 'M4', got 'm1'; did you mean 'M1'",
        ),
        (lambda: xia("linear", 10, 5), "model must be one of 'M1', 'M2', 'M3', 'M4', got 'linear'\\."),
        (lambda: xia("M1", 10, 5, version="new"), "version must be .* did you mean 'newest'"),
        (lambda: xia("M1", 10, 1), "p must be an integer of at least 2, got 1"),
        (lambda: xia("M1", 0, 5), "n must be an integer of at least 1, got 0"),
        (lambda: he("iii", 10), "did you mean 'III'"),
        (lambda: he(3, 10), "model must be one of 'I', 'II'"),
        (lambda: he("I", 10, 4, sparse=True), "p must be at least 5 when sparse=True, got 4"),
        (lambda: he("I", 10.0), "n must be an integer"),
    ],
)
def test_unknown_models_and_sizes_are_refused_by_name(call, says):
    with pytest.raises(InputError, match=says):
        call()
