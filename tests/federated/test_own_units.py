"""Sites that are unlike: in size, in the means and scales of their features, in what they may be asked."""

import numpy as np
import pytest

from sfumato import Bounds, Budget, InputError, PrivateSIR, PrivateSparseSIR, subspace_distance
from sfumato.federated import simulate
from sfumato.federated.task import least_records
from sfumato.release import Release
from sfumato.research import DPSIR
from sfumato.settings.federated import FederatedCurator, weights_of
from sfumato.simulate import he
from sfumato.statistics.histograms import Bins, ResponseHistogram


def uneven(seed):
    """One site of 4,000 records and twenty of 50."""
    sample = he("V", n=5_000, random_state=seed)
    cuts = 4_000 + 50 * np.arange(20)
    return list(zip(np.split(sample.x, cuts), np.split(sample.y, cuts), strict=True)), sample


def test_twenty_tiny_sites_do_not_drown_a_large_one():
    """Unweighted, the noise of 21 sites would be sqrt(21) times that of one; tiny sites must hardly add any."""
    estimator = PrivateSIR(epsilon=1.0, delta=1e-4, n_directions=2, bounds=Bounds(-6, 6))
    all_sites = [
        subspace_distance(simulate(estimator, uneven(i)[0]).directions_, uneven(i)[1].directions) for i in (1, 2)
    ]
    large = [
        subspace_distance(simulate(estimator, uneven(i)[0][:1]).directions_, uneven(i)[1].directions) for i in (1, 2)
    ]
    assert np.mean(all_sites) < 2.0 * np.mean(large) + 0.1


def test_weights_minimise_the_variance_of_the_mean():
    """Against a search: no other weights of two sites give the weighted mean a smaller variance."""
    sizes, noise = [900, 60], 400.0
    ours = weights_of(sizes, noise)

    def variance(weights):
        counts = np.array(weights) * sizes
        each = 1.0 / np.array(sizes) + noise / np.array(sizes) ** 2.0
        return float((counts**2 * each).sum() / counts.sum() ** 2)

    others = [variance([1.0, w]) for w in np.linspace(0.001, 1.0, 500)]
    assert variance(ours) <= min(others) * (1 + 1e-6)


@pytest.mark.parametrize("sizes", [{"a": 800, "b": 20}, {"a": None, "b": None}])
def test_a_weighted_sum_estimates_the_sum_over_all_sites(sizes):
    class Two:
        def __init__(self):
            self.sizes = sizes

        def ask(self, query, name):
            counts = {"a": 800.0, "b": 20.0}
            return {site: Release(np.array([counts[site]]), np.array([30.0])) for site in sizes}

    found = FederatedCurator(Two()).answer(ResponseHistogram(Bins(np.zeros(0))), "ranks")
    assert found.value[0] == pytest.approx(820.0)
    assert found.noise_std[0] <= np.hypot(30.0, 30.0) * (1 + 1e-12)


def moved(seed, sites=4):
    """Model V, every site in units of its own: shifted by several standard deviations, stretched up to threefold."""
    sample, rng = he("V", n=20_000, random_state=seed), np.random.default_rng(seed)
    parts = [(sample.x[i::sites], sample.y[i::sites]) for i in range(sites)]
    return [(np.exp(rng.normal(0, 0.5)) * x + rng.normal(0, 5, 10), y) for x, y in parts], sample


def test_each_site_in_its_own_units_finds_what_pooled_units_cannot():
    parts, sample = moved(3)
    estimator = PrivateSIR(epsilon=2.0, delta=1e-5, n_directions=2)
    own = simulate(estimator, parts, own_units=True)
    pooled = simulate(estimator, parts)
    assert subspace_distance(own.directions_, sample.directions) < 0.35
    assert subspace_distance(pooled.directions_, sample.directions) > 0.7
    assert all(ledger.total() == pytest.approx(2.0, rel=1e-6) for ledger in own.ledgers_.values())
    for (x, _), bounds in zip(parts, own.local_.values(), strict=True):  # mean +- 4 sd, give or take noise
        np.testing.assert_allclose((bounds.lower + bounds.upper) / 2, x.mean(axis=0), atol=2.0 * x.std(axis=0).max())


