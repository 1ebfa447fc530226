"""Components, pairs and discriminants have forecasts too: right, quick and without data."""

import numpy as np
import pytest
from tests.clock import quickest

import sfumato as sf
from sfumato.forecast import IndexResponse, StandIn, forecast
from sfumato.forecast.populations import signed_normals
from sfumato.methods.cca import CorrelatedPairs
from sfumato.methods.lda import SeparatedClasses
from sfumato.methods.pca import SpikedCovariance
from sfumato.methods.second_order import EvenResponse
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Records
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.statistics.moments import Moments

BOX = sf.Bounds(-50, 50)
pytestmark = pytest.mark.filterwarnings("ignore:random_state")


def components(n, law, rng):
    q = np.linalg.qr(rng.standard_normal((law.n_features, law.n_features)))[0]
    return (rng.standard_normal((n, law.n_features)) * np.sqrt(law.variances)) @ q.T, q[:, : law.n_directions].T


def measured_components(n, law, estimator, replications):
    losses = []
    for seed in range(replications):
        x, true = components(n, law, np.random.default_rng([11, seed]))
        losses.append(sf.subspace_distance(estimator.set_params(random_state=seed).fit(x).directions_, true))
    return np.mean(losses)


@pytest.mark.parametrize("method", ["refined", "one-shot"])
@pytest.mark.parametrize(
    ("n", "p", "k", "epsilon", "signal"),
    [(2_000, 10, 1, 1.0, 0.5), (1_000, 30, 1, 1.0, 0.5), (20_000, 20, 3, 0.3, 0.3)],
)
def test_the_forecast_of_components_is_the_measured_mean(n, p, k, epsilon, signal, method):
    law, estimator = SpikedCovariance(p, k, signal), sf.PrivatePCA(k, epsilon, 1e-6, BOX, method)
    explanation = estimator.explain(n, p)
    expected = forecast(explanation.fit, explanation.budget, n, law, draws=10).loss
    assert 0.75 < expected / measured_components(n, law, estimator, 10) < 1.33


def test_the_forecast_of_pairs_is_the_measured_mean():
    n, p, q, signal, losses = 10_000, 6, 4, 0.5, []
    estimator = sf.PrivateCCA(1, 1.0, 1e-6, BOX, BOX)
    for seed in range(10):
        rng = np.random.default_rng([12, seed])
        x, y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
        y[:, 0] = np.sqrt(signal) * x[:, 0] + np.sqrt(1 - signal) * y[:, 0]
        fitted = estimator.set_params(random_state=seed).fit(x, y)
        pair = (fitted.directions_, fitted.y_directions_)
        losses.append(np.mean([sf.subspace_distance(found, np.eye(1, found.shape[1])) for found in pair]))
    expected = estimator.explain(n, p, q).forecast(signal)
    assert 0.75 < expected.loss / np.mean(losses) < 1.33 and expected.plain < expected.loss


@pytest.mark.parametrize("classes", [["a", "b", "c"], None], ids=["declared", "hashed"])
def test_the_forecast_of_discriminants_is_the_measured_mean(classes):
    n, p, signal, losses = 10_000, 8, 0.5, []
    h = 3 if classes else 2
    estimator = sf.PrivateLDA(1.0, 1e-6, 1, sf.Bounds(-8, 8), classes)
    for seed in range(10):
        rng = np.random.default_rng([13, seed])
        x, code = rng.standard_normal((n, p)), rng.integers(0, h, n)
        place = np.arange(h) - (h - 1) / 2
        x[:, 0] = np.sqrt(signal) * (place / place.std())[code] + np.sqrt(1 - signal) * x[:, 0]
        fitted = estimator.set_params(random_state=seed).fit(x, np.array(list("abc"))[code])
        losses.append(sf.subspace_distance(fitted.directions_, np.eye(1, p)))
    assert 0.75 < estimator.explain(n, p).forecast(signal).loss / np.mean(losses) < 1.33


@pytest.mark.parametrize(
    "law",
    [SpikedCovariance(12, 2), EvenResponse(12), CorrelatedPairs(12, 2, n_targets=5), SeparatedClasses(12)],
)
def test_points_have_the_moments_of_their_population_clipped_or_not(law):
    points = law.points(np.random.default_rng(0))
    grid = sf.Bounds(-law.box, law.box).grid(12)
    for radius in (0.2, 10.0):
        query = Moments(grid, radius)
        second = np.zeros((12, 12))
        second[np.triu_indices(12)] = (query.of(points) * query.grid)[12:] / len(points)
        if isinstance(law, CorrelatedPairs):  # a pair is one block
            second[0, 7] = second[1, 8] = 0.0
        assert np.abs(second - np.diag(second.diagonal())).max() < 2e-6  # the grid of the moments


@pytest.mark.parametrize("k", [1, 2])
def test_across_the_index_nothing_goes_with_the_response(k):
    points = IndexResponse(9, k).points(np.random.default_rng(0))
    clip = np.minimum(1.0, 2.0 / np.linalg.norm(points.x, axis=1))
    for f in (points.y, points.y**2, np.sign(points.y), np.sin(3 * points.y)):
        assert np.abs((f * clip) @ points.x[:, k:]).max() < 1e-9
    assert np.abs((points.x[:, :k].T * clip**2) @ points.x[:, k:]).max() < 1e-9


