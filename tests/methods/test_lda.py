"""PrivateLDA: directions that tell classes apart, and a rule that names them."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Bounds, PrivateLDA, SfumatoError, subspace_distance
from sfumato.datasets import load_pendigits

BOX = Bounds(-8, 8)
NAMES = ["ash", "elm", "oak"]


@parametrize_with_checks(
    [
        PrivateLDA(bounds=bounds, classes=classes, random_state=0)
        for bounds, classes in (("search", None), ("search", [0, 1, 2]))
    ]
)
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


def trees(n=10_000, p=6, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3, n)
    centres = np.zeros((3, p))
    centres[1, 0], centres[2, 1] = 2.5, 2.5
    mix = np.eye(p) + 0.3 * rng.normal(size=(p, p))
    return (rng.normal(size=(n, p)) + centres[code]) @ mix.T, np.array(NAMES)[code], np.linalg.inv(mix)[:2]


@pytest.mark.parametrize("options", [{"bounds": Bounds(0, 100)}, {}], ids=["given", "found"])
def test_digits_are_told_apart_nearly_as_well_as_without_privacy(options):
    table = load_pendigits().to_pandas()
    test, features = table["test"] == 1, list(table.columns[:16])
    x, y = table.loc[~test, features].to_numpy(float), table.loc[~test, "digit"].to_numpy()
    other, truth = table.loc[test, features].to_numpy(float), table.loc[test, "digit"].to_numpy()
    plain = LinearDiscriminantAnalysis().fit(x, y).score(other, truth)
    models = [PrivateLDA(classes=list(range(10)), n_directions=9, **options).fit(x, y) for _ in range(3)]
    kept = np.mean([(model.predict(other) == truth).mean() for model in models]) / plain
    assert kept > 0.95


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("classes", [NAMES, None], ids=["declared", "found"])
def test_both_directions_of_three_classes_are_found(classes, relation):
    x, y, true = trees()
    lda = PrivateLDA(bounds=BOX, classes=classes, relation=relation).fit(x, y)
    assert lda.directions_.shape == (2, 6)  # chosen, not told
    assert subspace_distance(lda.directions_, true) < 0.3
    assert lda.ledger_.total() == pytest.approx(1.0, abs=1e-6)
    assert lda.priors_ == pytest.approx(np.full(3, 1 / 3), abs=0.05) and lda.centres_.shape == (3, 2)


def test_without_noise_it_is_the_textbook():
    x, y, _ = trees(6_000)
    lda = PrivateLDA(rho=1e10, n_directions=2, bounds=Bounds(-30, 30), classes=NAMES, random_state=0).fit(x, y)
    plain = LinearDiscriminantAnalysis(solver="eigen").fit(x, y)
    assert subspace_distance(lda.directions_, plain.scalings_[:, :2].T) < 0.1  # clipping alone
    assert (lda.predict(x) == plain.predict(x)).mean() > 0.98


def test_numbers_are_classes_too_and_records_of_undeclared_ones_are_ignored():
    x, y, _ = trees()
    code = np.searchsorted(NAMES, y)
    lda = PrivateLDA(bounds=BOX, classes=[0, 1]).fit(x, code)
    assert set(lda.predict(x)) <= {0, 1}
    kept = code < 2
    assert (lda.predict(x[kept]) == code[kept]).mean() > 0.8
    assert len(PrivateLDA(bounds=BOX).fit(x, code).centres_) == 3


def test_predict_is_there_only_if_the_classes_have_names():
    assert not hasattr(PrivateLDA(), "predict") and hasattr(PrivateLDA(classes=NAMES), "predict")


def test_the_plan_tells_everything_beforehand():
    x, y, _ = trees(300)
    lda = PrivateLDA(classes=NAMES, bounds="search")
    assert [row[0] for row in lda.explain(300, 6).rows()] == [entry.purpose for entry in lda.fit(x, y).ledger_]


REFUSED = {
    "directions": ({"n_directions": 0}, "n_directions must be"),
    "bounds": ({"bounds": 3}, "bounds must be"),
    "classes": ({"classes": "ash"}, "classes must be"),
    "rho": ({"rho": -1}, "rho must be"),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_parameters_are_refused_and_nothing_is_spent(options, words, unspent):
    x, y, _ = trees(50)
    with pytest.raises(SfumatoError, match=words):
        PrivateLDA(ledger=unspent, **options).fit(x, y)
    with pytest.raises(SfumatoError, match="requires y"):
        PrivateLDA(ledger=unspent).fit(x)


EDGES = {
    "one record": (np.ones((1, 3)), np.array(["a"])),
    "one class": (np.random.default_rng(0).normal(size=(20, 3)), np.full(20, "only")),
    "all different": (np.random.default_rng(0).normal(size=(20, 3)), np.array([f"name {i}" for i in range(20)])),
    "equal records": (np.full((50, 3), 7.0), np.full(50, 2)),
    "huge": (np.where(np.eye(3)[np.arange(60) % 3] > 0, 1.7e308, -1.7e308), np.arange(60) % 2),
    "wide": (np.random.default_rng(0).normal(size=(4, 30)), np.arange(4)),
    "fractions": (np.random.default_rng(0).normal(size=(20, 3)), np.linspace(0, 1, 20)),
}


@pytest.mark.parametrize("classes", [None, ["a", "b"]], ids=["found", "declared"])
@pytest.mark.parametrize("name", EDGES)
def test_nothing_inside_the_domain_raises_or_warns(name, classes):
    x, y = EDGES[name]
    for bounds in ("search", Bounds(-1, 1)):
        for relation in ("replace", "add-remove"):
            for epsilon in (0.01, 1.0, 100.0):
                lda = PrivateLDA(epsilon, bounds=bounds, relation=relation, classes=classes).fit(x, y)
                for released in (lda.directions_, lda.eigenvalues_, lda.mean_, lda.centres_, lda.standard_errors_):
                    assert np.isfinite(released).all()
                assert lda.verdict_.level in ("noise", "weak", "reliable")


def test_classes_that_nobody_has_explain_nothing_even_where_records_lie_far_from_their_box_centre():
    """Noise of a class mean is about 0.03 here (20 over an eighth of the records); squared, in 4 features: 0.004."""
    rng = np.random.default_rng(0)
    x = rng.exponential(1.0, (6_000, 4))
    mistyped = PrivateLDA(epsilon=1.0, delta=1e-6, bounds=Bounds(0, 8), classes=["A", "B"], random_state=1)
    assert mistyped.fit(x, np.where(x[:, 0] > 1, "a", "b")).eigenvalues_.max() < 0.02
