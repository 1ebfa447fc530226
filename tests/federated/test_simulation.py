"""A federation on one machine."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato import Bounds, InputError, PrivateSIR, account, subspace_distance
from sfumato.federated import simulate
from sfumato.federated.simulation import fit_sites
from sfumato.federated.task import federated_task
from sfumato.privacy.asking import drive
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.records import Response
from sfumato.settings.central import Central
from sfumato.settings.federated import describe_site, trust_of
from sfumato.simulate import he
from sfumato.sources import ArraySource


@pytest.mark.parametrize("method", ["descent", "one-shot"])
@pytest.mark.parametrize("cuts", [(900,), (50, 51, 2_500, 2_700)])
def test_without_noise_any_number_of_sites_equals_the_pooled_fit(method, cuts, silence):
    sample = he("IV", n=4_000, random_state=3)
    estimator = PrivateSIR(rho=1e11, n_directions=2, bounds=Bounds(-6, 6), method=method)
    pieces = zip(np.split(sample.x, cuts), np.split(sample.y, cuts), strict=True)
    sources = {f"s{i}": ArraySource(x, y, Response()) for i, (x, y) in enumerate(pieces)}
    facts = {name: describe_site(source, "replace") for name, source in sources.items()}
    # What is known of the noise decides weights, and sites have more of it: so little that it does not show here.
    # Units inside the bounds are read off counts and their known noise, which more sites have more of: leave them out.
    task = replace(federated_task(estimator, facts, "replace"), bounds=Bounds(-6, 6))
    noises = dict.fromkeys(sources, silence)
    apart = fit_sites(estimator, task, sources, noises, trust_of("sites", len(sources)))

    budget = Budget.zcdp(1e11)
    pooled = Curator(
        Central(ArraySource(sample.x, sample.y, Response())),
        task.plan().calibrate(budget),
        Ledger(budget, "replace", rehearsal=True),
        silence,
    )
    together = drive(task.run(), pooled)
    signs = np.sign(np.sum(apart.directions_ * together.directions, axis=1, keepdims=True))
    np.testing.assert_allclose(signs * apart.directions_, together.directions, rtol=0, atol=1e-8)
    np.testing.assert_allclose(apart.mean_, together.centre, rtol=0, atol=1e-12)


def test_every_site_spends_the_whole_budget_in_its_own_ledger():
    sample = he("V", n=3_000, random_state=1)
    parts = {"north": (sample.x[:1_000], sample.y[:1_000]), "south": (sample.x[1_000:], sample.y[1_000:])}
    fitted = simulate(PrivateSIR(epsilon=0.7, delta=1e-5, bounds=Bounds(-6, 6)), parts)
    assert list(fitted.ledgers_) == ["north", "south"]
    for ledger in fitted.ledgers_.values():
        assert ledger.total() == pytest.approx(0.7, rel=1e-6)
        assert "nor another site needs to be trusted" in ledger.guarantee


def test_secure_aggregation_adds_central_noise_and_says_what_it_rests_on():
    sample = he("V", n=4_000, random_state=1)
    parts = [(sample.x[i::4], sample.y[i::4]) for i in range(4)]
    estimator = PrivateSIR(epsilon=1.0, delta=1e-5, bounds=Bounds(-6, 6))
    alone = next(entry for entry in simulate(estimator, parts).ledger_ if "ranks" in entry.purpose)
    shared = simulate(estimator, parts, "secure-aggregation", honest=4).ledger_
    ranks = next(entry for entry in shared if "ranks" in entry.purpose)
    # Plans differ, since a search inside the bounds pays with less noise only: compare per mu of the release.
    assert ranks.noise_std * ranks.event.mu == pytest.approx(alone.noise_std * alone.event.mu / 2)
    assert shared.total() == pytest.approx(1.0, rel=1e-6)
    assert "sees only sums over the 4 sites and at least 4" in shared.guarantee
    assert "noise shared by 4 sites" in shared.entries[0].purpose


def test_secure_aggregation_is_nearly_as_accurate_as_a_central_fit():
    sample = he("V", n=16_000, random_state=2)
    parts = [(sample.x[i::16], sample.y[i::16]) for i in range(16)]
    estimator = PrivateSIR(epsilon=0.5, delta=1e-5, n_directions=2, bounds=Bounds(-6, 6))

    def loss(trust):
        fits = [simulate(estimator, parts, trust) for _ in range(3)]
        return np.mean([subspace_distance(fit.directions_, sample.directions) for fit in fits])

    assert loss("secure-aggregation") < 0.6 * loss("sites")


def test_a_seeded_simulation_repeats_itself_and_sites_draw_different_noise():
    sample = he("V", n=2_000, random_state=1)
    same = (sample.x[:1_000], sample.y[:1_000])
    estimator = PrivateSIR(n_directions=1, bounds=Bounds(-6, 6), random_state=5)
    first, again = simulate(estimator, [same, same]), simulate(estimator, [same, same])
    np.testing.assert_array_equal(first.directions_, again.directions_)
    assert "No privacy guarantee" in first.ledger_.guarantee


@pytest.mark.parametrize(
    ("sites", "options", "sentence"),
    [
        ([], {}, "none is there"),
        ([(np.zeros((3, 2)), np.zeros(3)), (np.zeros((3, 1)), np.zeros(3))], {}, "number of features"),
        ([(np.zeros((3, 2)), np.zeros(3)), (np.zeros((3, 2)), ["a", "b", "c"])], {}, "kind of response"),
        ([(np.zeros((3, 2)), np.zeros(3))], {"trust": "me"}, "trust must be"),
        ([(np.zeros((3, 2)), np.zeros(3))], {"trust": "secure-aggregation", "honest": 2}, "honest must be"),
        ([np.zeros((3, 2))], {}, "must be a pair"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(sites, options, sentence):
    with pytest.raises(InputError, match=sentence):
        simulate(PrivateSIR(), sites, **options)


def test_a_shared_ledger_is_refused_because_each_site_has_its_own():
    ledger = Ledger(Budget.approximate(1, 1e-6), "replace")
    with pytest.raises(InputError, match="every site has its own"):
        simulate(PrivateSIR(ledger=ledger), [(np.zeros((3, 2)), np.zeros(3))])


def test_an_account_that_the_sites_would_not_be_charged_to_is_refused(tmp_path):
    with account(tmp_path / "study.jsonl", epsilon=3) as opened:
        with pytest.raises(InputError, match="every site has its own; simulate outside"):
            simulate(PrivateSIR(bounds=Bounds(-1, 1)), [(np.zeros((3, 2)), np.zeros(3))])
        assert not opened.runs()


@pytest.mark.parametrize(("trust", "honest", "wanted"), [("sites", None, 4.0), ("secure-aggregation", 4, 1.0)])
def test_the_noise_of_the_sum_has_the_variance_its_trust_model_states(trust, honest, wanted):
    """Sixteen sites against one: standard deviations of many coordinates of noise alone."""
    from sfumato.federated.simulation import InProcess, OneThread
    from sfumato.privacy.noise import SecureNoise
    from sfumato.privacy.plan import Line, Plan
    from sfumato.settings.federated import FederatedCurator, SiteLedger, open_site
    from sfumato.statistics.histograms import Bins, ResponseHistogram

    budget, sites = Budget.approximate(1.0, 1e-5), 16
    plan = Plan((Line("ranks", "ranks", 1.0, ""),)).calibrate(budget)
    kind = trust_of(trust, sites, honest if honest is None else sites)
    empty = ArraySource(np.zeros((1, 1)), np.zeros(1), Response())
    doors = {}
    for i in range(sites):
        ledger = SiteLedger(budget, "replace")
        doors[f"s{i}"] = open_site(OneThread(empty), plan, ledger, SecureNoise(), kind)
    query = ResponseHistogram(Bins(np.arange(1.0, 4_000.0)))
    total = FederatedCurator(InProcess(doors, dict.fromkeys(doors, 1))).answer(query, "ranks")
    central = np.sqrt(2.0) / plan.lines[0].event.mu
    assert total.noise_std[0] == pytest.approx(wanted * central, rel=1e-6)
    assert np.std(total.value[1:]) == pytest.approx(wanted * central, rel=0.06)  # 5 standard errors