def test_own_units_cost_what_pooled_units_cost_and_say_what_they_need():
    parts, _ = moved(1)
    with pytest.raises(InputError, match="bounds=None"):
        simulate(PrivateSIR(bounds=Bounds(-6, 6)), parts, own_units=True)
    with pytest.raises(InputError, match="trust='sites'"):
        simulate(PrivateSIR(), parts, "secure-aggregation", own_units=True)


def test_sites_with_too_few_records_are_left_out_and_spend_nothing():
    estimator = PrivateSIR(epsilon=1.0, delta=1e-4, n_directions=2, bounds=Bounds(-6, 6))
    fitted = simulate(estimator, uneven(1)[0], least=60)
    assert len(fitted.left_out_) == 20 and list(fitted.ledgers_) == ["site 1"]
    assert "has 50 records, fewer than the 60" in fitted.left_out_["site 2"]
    assert not simulate(estimator, uneven(1)[0][:1], least="auto").left_out_
    with pytest.raises(InputError, match="least must be"):
        simulate(estimator, uneven(1)[0], least=-1)
    with pytest.raises(InputError, match="public numbers of records"):
        simulate(estimator.set_params(relation="add-remove"), uneven(1)[0], least=10)


def test_the_least_number_of_records_keeps_noise_at_half_a_standard_deviation():
    budget = Budget.approximate(0.5, 1e-6)
    n = least_records(25, budget)
    assert 2 * 5 / (n * budget.mu()) <= 0.5 < 2 * 5 / ((n - 1) * budget.mu())


def test_the_papers_estimators_for_one_curator_are_refused_in_one_sentence():
    sample = he("V", n=300, random_state=0)
    with pytest.raises(InputError, match=r"estimator must be one of PrivateSIR, .* got a DPSIR"):
        simulate(DPSIR(bounds=Bounds(-6, 6)), [(sample.x, sample.y)])


def wide(n=6_000, sites=6, p=60):
    sample = he("V", n=n, p=p, sparse=5, random_state=2)
    return {f"h{i}": (sample.x[i::sites], sample.y[i::sites]) for i in range(sites)}, sample


def test_sites_vote_for_features_and_every_site_spends_its_budget():
    parts, sample = wide()
    fitted = simulate(PrivateSparseSIR(2.0, 1e-4, 2, Bounds(-6, 6)), parts)
    assert set(fitted.support_) <= set(range(60)) and len(set(fitted.support_) & set(range(5))) >= 4
    assert subspace_distance(fitted.directions_, sample.directions) < 0.6
    assert not np.delete(fitted.directions_, fitted.support_, axis=1).any()
    for ledger in fitted.ledgers_.values():
        assert ledger.total() <= 2.0 and any("features that move" in entry.purpose for entry in ledger.entries)


def test_many_sites_name_few_features_each():
    parts, _ = wide(n=2_400, sites=24, p=20)
    fitted = simulate(PrivateSparseSIR(2.0, 1e-4, 2, Bounds(-6, 6)), parts)
    for ledger in fitted.ledgers_.values():
        purposes = [entry.purpose for entry in ledger.entries]
        assert sum("features that move" in purpose for purpose in purposes) == 3
        assert sum("scores of the candidates" in purpose for purpose in purposes) == 4


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(("p", "sites"), [(1, 2), (3, 1), (3, 3), (12, 1), (12, 3)])
def test_a_vote_on_fewer_features_than_names_goes_on(relation, p, sites):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, p))
    parts = [(x[i::sites], (x[i::sites, 0] > 0).astype(int)) for i in range(sites)]
    sparse = PrivateSparseSIR(1.0, 1e-4, 1, Bounds(-6, 6), classes=[0, 1], relation=relation)
    fitted = simulate(sparse, parts)
    assert fitted.directions_.shape == (1, p) and np.isfinite(fitted.directions_).all()


def test_a_sparse_fit_says_what_it_needs():
    parts, _ = wide(n=600, sites=3)
    with pytest.raises(InputError, match="bounds must be given"):
        simulate(PrivateSparseSIR(), parts)
    with pytest.raises(InputError, match="no sum whose noise can be shared"):
        simulate(PrivateSparseSIR(bounds=Bounds(-6, 6)), parts, "secure-aggregation")
