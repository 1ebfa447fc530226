"""Votes of sites for features: who is asked, and about which functions of the response."""

import numpy as np

from sfumato.federated.voting import Ballot, _named, rounds, turns
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
    return Ballot(np.zeros(FEATURES), ranks, Response(), sites, 1)


def test_every_site_is_asked_once_a_round_whatever_was_named():
    ballot = ordered()
    voters = Recorder()
    _named(voters, ballot)
    often, groups = rounds(SITES, Response()), turns(SITES, Response())
    assert voters.asked == [(f"picks {t + 1}", turn) for t in range(often) for turn in range(groups)]


def test_a_class_that_only_noise_is_in_is_no_function_of_the_response():
    bins, shares = Bins(np.empty(0), categories=3), np.array([0.52, 0.47, 0.01])
    noisy, known = Ranks(bins, shares, 1000.0, noise=20.0), Ranks(bins, shares, 1000.0, noise=1.0)
    for ranks, functions in ((noisy, 1), (known, 3)):
        assert Ballot(np.zeros(2), ranks, Response(categories=3), 2, 1).tables[0].shape == (3, functions)
        assert functions_of(ranks).shape == (3, functions)


def test_where_no_class_is_seen_all_of_them_are_kept():
    ranks = Ranks(Bins(np.empty(0), categories=2), np.array([0.6, 0.4]), 10.0, noise=50.0)
    np.testing.assert_array_equal(ranks.seen.probabilities, ranks.probabilities)
