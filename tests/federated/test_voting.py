"""Votes of sites for features: who is asked, and about which functions of the response."""

from itertools import product

import numpy as np
import pytest

from sfumato.federated.terms import KNOWN
from sfumato.federated.voting import Ballot, Voting, _named, rounds, turns
from sfumato.records import Response
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
    _named(voters, ballot)
    often, groups = rounds(SITES), turns(SITES)
    assert voters.asked == [(f"picks {t + 1}", turn) for t in range(often) for turn in range(groups)]


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