@pytest.mark.parametrize("n", [300, 2_000, 50_000, 10**9])
def test_sums_of_a_stand_in_vary_as_those_of_n_records(n):
    points = Records(np.zeros((1500, 1)), np.arange(1500.0) % 10)
    query, plan = ResponseHistogram(Bins(np.array([2.5]))), Plan((Line("a", "all", 1.0, "1", rho=1e12),))
    draws = [
        StandIn.of(points, n, plan, "replace", rng).answer(query, "a").value[0]
        for rng in np.random.default_rng(1).spawn(2_000)
    ]
    assert np.mean(draws) == pytest.approx(0.3 * n, abs=6 * np.sqrt(0.21 * n / 2_000))
    assert np.std(draws) == pytest.approx(np.sqrt(0.21 * n), rel=0.1)  # 6 standard errors of a deviation of 2,000


def test_signs_cancel_in_every_pair_of_columns():
    w = signed_normals(9, np.random.default_rng(1))
    gram = np.einsum("bhi,bhj->bij", w, w)
    assert np.abs(gram * (1 - np.eye(9))).max() < 1e-9
    assert (w**2).mean(axis=(0, 1)) == pytest.approx(np.ones(9))


@pytest.mark.parametrize("law", [SpikedCovariance(10, 1), CorrelatedPairs(10, 1, n_targets=4), SeparatedClasses(10)])
def test_more_of_anything_good_loses_less(law):
    fit = {SpikedCovariance: sf.PrivatePCA(1), SeparatedClasses: sf.PrivateLDA(classes=[0, 1])}.get(type(law))

    def loss(epsilon=1.0, n=10_000, signal=0.5):
        made = fit.set_params(epsilon=epsilon).explain(n, 10) if fit else sf.PrivateCCA(1, epsilon).explain(n, 6, 4)
        return made.forecast(signal).loss

    base = loss()
    assert loss(epsilon=0.2) > base > loss(epsilon=5.0)
    assert loss(n=2_000) > base > loss(n=100_000)
    assert loss(signal=0.2) > base > loss(signal=0.9)


def test_with_a_large_budget_only_sampling_error_is_left():
    for explanation in (sf.PrivatePCA(2, rho=1e6).explain(5_000, 8), sf.PrivateCCA(1, rho=1e6).explain(5_000, 5, 3)):
        assert 0.9 < explanation.forecast().ratio < 1.35  # clipping alone


@pytest.mark.judged
@pytest.mark.parametrize(("p", "bounds"), [(20, BOX), (100, BOX), (20, None), (100, None)])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_auto_is_refined_at_the_published_settings(p, bounds, relation):
    explanation = sf.PrivatePCA(3, bounds=bounds, relation=relation).explain(50_000, p)
    assert any(line.name == "refined" for line in explanation.plan.lines)
    assert sf.PrivateCCA(2, relation=relation).explain(50_000, 10, 10).recommended == "refined"


@pytest.mark.judged
def test_auto_is_the_method_of_which_least_is_expected():
    estimator = sf.PrivatePCA(1, 0.1, 1e-6, BOX)
    seen = {}
    for n in (300, 2_000, 20_000):
        explanation = estimator.explain(n, 20)
        names = {line.name for line in explanation.plan.lines}
        seen[n] = "refined" if "refined" in names else "one-shot"
        assert seen[n] == explanation.recommended
    assert seen[20_000] == "refined"


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize(("p", "k"), [(5, 1), (20, 1), (20, 3)])
def test_over_all_numbers_of_records_the_refined_method_is_as_good(p, k, epsilon):
    explanation = sf.PrivatePCA(k, epsilon, 1e-6, BOX, relation="add-remove").explain(1_000, p)
    prospect, options = explanation.prospect, {"relation": "add-remove", "draws": 12}
    refined, one_shot = (
        [forecast(fit, explanation.budget, n, prospect.population, **options).loss for n in np.geomspace(100, 1e6, 9)]
        for _, fit in prospect.fits
    )
    assert np.log(refined).mean() < np.log(one_shot).mean() + 0.13  # 0.10 at worst, over many draws
    assert prospect.best(explanation.budget, None, "add-remove") == "refined"


def test_a_private_number_of_records_decides_nothing():
    few, many = (sf.PrivatePCA(1, 0.1, 1e-6, BOX, relation="add-remove").explain(n, 20).plan for n in (30, 300_000))
    assert few == many


@pytest.mark.judged
@pytest.mark.parametrize(
    ("estimator", "sizes"),
    [
        (sf.PrivatePCA(3), (50_000, 100)),
        (sf.PrivateCCA(1), (50_000, 50, 50)),
        (sf.PrivateLDA(classes=[0, 1, 2]), (50_000, 100)),
        (sf.PrivateLDA(), (50_000, 100)),
        (sf.PrivateSAVE(), (50_000, 100)),
        (sf.PrivateSAVE(n_slices=48), (50_000, 20)),
    ],
)
def test_explain_prints_expectations_in_two_seconds_and_needs_no_data(estimator, sizes):
    seconds, text = quickest(lambda i: str(estimator.explain(sizes[0] + i, *sizes[1:])), 2.0)
    assert seconds < 2.0  # at most one on an idle machine
    for words in ("expected loss", "without privacy", "random directions", "least expected loss", "records"):
        assert words in text


@pytest.mark.parametrize("along", ["n", "p", "epsilon"])
def test_methods_are_compared_along_anything(along):
    for explanation in (sf.PrivatePCA(2).explain(5_000, 10), sf.PrivateCCA(1).explain(5_000, 6, 3)):
        seen = explanation.compare(along=along)
        curve = seen.losses["refined"]
        assert along == "p" or curve[0] > curve[-1]
        assert "without privacy" in seen.losses and not seen.bounds


def test_a_signal_is_a_part_of_a_whole():
    with pytest.raises(sf.InputError, match="signal"):
        SpikedCovariance(5, 1, 1.0)
    assert not sf.PrivatePCA(5).explain(1_000, 5).has_forecast  # all directions: nothing to miss
