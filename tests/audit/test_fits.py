"""Whole fits and devices, attacked end to end. The long version is benchmarks/audit.py."""

import numpy as np
import pytest

import sfumato
import sfumato.research
from sfumato import Bounds, Budget, PrivateSIR, PrivateSparseSIR
from sfumato.audit import audit, fits
from sfumato.audit.fits import Case, Pick, audit_fit, log_ratio, published_fits, realised, shown, worst_fit_pair
from sfumato.audit.one_run import one_run, one_run_epsilon, sir_canaries
from sfumato.audit.releases import devices
from sfumato.methods import pca, sir, sparse_pca, sparse_sir
from sfumato.methods.sir import Task
from sfumato.privacy.asking import drive
from sfumato.privacy.noise import SeededNoise, gumbel_argtop
from sfumato.records import Records, Response
from sfumato.statistics.histograms import Bins
from sfumato.statistics.scores import QuantileScores
from sfumato.steps.descent import schedule_of

RELATIONS = ("replace", "add-remove")
DELTA = 1e-6


def cases(epsilon, delta, relation):
    """Every fit that claims a guarantee, the papers' included."""
    return fits.cases(epsilon, delta, relation)


NAMES = list(cases(3.0, DELTA, "replace"))


def test_every_estimator_and_every_method_is_attacked():
    attacked = [case.estimator for case in cases(3.0, DELTA, "replace").values()]
    by_fit = " ".join(published_fits(3.0, DELTA))
    private = {name for name in sfumato.__all__ if name.startswith(("Private", "Label", "Local")) and name[-1] != "g"}
    kinds = {type(estimator).__name__ for estimator in attacked}
    assert {name for name in private if name not in kinds and name not in by_fit} == set()
    assert set(sfumato.research.__all__) <= kinds
    for module in (sir, sparse_sir, pca, sparse_pca):
        kind = next(
            name for name in dir(module) if name in private and getattr(module, name).__module__ == module.__name__
        )
        methods = {estimator.method for estimator in attacked if type(estimator).__name__ == kind}
        assert {method for method in module.METHODS if method != "auto"} <= methods


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_no_fit_moves_further_than_it_says_on_a_bad_pair(name, relation):
    case = cases(12.0, DELTA, relation)[name]
    d, d_prime = worst_fit_pair(case, seed=1, tries=30)
    for seed in range(2):
        fitted, transcript = case.listened(d, SeededNoise(seed))
        assert np.isfinite(shown(fitted, case.n_features)).all()
        spent = np.sqrt(2.0 * fitted.ledger_.rho)  # mu of a Gaussian release of the same zCDP cost
        assert 0.2 * spent < realised(transcript, d, d_prime) <= spent * (1 + 1e-9)


def test_a_fit_that_spends_more_than_it_says_is_caught():
    case = Case(PrivateSIR(60.0, DELTA, 1, Bounds(-1, 1), "one-shot"), n_features=2)
    honest = audit_fit(case, runs=120)
    assert honest.whole.passed and honest.shown.passed
    assert honest.whole.audited_lower > Budget.approximate(3.0, DELTA).mu()  # had it claimed epsilon = 3


def test_the_likelihood_of_a_selection_is_that_of_its_picks():
    query = QuantileScores(Bins(np.array([-1.0, 0.0, 1.0])), 1, 2)
    records = [Records(np.zeros((len(y), 1)), np.array(y)) for y in ([-2.0, 0.5, 0.5, 2.0], [0.5, 0.5, 0.5, 2.0])]
    scores = query.scores(query.of(records[0]))
    noise, runs = SeededNoise(3), 4000
    seen = [tuple(gumbel_argtop(noise, scores, 2.0, 2)) for _ in range(runs)]
    for picked in {(0, 1), (1, 2), (2, 1)}:
        expected = np.exp(Pick(query, np.array(picked), 2.0)._log_probability(records[0]))
        # 4 standard deviations of a frequency
        assert seen.count(picked) / runs == pytest.approx(expected, abs=4 * np.sqrt(expected / runs))
    one = Pick(query, np.array([1]), 2.0)
    assert log_ratio([one], *records) == pytest.approx(
        one._log_probability(records[0]) - one._log_probability(records[1])
    )


@pytest.mark.parametrize("name", devices(3.0, DELTA))
def test_an_answer_tells_no_more_than_its_epsilon(name):
    device = devices(3.0, DELTA)[name]
    found = audit(device.mechanism, device.d, device.d_prime, device.claimed, runs=400)
    assert found.passed and found.audited_lower > 0


@pytest.mark.parametrize("name", ["LabelPrivateSIR, edges given", "LocalSIR"])
def test_what_a_fit_without_curator_shows_is_covered(name):
    case = published_fits(3.0, DELTA)[name]
    assert audit(case.mechanism, case.d, case.d_prime, case.claimed, runs=150).passed


class Replay:
    """Answers with the releases of an earlier run; there is no record behind it."""

    relation = "replace"

    def __init__(self, transcript):
        self.rest = [answer.release for answer in transcript]

    def answer(self, query, name):
        return self.rest.pop(0)


@pytest.mark.parametrize("method", ["descent", "one-shot"])
def test_an_outcome_is_a_function_of_the_releases_alone(method):
    case = cases(3.0, DELTA, "replace")[f"PrivateSIR {method}"]
    d, _ = worst_fit_pair(case, seed=2, tries=5)
    fitted, transcript = case.listened(d, SeededNoise(5))
    schedule = schedule_of(3, 40, Budget.approximate(3.0, DELTA).mu())
    task = Task(3, 40, Response(), 1, Bounds(-1, 1), method, schedule=schedule)
    first, second = drive(task.run(), Replay(transcript)), drive(task.run(), Replay(transcript))
    assert first.directions.tobytes() == second.directions.tobytes()
    assert first.directions.tobytes() == fitted.directions_.tobytes()


def test_a_feature_far_from_zero_with_no_spread_gives_bounds_and_no_error():
    x = np.full((40, 3), 1e15) + np.random.default_rng(0).integers(0, 2, (40, 3))
    for seed in range(5):
        with pytest.warns(sfumato.PrivacyWarning):
            found = PrivateSparseSIR(300.0, n_directions=1, random_state=seed).fit(x, x[:, 0] - 1e15)
        assert (np.asarray(found.bounds_.lower) < np.asarray(found.bounds_.upper)).all()


def test_one_fit_with_canaries_refutes_a_false_claim_and_no_true_one():
    spends = PrivateSIR(60.0, DELTA, 1, Bounds(-1, 1), "descent")
    canaries = sir_canaries(spends, 12, n_base=100, canaries=240)
    false = one_run(canaries.scores, 240, (0.5, DELTA), guesses=60)
    assert not false.passed
    assert one_run(canaries.scores, 240, (60.0, DELTA), guesses=60).passed
    honest = sir_canaries(PrivateSIR(0.5, DELTA, 1, Bounds(-1, 1), "descent"), 12, n_base=100, canaries=240)
    assert one_run(honest.scores, 240, (0.5, DELTA)).passed


def test_the_one_run_bound_is_that_of_randomised_response():
    rng = np.random.default_rng(17)
    keep = 1 / (1 + np.exp(-2.0))

    def scores(coins, noise):  # each coin told with the odds of epsilon = 2
        return np.where(rng.random(len(coins)) < keep, coins, ~coins) + 0.1 * rng.random(len(coins))

    result = one_run(scores, 10_000, (2.0, 0.0), guesses=10_000)
    assert result.passed and result.tightness > 0.9
    assert one_run_epsilon(100, 100, 100, 1e-3) < one_run_epsilon(100, 100, 100, 0.0)
