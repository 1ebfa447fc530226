"""Label privacy: only randomised answers reach the analyst, and they are enough."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import LabelPrivateIHT, LabelPrivateSIR, subspace_distance
from sfumato.errors import BudgetError, InputError
from sfumato.local import NumberRandomiser, SliceRandomiser
from sfumato.local.forms import from_text, to_text
from sfumato.methods.label_iht import Squares, threshold
from sfumato.privacy.noise import SeededNoise
from sfumato.simulate import xia


@parametrize_with_checks(
    [
        LabelPrivateSIR(),
        LabelPrivateSIR(epsilon=3.0, edges=[0.0], n_active="auto", random_state=3),
        LabelPrivateSIR(waves=4),
        LabelPrivateIHT(),
        LabelPrivateIHT(n_active=2, delta=1e-6, mechanism="gaussian"),
    ]
)
def test_scikit_learns_conventions_hold(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("epsilon", "bar"), [(1.0, 0.13), (3.0, 0.05)])
def test_the_mean_distance_on_m1_is_below_the_bar(epsilon, bar):
    losses = []
    for seed in range(8):
        sample = xia("M1", n=20_000, p=15, random_state=100 + seed)
        fitted = LabelPrivateSIR(epsilon, 1, random_state=seed).fit(sample.x, sample.y)
        losses.append(subspace_distance(fitted.directions_, sample.directions))
    assert np.mean(losses) < bar


def test_the_analyst_gives_the_same_directions_from_the_answers_alone():
    sample = xia("M1", n=5_000, p=5, random_state=0)
    form = SliceRandomiser(2.0, edges=[-1.0, 1.0])
    together = LabelPrivateSIR(2.0, 1, edges=[-1.0, 1.0], random_state=5).fit(sample.x, sample.y)
    answers = form.randomize(sample.y, SeededNoise(5))
    apart = LabelPrivateSIR(n_directions=1).fit(sample.x, answers)
    assert np.array_equal(together.directions_, apart.directions_)
    assert apart.form_ == form


def test_the_guarantee_says_what_is_protected_and_what_is_not():
    sample = xia("M1", n=500, p=3, random_state=0)
    ledger = LabelPrivateSIR(1.0, edges=[0.0]).fit(sample.x, sample.y).ledger_
    assert (
        "label" in ledger.guarantee and "x are public" in ledger.guarantee and "epsilon = 1 (pure)" in ledger.guarantee
    )
    number = LabelPrivateIHT(0.5, 1e-6, (-9, 9), mechanism="gaussian").fit(sample.x, sample.y).ledger_
    assert number.total() == pytest.approx(0.5, rel=1e-9) and "delta = 1e-06" in number.guarantee


def test_a_rehearsal_has_no_guarantee():
    sample = xia("M1", n=500, p=3, random_state=0)
    ledger = LabelPrivateSIR(1.0, edges=[0.0], random_state=1).fit(sample.x, sample.y).ledger_
    assert ledger.total() == float("inf") and ledger.guarantee.startswith("No privacy")


def test_the_pilot_costs_nobody_more_than_epsilon_and_finds_the_middle():
    sample = xia("M1", n=20_000, p=4, random_state=2)
    fitted = LabelPrivateSIR(1.0, 1, random_state=0).fit(sample.x, sample.y * 1e6 + 3e7)
    assert [entry.event.epsilon for entry in fitted.ledger_.entries] == [1.0, 1.0]
    assert 0.25 < np.mean(sample.y * 1e6 + 3e7 < fitted.form_.edges[0]) < 0.75


def test_two_directions_are_found_from_randomised_labels():
    losses = []
    for seed in range(2):
        sample = xia("M3", n=20_000, p=8, random_state=seed)
        fitted = LabelPrivateSIR(3.0, 2, random_state=seed).fit(sample.x, sample.y)
        losses.append(subspace_distance(fitted.directions_, sample.directions))
    assert np.mean(losses) < 0.2


def test_refining_helps_and_never_needs_a_label_again():
    plain, sharp = [], []
    for seed in range(4):
        sample = xia("M2", n=20_000, p=10, random_state=seed)
        answers = SliceRandomiser(1.0, [float(np.median(sample.y))]).randomize(sample.y, SeededNoise(seed))
        for refine, losses in ((False, plain), (True, sharp)):
            fitted = LabelPrivateSIR(n_directions=1, refine=refine).fit(sample.x, answers)
            losses.append(subspace_distance(fitted.directions_, sample.directions))
    assert np.mean(sharp) < 0.9 * np.mean(plain)


def test_the_sparse_version_finds_the_features_among_many():
    sample = xia("M2", n=2_000, p=1_000, high_dimensional=True, random_state=1)
    fitted = LabelPrivateSIR(3.0, 1, n_active="auto", random_state=0).fit(sample.x, sample.y)
    assert {0, 1} <= set(fitted.active_) and len(fitted.active_) < 20
    assert subspace_distance(fitted.directions_, sample.directions) < 0.35


def test_classes_are_randomised_as_they_are():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6_000, 4))
    y = np.where(x[:, 1] + 0.3 * rng.standard_normal(6_000) > 0, "yes", "no")
    fitted = LabelPrivateSIR(1.0, 1, classes=["no", "yes"], random_state=1).fit(x, y)
    assert subspace_distance(fitted.directions_, [0, 1, 0, 0]) < 0.3
    with pytest.raises(InputError, match="classes must be given"):
        LabelPrivateSIR().fit(x, y)


def test_iht_finds_the_support_and_the_coefficients():
    rng = np.random.default_rng(1)
    x = rng.choice([-1.0, 1.0], (20_000, 200))
    theta = np.zeros(200)
    theta[[5, 50, 120]] = (0.6, -0.5, 0.5)
    y = x @ theta + rng.uniform(-0.3, 0.3, len(x))
    given = LabelPrivateIHT(1.0, response_range=(-2, 2), n_active=3, random_state=1).fit(x, y)
    assert given.active_.tolist() == [5, 50, 120]
    assert np.linalg.norm(given.coef_ - theta) < 0.12
    found = LabelPrivateIHT(1.0, response_range=(-2, 2), random_state=1).fit(x, y)
    assert {5, 50, 120} <= set(found.active_) and len(found.active_) <= 5


def test_the_printed_sign_would_go_uphill():
    rng = np.random.default_rng(0)
    x, theta = rng.standard_normal((500, 20)), np.zeros(20)
    theta[3] = 1.0
    y = x @ theta
    gradient = x.T @ (y - x @ np.zeros(20)) / len(x)
    printed, mended = -0.5 * gradient, 0.5 * gradient
    assert np.linalg.norm(printed - theta) > 1.0 > np.linalg.norm(mended - theta)
    assert np.linalg.norm(threshold(Squares.of(x, y), 1).theta - theta) < 1e-12


@pytest.mark.parametrize(
    ("estimator", "word"),
    [
        (LabelPrivateSIR(epsilon=-1.0), "epsilon"),
        (LabelPrivateSIR(n_slices=1), "n_slices"),
        (LabelPrivateSIR(pilot=2.0), "pilot"),
        (LabelPrivateSIR(edges=[0.0], n_active=-3), "n_active"),
        (LabelPrivateIHT(response_range=(1.0, 0.0)), "lower"),
        (LabelPrivateIHT(response_range=3.0), "response_range"),
        (LabelPrivateIHT(mechanism="gaussian"), "delta"),
        (LabelPrivateIHT(n_active=0), "n_active"),
    ],
)
def test_what_cannot_be_is_refused_by_name(estimator, word):
    x = np.random.default_rng(0).standard_normal((50, 3))
    with pytest.raises((InputError, BudgetError), match=word):
        estimator.fit(x, x[:, 0])


def test_each_estimator_refuses_the_others_answers():
    x = np.random.default_rng(0).standard_normal((50, 3))
    with pytest.raises(InputError, match="LabelPrivateIHT"):
        LabelPrivateSIR().fit(x, NumberRandomiser(-1, 1, 1.0).randomize(x[:, 0]))
    with pytest.raises(InputError, match="LabelPrivateSIR"):
        LabelPrivateIHT().fit(x, SliceRandomiser(1.0, [0.0]).randomize(x[:, 0]))


def test_two_declared_classes_are_randomised_over_two_answers():
    form = LabelPrivateSIR(1.0, 1, classes=["no", "yes"], random_state=1)
    fitted = form.fit(np.random.default_rng(0).normal(size=(200, 2)), ["no", "yes", "perhaps", "no"] * 50)
    assert fitted.form_.n_slices == 2 and fitted.form_.kept == pytest.approx(np.e / (1 + np.e))  # 0.731, not 0.576
    assert SliceRandomiser(1.0, classes=["no", "yes"]).slices(["yes", "perhaps", "no"]).tolist() == [1, 1, 0]
    assert SliceRandomiser(1.0, classes=["no", "yes"], others=True).slices(["perhaps"]).tolist() == [2]


def test_files_of_answers_keep_the_meaning_they_were_written_with():
    old = (
        '{"version": 1, "response": "y", "rehearsal": false, "form": {"kind": "slices", "epsilon": 1.0, "edges": null, '
    )
    assert from_text(old + '"classes": ["a", "b"]}}')[0].n_slices == 3
    for others in (True, False):
        form = SliceRandomiser(1.0, classes=["a", "b"], others=others)
        assert from_text(to_text(form.randomize(["a"]), "y"))[0] == form


@pytest.mark.parametrize("refine", [False, True])
def test_eigenvalues_are_those_of_the_true_slices_however_unequal(refine):
    """y = index + noise, a fifth of it above the edge: phi(c)^2 / (0.2 * 0.8) of R squared is between the slices."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(200_000, 3))
    y = x[:, 0] + 1.2 * rng.normal(size=len(x))
    edge = norm.ppf(0.8) * np.sqrt(2.44)
    fitted = LabelPrivateSIR(1.0, 1, edges=[edge], refine=refine, random_state=2).fit(x, y)
    assert fitted.eigenvalues_[0] == pytest.approx(norm.pdf(norm.ppf(0.8)) ** 2 / 0.16 / 2.44, abs=0.012)
