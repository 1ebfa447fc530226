"""Sites that are unlike: in size, in the means and scales of their features, in what they may be asked."""

import numpy as np
import pytest
from tests.federated.conftest import Consortium

from sfumato import (
    Bounds,
    Budget,
    InputError,
    PrivatePCA,
    PrivateSAVE,
    PrivateSIR,
    PrivateSparsePCA,
    PrivateSparseSIR,
    subspace_distance,
)
from sfumato.federated import simulate
from sfumato.federated.coordinator import fit_remote
from sfumato.federated.task import least_records
from sfumato.methods import FAMILY, load
from sfumato.privacy.ledger import FileLedger
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


def test_a_site_that_is_alone_names_twelve_features_the_last_at_three_times_the_cost_of_the_first():
    parts, _ = wide(n=1_000, sites=1, p=20)
    fitted = simulate(PrivateSparseSIR(2.0, 1e-4, 2, Bounds(-6, 6)), parts)
    named = [entry.event.epsilon**2 for entry in fitted.ledger_.entries if "features that move" in entry.purpose]
    assert len(named) == 12 and named[-1] == pytest.approx(3.0 * named[0])
    assert 1.99 <= fitted.ledger_.total() <= 2.0


def test_many_sites_name_few_features_each():
    parts, _ = wide(n=2_400, sites=24, p=20)
    fitted = simulate(PrivateSparseSIR(2.0, 1e-4, 2, Bounds(-6, 6)), parts)
    for ledger in fitted.ledgers_.values():
        purposes = [entry.purpose for entry in ledger.entries]
        assert sum("features that move" in purpose for purpose in purposes) == 2
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
    with pytest.raises(InputError, match="no sum whose noise can be shared"):
        simulate(PrivateSparseSIR(bounds=Bounds(-6, 6)), parts, "secure-aggregation")


def one_index(kind, seed=1, n=12_000, p=4):
    """A response that the first feature explains, to the method's liking."""
    rng = np.random.default_rng(seed)
    x, e = rng.standard_normal((n, p)), 0.3 * rng.standard_normal(n)
    match kind:
        case "lda":
            return x, (x[:, 0] + e > 0).astype(int)
        case "cca":
            return x, np.column_stack([x[:, 0] + e, rng.standard_normal(n)])
    return x, x[:, 0] ** 2 + e


@pytest.mark.parametrize("kind", ["save", "dr", "phd", "lda", "cca"])
def test_the_family_finds_in_units_of_each_site_what_pooled_units_hide(kind):
    x, y = one_index(kind)
    rng, parts = np.random.default_rng(2), {}
    for i, name in enumerate(("north", "south", "west")):
        both = np.column_stack([x[i::3], y[i::3]]) if kind == "cca" else x[i::3]
        both = both * np.exp(rng.normal(0, 0.5, both.shape[1])) + rng.normal(0, 5, both.shape[1])
        parts[name] = (both[:, :4], both[:, 4:] if kind == "cca" else y[i::3])
    estimator = load(FAMILY[kind])(epsilon=4.0, delta=1e-5, n_directions=1)
    if kind == "lda":
        estimator.set_params(classes=[0, 1])
    own, pooled = simulate(estimator, parts, own_units=True), simulate(estimator, parts)
    assert subspace_distance(own.directions_, np.eye(4)[:1]) < 0.15
    assert subspace_distance(pooled.directions_, np.eye(4)[:1]) > 0.5
    assert all(ledger.total() == pytest.approx(4.0, rel=1e-6) for ledger in own.ledgers_.values())
    assert own.local_["north"].lower.shape == ((6,) if kind == "cca" else (4,))


def test_components_and_sparse_fits_have_no_units_of_each_site():
    parts, _ = moved(1)
    for refused in (PrivatePCA(), PrivateSparsePCA(), PrivateSparseSIR(bounds=Bounds(-6, 6))):
        with pytest.raises(InputError, match="own_units=True needs"):
            simulate(refused, parts, own_units=True)


def test_sites_over_the_wire_find_their_own_units_as_a_simulation_does(consortium):
    remote = fit_remote(PrivateSAVE(2.0, 1e-5, 1), consortium, tuple(consortium.parts), own_units=True)
    here = simulate(PrivateSAVE(2.0, 1e-5, 1, random_state=consortium.seed), consortium.parts, own_units=True)
    np.testing.assert_allclose(remote.directions_, here.directions_, rtol=0, atol=1e-12)
    assert {name: len(FileLedger(consortium.ledger(name))) for name in consortium.parts} == {
        name: len(ledger) for name, ledger in here.ledgers_.items()
    }


def test_a_sparse_fit_over_sites_finds_the_bounds_of_what_it_keeps_and_has_a_picture():
    parts, sample = wide()
    given = simulate(PrivateSparseSIR(2.0, 1e-4, 2, Bounds(-6, 6)), parts)
    found = simulate(PrivateSparseSIR(2.0, 1e-4, 2, picture=True), parts)
    assert subspace_distance(found.directions_, sample.directions) < 0.6
    assert found.picture_ is not None and given.picture_ is None
    kept = np.isin(np.arange(60), found.support_)
    assert (found.bounds_.lower[kept] < -2.0).all() and (found.bounds_.upper[kept] > 2.0).all()
    assert (found.bounds_.lower[~kept] == -1.0).all()  # nothing was asked about the others
    assert all(ledger.total() <= 2.0 for ledger in found.ledgers_.values())


def test_sites_over_the_wire_find_the_bounds_of_some_selected_features_as_a_simulation_does(tmp_path):
    """The first feature is far from zero and has bounds, the others have none: some questions are about few of few."""
    parts, _ = wide(n=3_000, sites=3, p=20)
    for x, _ in parts.values():
        x[:, 0] += 100.0
    consortium = Consortium(tmp_path, parts, cap=3.0)
    bounds = {0: (90.0, 110.0)}
    remote = fit_remote(PrivateSparseSIR(3.0, 1e-5, 2, bounds), consortium, tuple(parts))
    here = simulate(PrivateSparseSIR(3.0, 1e-5, 2, bounds, random_state=consortium.seed), parts)
    np.testing.assert_allclose(remote.directions_, here.directions_, rtol=0, atol=1e-12)
    assert 0 in remote.support_ and len(remote.support_) > 1 and not remote.left_out_
