"""Which few of many features matter, by vote: sites name features privately, in turns, and only noisy scores follow.

A feature that was named often enough is not asked about again, so that weaker ones get their turn: once where sites are
few, and where they are many by several of them, since sites that agree are evidence that costs nothing more. The more
sites there are, the fewer names each gives: one name for the whole of its share is worth more than several in more
noise, and every candidate adds noise to the scores of all. A site that is alone names the strong features first, at
little cost, and keeps the larger part of its share for the weak ones that are left.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
from scipy.special import gammainc, ndtri

from sfumato.privacy.asking import Asking, ask, on_columns
from sfumato.privacy.plan import Line
from sfumato.records import Response
from sfumato.statistics.parts import OnColumns
from sfumato.statistics.scores import SignScores
from sfumato.steps.pursuit import cut_scores
from sfumato.steps.ranks import Ranks
from sfumato.steps.screening import Screen, class_contrasts
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

PICKS = 1
"""Features that a site names when it is its turn."""
NAMES, FEWER = 12, 5 / 8
"""Names that a site gives if it is alone; of K sites each gives as many over K to this power."""
DEARER = 2.0
"""How much more than its first the last name of a site that is alone costs, in units of the first."""
TURNS, QUESTIONS = 8, 12
"""Turns within a round at most, and questions that follow each other."""
AGREED = 2 * NAMES
"""Features that may be named as often as is enough by all votes on a table: more than usually matter."""
PROMISING = 1.0
"""In standard deviations: what the first look at the scores must leave for a second."""
BY_CHANCE, SHADOW = 0.7, 0.1
"""Candidates are kept that stand out of chance and noise together so far that so many for each table would do so by
chance (in equal parts those named once, twice, ..., often enough), and are not in the shadow of the best."""


class Voters(Protocol):
    """Sites that can be asked for their picks one by one."""

    def ballots(self, query: BoundedSum, name: str, turn: int, turns: int) -> Sequence[IntArray]:
        """What each site whose turn it is picked privately, best first."""


def rounds(sites: int) -> int:
    """How often each site is asked.

    >>> [rounds(sites) for sites in (1, 2, 5, 10, 50, 1000)]
    [12, 8, 5, 3, 2, 1]
    """
    return math.ceil(NAMES / math.pow(sites, FEWER))


def turns(sites: int) -> int:
    """Into how many turns the sites are divided.

    >>> [turns(sites) for sites in (1, 2, 5, 10, 50, 1000)]
    [1, 1, 2, 4, 6, 8]
    """
    return min(max(QUESTIONS // rounds(sites), 1), TURNS, sites)


def enough(sites: int, tables: int) -> int:
    """How often a feature is named until it is not asked about again.

    >>> [enough(sites, 2) for sites in (1, 10, 20, 50, 100, 1000)]
    [1, 1, 1, 2, 2, 20]
    """
    return max(sites * rounds(sites) // (tables * AGREED), needed(sites))


def needed(sites: int) -> int:
    """How often a feature is named at least that becomes a candidate: by one site in a hundred."""
    return math.ceil(sites / 100)


def parts_of_rounds(sites: int) -> FloatArray:
    """Which part of the cost of all names each round has.

    What is left for later rounds is weaker, so they cost a site more that is alone; of several, another may name what
    one of them missed.

    >>> parts_of_rounds(1)[[0, -1]].round(3), parts_of_rounds(10).round(3)
    (array([0.042, 0.125]), array([0.333, 0.333, 0.333]))
    """
    parts = np.linspace(1.0, 1.0 + DEARER * (sites == 1), rounds(sites))
    return np.asarray(parts / parts.sum())


@dataclass(frozen=True, slots=True)
class Voting:
    """What `screen_by_votes` pays: `picks` at every turn of a site, and two looks at each table's scores."""

    sites: int
    picks: int
    response: Response
    share: float
    score_share: float

    @property
    def lines(self) -> tuple[Line, ...]:
        """A selection for each round, then the looks."""
        looks = 4 if self.response.categories is None else 2
        named, scored = "features that move with the response, round", "scores of the candidates, look"
        score, costs = self.score_share / looks, self.share * parts_of_rounds(self.sites)
        votes = [
            Line(f"picks {t}", f"{named} {t}", cost, "2 / 1", "selection", self.picks, asks=SignScores)
            for t, cost in enumerate(costs.tolist(), start=1)
        ]
        scores = [
            Line(f"scores {t}", f"{scored} {t}", score, "2 sqrt(q s) / sqrt(q s)", asks=SignScores)
            for t in range(1, looks + 1)
        ]
        return (*votes, *scores)


@dataclass(frozen=True, slots=True)
class Ballot:
    """What is voted on: the centres of all features, the bins of the response, and how many sites give how many names.

    `tables` has bounded functions of the response that features are compared with, one table at a turn.
    """

    centre: FloatArray
    ranks: Ranks
    sites: int
    picks: int

    @property
    def tables(self) -> tuple[FloatArray, ...]:
        if not self.ranks.is_ordered:
            return (class_contrasts(self.ranks.seen.probabilities),)
        table = cut_scores(self.ranks.probabilities)
        return table[:, :1], table[:, 1:]

    def query(self, which: int, columns: IntArray) -> SignScores:
        """The scores of some features with one of the tables."""
        return SignScores(self.centre[columns], self.ranks.bins, self.tables[which])


