"""Votes of sites for features: who is asked, and about which functions of the response."""

from itertools import product

import numpy as np
import pytest

from sfumato.federated.task import COUNTS, shares_of
from sfumato.federated.terms import KNOWN
from sfumato.federated.voting import PROMISING, Ballot, Voting, _votes, enough, rounds, screen_by_votes, turns
from sfumato.privacy.asking import drive
from sfumato.records import Response
from sfumato.release import Release
from sfumato.statistics.histograms import Bins
from sfumato.steps.pursuit import functions_of
from sfumato.steps.ranks import Ranks

SITES, FEATURES = 50, 400


class Recorder:
    """Sites each of which names a feature of its own."""

    def __init__(self):
        self.asked = []

    def ballots(self, query, name, turn, turns):
        self.asked.append((name, turn))
        return [np.array([site]) for site in range(5)]


def ordered(sites=SITES):
    ranks = Ranks(Bins(np.arange(7.0)), np.full(8, 0.125), 1000.0)
    return Ballot(np.zeros(FEATURES), ranks, sites, 1)


def test_every_site_is_asked_once_a_round_whatever_was_named():
    ballot = ordered()
    voters = Recorder()
    _votes(voters, ballot)
    often, groups = rounds(SITES), turns(SITES)
    assert voters.asked == [(f"picks {t + 1}", turn) for t in range(often) for turn in range(groups)]


class Sure:
    """Sites that all name the first feature they may, and sums without signal that are seen nearly as they are."""

    def __init__(self):
        self.left, self.scored = [], []

    def ballots(self, query, name, turn, turns):
        self.left.append((turn, tuple(query.columns)))
        return [np.zeros(1, dtype=np.int64) for _ in range(turn, SITES, turns)]

    def answer(self, query, name):
        self.scored.append((name, len(query.columns)))
        return Release(np.zeros(query.query.shape), np.ones(query.query.shape))


@pytest.mark.parametrize("categories", [None, 2])
def test_no_group_of_sites_names_a_feature_twice(categories):
    bins = Bins(np.arange(7.0)) if categories is None else Bins(np.empty(0), categories=categories)
    ranks = Ranks(bins, np.full(bins.count, 1.0 / bins.count), 1000.0)
    voters, ballot = Sure(), Ballot(np.zeros(FEATURES), ranks, SITES, 1)
    _votes(voters, ballot)
    named = {}
    for t, (turn, left) in enumerate(voters.left):
        mine = named.setdefault((turn, (t // turns(SITES) + turn) % len(ballot.tables)), set())
        assert mine.isdisjoint(left)
        mine.add(left[0])


def test_what_many_sites_name_is_kept_without_a_first_look_and_frees_the_turn_of_others():
    voters, ballot = Sure(), ordered()
    screen = drive(screen_by_votes(voters, ballot, 1000.0, 1), voters)
    assert {name for name, _ in voters.scored} == {"scores 3", "scores 4"}  # the second looks at both tables
    assert enough(SITES, 2) == 2 and len(screen.kept) == turns(SITES)  # each turn's sites agree on another feature
    assert screen.scores.min() >= screen.threshold > PROMISING


def test_votes_that_chance_explains_are_no_evidence():
    voters, ballot = Recorder(), Ballot(np.zeros(5), ordered().ranks, SITES, 1)
    voters.answer = Sure().answer
    screen = drive(screen_by_votes(voters, ballot, 1000.0, 1), voters)
    assert len(screen.kept) == 1  # every feature was named equally often


def test_sites_that_are_many_spend_less_on_counts_and_more_on_names():
    for response in (Response(), Response(categories=3)):
        few, many = shares_of(response, 10), shares_of(response, 100)
        assert few == shares_of(response, 1) and sum(many.values()) == pytest.approx(sum(few.values()))
        for name in few:
            ratio = many[name] / few[name]
            assert ratio > 1.0 if name == "picks" else ratio == pytest.approx(0.1**0.5 if name in COUNTS else 1.0)


def test_features_are_named_by_a_line_and_by_a_bend_of_the_ranks():
    line, bend = (table[:, 0] for table in ordered().tables)
    middle = np.arange(8) - 3.5
    np.testing.assert_allclose([line @ np.abs(middle), bend @ middle], 0.0, atol=1e-12)
    assert (np.diff(line) >= 0).all() and (np.diff(bend[4:]) >= 0).all()
    assert min(np.abs(line).mean(), np.abs(bend).mean()) > 2.0 / np.pi  # records weigh more than with a cosine


def test_a_class_that_only_noise_is_in_is_no_function_of_the_response():
    bins, shares = Bins(np.empty(0), categories=3), np.array([0.52, 0.47, 0.01])
    noisy, known = Ranks(bins, shares, 1000.0, noise=20.0), Ranks(bins, shares, 1000.0, noise=1.0)
    for ranks, functions in ((noisy, 1), (known, 3)):
        assert Ballot(np.zeros(2), ranks, 2, 1).tables[0].shape == (3, functions)
        assert functions_of(ranks).shape == (3, functions)


def test_where_no_class_is_seen_all_of_them_are_kept():
    ranks = Ranks(Bins(np.empty(0), categories=2), np.array([0.6, 0.4]), 10.0, noise=50.0)
    np.testing.assert_array_equal(ranks.seen.probabilities, ranks.probabilities)


def test_the_names_of_a_site_cost_what_votes_may_cost_whatever_their_number():
    for sites, response in product((1, 3, 10, 200), (Response(), Response(categories=3))):
        lines = Voting(sites, 1, response, 0.9, 0.4).lines
        votes = [line.share for line in lines if line.mechanism == "selection"]
        assert len(votes) == rounds(sites) and votes == sorted(votes)
        assert sum(votes) == pytest.approx(0.9)
        assert sum(line.share for line in lines) == pytest.approx(1.3)


def test_a_site_knows_every_round_of_every_federation():
    names = {line.name for sites in range(1, 300) for line in Voting(sites, 1, Response(), 1.0, 1.0).lines}
    assert names <= set(KNOWN)
