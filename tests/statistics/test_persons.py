"""Sums that any one person can move, by k steps at most."""

import numpy as np
import pytest

from sfumato.audit.releases import queries, selections
from sfumato.bounds import Bounds
from sfumato.records import Records
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.parts import Part, PerPerson, part_of

ROWS = (1, 2, 10)
RELATIONS = ("replace", "add-remove")


def person(rng, query_features, rows, alike):
    """Some rows of one person, at most so many; extreme, and all alike where that moves most."""
    count = rows if alike else int(rng.integers(0, rows + 1))
    x = rng.standard_normal((count, query_features)) * 10.0 ** rng.uniform(-2, 2, (count, 1))
    y = rng.choice([-10.0, -0.5, 0.0, 0.5, 10.0], count)
    if alike and count:
        x[:], y[:] = x[0], y[0]
    return Records(x, y)


def joined(*parts):
    return Records(np.vstack([part.x for part in parts]), np.concatenate([part.y for part in parts]))


def pairs(seed, rows, relation, tries=150):
    """Data sets that differ in all rows of one person, some of them in opposite ones."""
    rng = np.random.default_rng(seed)
    for i in range(tries):
        base = Records(rng.uniform(-1, 1, (6, 3)), rng.normal(size=6))
        one = person(rng, 3, rows, alike=i % 3 > 0)
        other = Records(-one.x, -one.y if i % 2 else one.y) if i % 3 == 2 else person(rng, 3, rows, alike=i % 2 > 0)
        none = Records(np.empty((0, 3)), np.empty(0))
        yield joined(base, one), joined(base, none if relation == "add-remove" else other)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", list(queries()))
def test_a_person_moves_no_sum_further_than_its_bound(name, rows, relation):
    query = PerPerson(queries()[name], rows)
    moved = [query.weights * (query.of(d) - query.of(d_prime)) for d, d_prime in pairs(rows, rows, relation)]
    longest = max(float(np.linalg.norm(each)) for each in moved)
    assert 0.3 * query.sensitivity(relation) < longest <= query.sensitivity(relation) * (1 + 1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", list(selections()))
def test_a_person_moves_no_score_further_than_its_bound(name, rows, relation):
    query = PerPerson(selections()[name], rows)
    for d, d_prime in pairs(rows, rows, relation):
        moved = query.scores(query.of(d)) - query.scores(query.of(d_prime))
        assert np.abs(moved).max() <= query.peak(relation) * (1 + 1e-12)
        assert np.ptp(moved) <= query.spread(relation) * (1 + 1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", ROWS)
def test_a_person_moves_no_sum_further_in_l1_than_its_bound(rows, relation):
    query = PerPerson(ResponseHistogram(Bins(np.array([-1.0, 0.0, 1.0]))), rows)
    moved = [np.abs(query.of(d) - query.of(d_prime)).sum() for d, d_prime in pairs(rows, rows, relation)]
    assert max(moved) == query.l1_sensitivity(relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", ROWS)
def test_the_rows_of_a_person_may_fall_into_several_parts_at_no_further_cost(rows, relation):
    grid, parts, longest, spread = Bounds(-1.0, 1.0).grid(3), 3, 0.0, 0
    asked = [PerPerson(Part(Moments(grid, 1.0), i, parts), rows) for i in range(parts)]
    for d, d_prime in pairs(rows, rows, relation, tries=300):
        moved = [one.weights * (one.of(d) - one.of(d_prime)) / one.sensitivity(relation) for one in asked]
        longest = max(longest, float(np.sqrt(sum((each**2).sum() for each in moved))))
        assert longest <= 1 + 1e-12
        theirs = part_of(Records(d.x[6:], d.y[6:]), parts)  # after the six rows of others
        spread = max(spread, len(set(theirs.tolist())))
    assert longest > 0.6 and spread == min(rows, parts)


def test_with_one_row_each_a_replaced_person_may_also_be_one_who_left():
    """More than replacing a record allows, where two records are nearer to each other than to nothing."""
    query = queries()["sums of squares"]
    assert PerPerson(query, 1).sensitivity("replace") == max(query.diameter, query.norm)
