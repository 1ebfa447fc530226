"""Votes of sites for features: who is asked about what, and what the candidates are scored with."""

import numpy as np
import pytest

from sfumato.federated.voting import Ballot, _named, rounds, turns
from sfumato.records import Response
from sfumato.statistics.histograms import Bins
from sfumato.steps.pursuit import functions_of
from sfumato.steps.ranks import Ranks

SITES, FEATURES = 50, 400


class Recorder:
    """Sites that all name feature 3 when they are asked about the odd function first, and each its own otherwise."""

    def __init__(self, ballot):
        self.odd, self.asked = ballot.tables[0].tobytes(), []

    def ballots(self, query, name, turn, turns):
        about = int(query.query.table.tobytes() != self.odd)
        self.asked.append((name, turn, about))
        if about == 0 and 3 in query.columns:
            return [np.flatnonzero(query.columns == 3)] * 5
        return [np.array([10 * about + site]) for site in range(5)]


def ordered(sites=SITES):
    ranks = Ranks(Bins(np.arange(7.0)), np.full(8, 0.125), 1000.0)
    return Ballot(np.zeros(FEATURES), ranks, Response(), sites, 1)


def test_every_site_is_asked_once_a_round_whatever_was_named():
    ballot = ordered()
    voters = Recorder(ballot)
    _named(voters, ballot)
    often, groups = rounds(SITES, Response()), turns(SITES, Response())
    assert [asked[:2] for asked in voters.asked] == [
        (f"picks {t + 1}", turn) for t in range(often) for turn in range(groups)
    ]


def test_a_function_is_asked_about_again_only_while_sites_name_the_same():
    """Odd: agreed. Even: not. So odd again; not any more. Then in turns."""
    ballot = ordered()
    voters = Recorder(ballot)
    odd, even = _named(voters, ballot)
    assert [about for _, _, about in voters.asked] == [0, 1, 0, 1, 0, 1, 0, 1]
    assert 3 in odd and 3 not in even


@pytest.mark.parametrize("shares", [np.full(8, 0.125), np.array([0.5, 0.1, 0.02, 0.08, 0.1, 0.05, 0.05, 0.1])])
def test_candidates_are_scored_with_functions_of_mean_zero_that_are_one_at_most(shares):
    ballot = Ballot(np.zeros(3), Ranks(Bins(np.arange(7.0)), shares, 1000.0), Response(), 10, 1)
    for which in range(2):
        cut = ballot.cut(which)
        assert np.abs(cut).max() <= 1.0
        assert np.abs(shares @ cut).max() < 1e-9
        assert shares @ np.abs(cut) > shares @ np.abs(ballot.tables[which])  # more of the same noise is signal


def test_a_class_that_only_noise_is_in_is_no_function_of_the_response():
    bins, shares = Bins(np.empty(0), categories=3), np.array([0.52, 0.47, 0.01])
    noisy, known = Ranks(bins, shares, 1000.0, noise=20.0), Ranks(bins, shares, 1000.0, noise=1.0)
    for ranks, functions in ((noisy, 1), (known, 3)):
        assert Ballot(np.zeros(2), ranks, Response(categories=3), 2, 1).tables[0].shape == (3, functions)
        assert functions_of(ranks).shape == (3, functions)


def test_where_no_class_is_seen_all_of_them_are_kept():
    ranks = Ranks(Bins(np.empty(0), categories=2), np.array([0.6, 0.4]), 10.0, noise=50.0)
    np.testing.assert_array_equal(ranks.seen.probabilities, ranks.probabilities)
