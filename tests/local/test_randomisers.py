"""The device side keeps its promise: clipped first, never silent about NaN, audited by frequencies."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from sfumato.errors import BudgetError, InputError
from sfumato.local import NumberRandomiser, SliceRandomiser
from sfumato.local.location import find_edges, split
from sfumato.privacy.noise import SecureNoise, SeededNoise

RUNS = 200_000


def _interval(hits, runs, level=0.99):
    """Clopper-Pearson."""
    tail = (1 - level) / 2
    low = beta.ppf(tail, hits, runs - hits + 1) if hits else 0.0
    return low, beta.isf(tail, hits + 1, runs - hits) if hits < runs else 1.0


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("edges", [[0.0], [-1.0, 0.0, 1.0]])
def test_no_answer_separates_two_labels_by_more_than_epsilon(epsilon, edges):
    """Audit: for all pairs of labels the likelihood ratio of every answer is at most e^eps, at 99 % confidence."""
    form = SliceRandomiser(epsilon, edges)
    k = form.n_slices
    values = np.concatenate([[edges[0] - 1], np.asarray(edges)])
    counts = [np.bincount(form.randomize(np.full(RUNS, v), SecureNoise()).values, minlength=k) for v in values]
    reached = 0.0
    for a in range(k):
        for b in range(k):
            for c in range(k):
                low_a, _ = _interval(counts[a][c], RUNS, 1 - 0.01 / k**3)
                _, high_b = _interval(counts[b][c], RUNS, 1 - 0.01 / k**3)
                reached = max(reached, math.log(low_a / high_b))
    assert reached <= epsilon
    assert reached >= 0.9 * epsilon  # and the budget is used: no privacy is bought twice


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "two-point"])
def test_no_threshold_separates_two_numbers_by_more_than_the_budget(mechanism):
    """Audit on the worst pair, the two ends of the range, over a hundred thresholds: P_a <= e^eps P_b + delta."""
    epsilon, delta = 1.0, 1e-5 if mechanism == "gaussian" else 0.0
    form = NumberRandomiser(0.0, 10.0, epsilon, delta, mechanism)
    a, b = (form.randomize(np.full(RUNS, v), SecureNoise()).values for v in (-math.pi * 1e9, 1e200))
    for t in np.quantile(np.concatenate([a, b]), np.linspace(0.01, 0.99, 100)):
        for first, second in ((a <= t, b <= t), (b > t, a > t)):
            low, _ = _interval(int(first.sum()), RUNS, 1 - 0.01 / 200)
            _, high = _interval(int(second.sum()), RUNS, 1 - 0.01 / 200)
            assert low <= math.exp(epsilon) * high + delta


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "two-point"])
@pytest.mark.parametrize("value", [-2.0, 0.5, 3.0])
def test_a_number_is_unbiased_with_the_stated_spread(mechanism, value):
    form = NumberRandomiser(-2.0, 3.0, 1.5, 1e-6, mechanism)
    values = form.randomize(np.full(RUNS, value), SeededNoise(1)).values
    assert abs(values.mean() - value) < 4 * form.noise_std / math.sqrt(RUNS) + 1e-5
    assert values.std() < 1.02 * form.noise_std
    if mechanism != "two-point":
        assert values.std() > 0.98 * form.noise_std


def test_clipping_comes_before_noise():
    """Far outside and at the end of the range are the same answer, bit for bit, under the same noise."""
    for mechanism in ("gaussian", "laplace", "two-point"):
        form = NumberRandomiser(0.0, 1.0, 1.0, 1e-6, mechanism)
        far = form.randomize([1e12, -1e300], SeededNoise(4)).values
        near = form.randomize([1.0, 0.0], SeededNoise(4)).values
        assert np.array_equal(far, near)


@pytest.mark.parametrize("form", [SliceRandomiser(1.0, [0.0]), NumberRandomiser(0, 1, 1.0)])
@pytest.mark.parametrize("bad", [math.nan, [0.1, math.inf], [0.2, None]])
def test_a_missing_value_is_refused_in_a_sentence(form, bad):
    with pytest.raises(InputError, match=r"missing|numbers") as error:
        form.randomize(bad)
    assert "0.1" not in str(error.value) and "0.2" not in str(error.value)


def test_auto_takes_the_mechanism_with_the_least_noise():
    assert NumberRandomiser(-1, 1, 0.5).mechanism == "two-point"
    assert NumberRandomiser(-1, 1, 5.0).mechanism == "laplace"
    for epsilon in (0.3, 1.0, 2.0, 4.0, 8.0):
        stds = {m: NumberRandomiser(-1, 1, epsilon, 1e-6, m).noise_std for m in ("gaussian", "laplace", "two-point")}
        chosen = NumberRandomiser(-1, 1, epsilon, 1e-6)
        assert chosen.noise_std == min(stds.values())


def test_noise_is_below_the_papers_at_the_same_guarantee():
    """DP-IHT prints sigma^2 = 32 C^2 ln(1.25 / delta) / eps^2 for |y| <= 2 C (entry 33 of the errata)."""
    printed = math.sqrt(32 * math.log(1.25 / 1e-6))
    assert NumberRandomiser(-2, 2, 1.0, 1e-6, "gaussian").noise_std < 0.81 * printed
    assert NumberRandomiser(-2, 2, 1.0, 1e-6).noise_std < 0.21 * printed


def test_the_pilot_is_drawn_without_looking_and_leaves_everyone_one_question():
    asked, rest = split(1_000, 0.1, SeededNoise(0))
    assert len(asked) == 100 and sorted([*asked, *rest]) == list(range(1_000))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_the_pilot_finds_quantiles_at_any_scale(scale):
    y = np.random.default_rng(0).lognormal(size=3_000) * scale
    edges = find_edges(y, 4, 2.0, SeededNoise(1))
    assert np.abs(np.searchsorted(np.sort(y), edges) / len(y) - [0.25, 0.5, 0.75]).max() < 0.2


@pytest.mark.parametrize("y", [np.zeros(0), np.zeros(300), np.full(10, -7e5)])
def test_the_pilot_never_raises_on_what_y_is(y):
    edges = find_edges(y, 5, 1.0, SeededNoise(1))
    assert len(edges) == 4 and (np.diff(edges) > 0).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, "much", True])
def test_an_epsilon_that_protects_nobody_or_nothing_is_refused(bad):
    with pytest.raises(BudgetError, match="epsilon must be"):
        SliceRandomiser(bad, [0.0])


def test_forms_that_make_no_sense_are_refused():
    for arguments in ({}, {"edges": [1.0, 0.0]}, {"edges": [0.0], "classes": ["a"]}, {"edges": []}):
        with pytest.raises(InputError):
            SliceRandomiser(1.0, **arguments)
