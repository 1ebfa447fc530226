"""Every release, attacked on its worst pair. The long version is benchmarks/audit.py."""

import functools

import numpy as np
import pytest

from sfumato import Budget
from sfumato.audit import audit, couple, gaussian_check, releases
from sfumato.audit.blackbox import markdown
from sfumato.research.sums import example_queries
from sfumato.sums import BoundedSum

RELATIONS = ("replace", "add-remove")
QUERIES = releases.queries() | example_queries()
BUDGET = Budget.approximate(3.0, 1e-6)


@functools.cache
def pair_of(name, relation):
    return releases.worst_pair(QUERIES[name], relation)


def kinds(parent):
    for kind in parent.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_kind_of_release_has_a_case():
    known = {type(query).__name__ for query in QUERIES.values()}
    concrete = {kind for kind in kinds(BoundedSum) if not kind.__abstractmethods__}
    ours = {kind for kind in concrete if kind.__module__.startswith(("sfumato.statistics", "sfumato.research"))}
    # A kind that inherits from one with a case (another way to the same sum) is covered by it.
    missing = {kind.__name__ for kind in ours if not known & {base.__name__ for base in kind.__mro__}}
    assert not missing, "add a query of each to sfumato.audit.releases.queries"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", QUERIES)
def test_no_pair_moves_a_sum_beyond_its_bound_and_one_reaches_it(name, relation):
    pair = pair_of(name, relation)
    assert 0.99 < pair.realised <= 1.0 + 1e-12


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", QUERIES)
def test_a_release_adds_gaussian_noise_of_the_right_size_and_nothing_else(name, relation):
    pair, mu = pair_of(name, relation), BUDGET.mu()
    check = gaussian_check(releases.OneRelease(QUERIES[name], relation, mu), pair.d, pair.d_prime, runs=400)
    assert check is not None and check.p_value > 1e-4
    assert 0.8 * mu < check.mu_lower < mu


def test_the_table_shows_claims_that_hold():
    told = []
    results = releases.audit_table([Budget.approximate(3.0, 1e-6)], runs=150, only="histogram of", progress=told.append)
    assert [result.name for result in results] == told and len(told) == 2 * 3
    assert all(result.passed for result in results)
    assert markdown(results).count("holds") == len(results)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", releases.selections(QUERIES))
def test_a_selection_tells_no_more_than_its_epsilon(name, relation):
    pair = releases.worst_selection_pair(QUERIES[name], relation)
    assert audit(releases.selection_of(QUERIES[name], relation, 2.0), pair.d, pair.d_prime, (2.0, 0.0), runs=400).passed


def test_a_selection_that_tells_more_is_caught():
    query = QUERIES["distances from a quantile"]
    pair = releases.worst_selection_pair(query, "replace")
    assert not audit(releases.selection_of(query, "replace", 8.0), pair.d, pair.d_prime, (0.5, 0.0), runs=600).passed


def test_coupled_releases_differ_by_the_contribution_alone():
    query = QUERIES["residual products"]
    pair = releases.worst_pair(query, "replace")
    difference = couple(releases.OneRelease(query, "replace", 0.5), pair.d, pair.d_prime).difference
    exact = ((query.of(pair.d) - query.of(pair.d_prime)) * query.grid).ravel()
    assert np.allclose(difference, exact, rtol=1e-9)
