"""Every release and whole fits, attacked on their worst pairs. The long version is benchmarks/audit.py."""

import functools

import numpy as np
import pytest

from sfumato import Budget
from sfumato.audit import audit, couple, gaussian_check
from sfumato.audit.cases import (
    queries,
    release_of,
    selection_of,
    selections,
    worst_pair,
    worst_selection_pair,
)
from sfumato.audit.fits import likelihood, published, realised, sir_task, witnessed, worst_fit_pair
from sfumato.audit.one_run import one_run, one_run_epsilon, sir_canaries
from sfumato.audit.table import audit_table, markdown
from sfumato.estimators.pipeline import run
from sfumato.privacy.noise import SeededNoise
from sfumato.sums import BoundedSum

RELATIONS = ("replace", "add-remove")
QUERIES = queries()
BUDGET = Budget.approximate(3.0, 1e-6)


@functools.cache
def pair_of(name, relation):
    return worst_pair(QUERIES[name], relation)


def kinds(parent):
    for kind in parent.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_kind_of_release_has_a_case():
    known = {type(query).__name__ for query in QUERIES.values()}
    ours = {kind for kind in kinds(BoundedSum) if kind.__module__.startswith("sfumato.statistics")}
    # A kind that inherits from one with a case (another way to the same sum) is covered by it.
    missing = {kind.__name__ for kind in ours if not known & {base.__name__ for base in kind.__mro__}}
    assert not missing, "add a query of each to sfumato.audit.cases.queries"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", QUERIES)
def test_no_pair_moves_a_sum_beyond_its_bound_and_one_reaches_it(name, relation):
    pair = pair_of(name, relation)
    assert 0.99 < pair.realised <= 1.0 + 1e-12


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", QUERIES)
def test_a_release_adds_gaussian_noise_of_the_right_size_and_nothing_else(name, relation):
    pair, mu = pair_of(name, relation), BUDGET.mu()
    check = gaussian_check(release_of(QUERIES[name], relation, mu), pair.d, pair.d_prime, runs=400)
    assert check is not None and check.p_value > 1e-4
    assert 0.8 * mu < check.mu_lower < mu


def test_the_table_shows_claims_that_hold():
    told = []
    results = audit_table([Budget.approximate(3.0, 1e-6)], runs=150, only="histogram of", progress=told.append)
    assert [result.name for result in results] == told and len(told) == 2 * 3
    assert all(result.passed for result in results)
    assert markdown(results).count("holds") == len(results)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", selections())
def test_a_selection_tells_no_more_than_its_epsilon(name, relation):
    pair = worst_selection_pair(QUERIES[name], relation)
    assert audit(selection_of(QUERIES[name], relation, 2.0), pair.d, pair.d_prime, (2.0, 0.0), runs=400).passed


def test_a_selection_that_tells_more_is_caught():
    query = QUERIES["distances from a quantile"]
    pair = worst_selection_pair(query, "replace")
    assert not audit(selection_of(query, "replace", 8.0), pair.d, pair.d_prime, (0.5, 0.0), runs=600).passed


@pytest.mark.parametrize("method", ["descent", "one-shot"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_fit_costs_what_it_says_on_a_bad_pair(method, relation):
    budget = Budget.approximate(12.0, 1e-6)
    task = sir_task(2, 40 if relation == "replace" else None, method)
    d, d_prime = worst_fit_pair(task, budget, relation, seed=1, tries=40)
    moved = [realised(witnessed(task, budget, relation, d, SeededNoise(s)), d, d_prime) for s in range(5)]
    assert 0.5 * budget.mu() < max(moved) <= budget.mu()
    assert audit(likelihood(task, budget, relation, d, d_prime), d, d_prime, budget.mu(), runs=100).passed


def test_what_a_fit_publishes_is_audited_too():
    task, budget = sir_task(2, 40), Budget.approximate(3.0, 1e-6)
    d, d_prime = worst_fit_pair(task, budget, "replace", seed=1, tries=20)
    assert audit(published(task, budget, "replace"), d, d_prime, budget.mu(), runs=100).passed


class Replay:
    """Answers with the releases of an earlier run; there is no record behind it."""

    relation = "replace"

    def __init__(self, transcript):
        self.rest = [release for _, release in transcript]

    def answer(self, query, name):
        return self.rest.pop(0)


@pytest.mark.parametrize("method", ["descent", "one-shot"])
def test_an_outcome_is_a_function_of_the_releases_alone(method):
    task, budget = sir_task(3, 40, method), BUDGET
    d, _ = worst_fit_pair(task, budget, "replace", seed=2, tries=5)
    transcript = witnessed(task, budget, "replace", d, SeededNoise(5))
    first, second = run(task, Replay(transcript)), run(task, Replay(transcript))
    assert first.spectrum.directions.tobytes() == second.spectrum.directions.tobytes()
    alone = published(task, budget, "replace")(d, SeededNoise(5))
    assert np.abs(np.abs(first.spectrum.directions[0]) - np.abs(alone[:3])).max() == 0.0


def test_one_fit_with_canaries_refutes_a_false_claim_and_no_true_one():
    task = sir_task(12, 100 + 240)
    spends = Budget.approximate(60.0, 1e-6)
    canaries = sir_canaries(task, spends, n_base=100, canaries=240)
    false = one_run(canaries.scores, 240, (0.5, 1e-6), guesses=60)
    assert not false.passed
    assert one_run(canaries.scores, 240, (60.0, 1e-6), guesses=60).passed
    honest = sir_canaries(task, Budget.approximate(0.5, 1e-6), n_base=100, canaries=240)
    assert one_run(honest.scores, 240, (0.5, 1e-6)).passed


def test_the_one_run_bound_is_that_of_randomised_response():
    rng = np.random.default_rng(17)
    keep = 1 / (1 + np.exp(-2.0))

    def scores(coins, noise):  # each coin told with the odds of epsilon = 2
        return np.where(rng.random(len(coins)) < keep, coins, ~coins) + 0.1 * rng.random(len(coins))

    result = one_run(scores, 10_000, (2.0, 0.0), guesses=10_000)
    assert result.passed and result.tightness > 0.9
    assert one_run_epsilon(100, 100, 100, 1e-3) < one_run_epsilon(100, 100, 100, 0.0)


def test_coupled_releases_differ_by_the_contribution_alone():
    query = QUERIES["residual products"]
    pair = worst_pair(query, "replace")
    difference = couple(release_of(query, "replace", 0.5), pair.d, pair.d_prime).difference
    exact = ((query.of(pair.d) - query.of(pair.d_prime)) * query.grid).ravel()
    assert np.allclose(difference, exact, rtol=1e-9)