def screen_by_votes(voters: Voters, ballot: Ballot, n: float, at_least: int) -> Asking[Screen]:
    """Gather candidates, release the sums of their scores, keep what stands out."""
    votes = _votes(voters, ballot)
    named = [np.flatnonzero(each >= min(needed(ballot.sites), each.max())) for each in votes]
    part = BY_CHANCE / enough(ballot.sites, len(named))
    usual = float(_threshold(part, sum(map(len, named)) / len(named)))
    credits = [np.maximum(usual - _threshold(part, _by_chance(v)[c]), 0.0) for v, c in zip(votes, named, strict=True)]
    found, scores = [], np.zeros(len(ballot.centre))
    for which, columns in enumerate(named):
        found.append((yield from _scores(ballot, which, columns, credits[which], n)))
    shadow = SHADOW * max(float(each.max()) for each in found)
    threshold = max(usual, shadow)
    for columns, each, credit in zip(named, found, credits, strict=True):
        # No credit lifts a feature out of the shadow: what goes with a strong one is named often, too.
        scores[columns] = np.maximum(scores[columns], each + np.minimum(credit, threshold - shadow))
    candidates = np.argsort(-scores, kind="stable")[: max(int((scores > 0.0).sum()), at_least)]
    kept = max(int((scores >= threshold).sum()), min(at_least, len(candidates)))
    return Screen(np.sort(candidates[:kept]), candidates, scores[candidates], threshold)


def _votes(voters: Voters, ballot: Ballot) -> IntArray:
    """How often each feature was named, for each table: shape (tables, p).

    What a group of sites has named it does not name again: only another site's name says more.
    """
    tables, often, groups = len(ballot.tables), rounds(ballot.sites), turns(ballot.sites)
    votes = np.zeros((groups, tables, len(ballot.centre)), dtype=np.int64)
    for t, turn in product(range(often), range(groups)):
        which = (t + turn) % tables
        done = votes[:, which].sum(axis=0) >= enough(ballot.sites, tables)
        left = np.flatnonzero(~done & (votes[turn, which] == 0))
        if len(left) < ballot.picks:  # everything was named: ask about all once more
            left = np.arange(len(ballot.centre))
        query = OnColumns(ballot.query(which, left), left)
        for picks in voters.ballots(query, f"picks {t + 1}", turn, groups):
            votes[turn, which, left[picks]] += 1
    return np.asarray(votes.sum(axis=0))


def _by_chance(votes: IntArray) -> FloatArray:
    """How many features would have as many votes as each has if names were drawn blindly: of a Poisson law."""
    return np.asarray(len(votes) * gammainc(np.maximum(votes, 1), votes.sum() / len(votes)))


def _threshold(few: float, count: FloatArray | float) -> FloatArray:
    """Standard deviations that a `few` of so many features exceed by chance."""
    return np.asarray(-ndtri(few / np.maximum(count, few) / 2.0))


def _scores(ballot: Ballot, which: int, columns: IntArray, credit: FloatArray, n: float) -> Asking[FloatArray]:
    """Standardised scores from two looks: fewer columns have less noise, so the second is at the promising alone.

    What promises by its votes, whose `credit` is in standard deviations, need not show in the first look, too: it is
    left out there. Looks are averaged, weighted by the inverse of their known variances.
    """
    table = ballot.tables[which]
    chance = n * (ballot.ranks.probabilities @ table**2)[:, None]
    luck = np.sqrt(chance / ballot.sites)  # a site names what chance favours there: a standard deviation is taken off
    seen, found = np.zeros((2, table.shape[1], len(columns))), np.full(len(columns), np.inf)
    doubted = credit < PROMISING
    if doubted.any():
        seen[..., doubted] = yield from _look(ballot, which, columns[doubted], 1)
        found[doubted] = _standardised(seen[..., doubted], chance, luck)
    hopes = found + credit
    promising = hopes >= min(PROMISING, float(hopes.max()))
    seen[..., promising] += yield from _look(ballot, which, columns[promising], 2)
    found[promising] = _standardised(seen[..., promising], chance, luck)
    return found


def _look(ballot: Ballot, which: int, columns: IntArray, look: int) -> Asking[FloatArray]:
    """Released sums over the variance of their noise, and one over that variance: shape (2, q, s)."""
    line = f"scores {which + 1 + (look - 1) * len(ballot.tables)}"
    released = yield from on_columns(ask(ballot.query(which, columns), line), columns)
    weights = np.broadcast_to(released.noise_std**-2.0, released.value.shape)
    return np.stack([weights * released.value, weights])


def _standardised(seen: FloatArray, chance: FloatArray, luck: FloatArray) -> FloatArray:
    """The largest score of each candidate in standard deviations: those of chance, sqrt(n E f^2), and of the noise."""
    sums, weights = seen
    beyond = np.maximum(np.abs(sums / weights) - luck, 0.0)
    return np.asarray((beyond / np.sqrt(chance + 1.0 / weights)).max(axis=0))
