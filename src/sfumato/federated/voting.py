"""Which few of many features matter, by vote: sites pick privately, round after round, and only noisy scores follow.

A feature that most sites name is elected at once and not asked about again, so that weaker ones, which do not make a
single site's short list as long as the strong are on it, get their turn.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sfumato.iterate.columns import ColumnView
from sfumato.iterate.ranks import Ranks
from sfumato.iterate.screening import Rule, Screen, contrasts
from sfumato.privacy.curator import Curator
from sfumato.privacy.plan import Line
from sfumato.statistics.columns import OnColumns
from sfumato.statistics.scores import SignScores
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

ROUNDS, PICKS = 4, 2
"""Rounds of the vote, and features that a site names in each."""
MAJORITY = 0.15
"""Part of the sites that must name a feature to elect it at once."""
SEATS = 12
"""Candidates whose scores are released, on top of the elected: named by some sites, twice as many if sites are many."""
RULE = Rule(sampling=2.0, noise=1.0, relative=0.1)
"""A column too many costs little where sites add up; a column too few costs a direction."""


class Voters(Protocol):
    """Sites that can be asked for their picks one by one."""

    def ballots(self, query: BoundedSum, name: str) -> Sequence[IntArray]:
        """What each site picked privately, best first."""


def many(sites: int) -> float:
    """How much more than at ten sites a vote is worth, 1 to 3: a site votes by itself, what follows adds up all sites.

    >>> many(1), many(40), many(1000)
    (1.0, 2.0, 3.0)
    """
    return min(max(math.sqrt(sites / 10.0), 1.0), 3.0)


def plan_votes(picks: int, share: float, score_share: float) -> tuple[Line, ...]:
    """The lines `screen_by_votes` will use; `picks` in each round."""
    rounds = tuple(
        Line(
            f"picks {t}",
            f"features that move with the response, round {t}",
            share / ROUNDS,
            "2 / 1",
            "selection",
            picks,
        )
        for t in range(1, ROUNDS + 1)
    )
    return (*rounds, Line("scores", "scores of the candidates", score_share, "2 sqrt(q s) / sqrt(q s)"))


def screen_by_votes(
    curator: Curator, voters: Voters, centre: FloatArray, ranks: Ranks, n: float, at_least: int
) -> Screen:
    """Elect candidates, release the sums of their scores, keep what stands out."""
    table = contrasts(ranks)
    candidates = _elect(voters, SignScores(centre, ranks.bins, table))
    released = ColumnView(curator, candidates).answer(SignScores(centre[candidates], ranks.bins, table), "scores")
    scores = np.abs(released.value).max(axis=0)
    floor = RULE.sampling * np.sqrt(n) + RULE.noise * float(released.noise_std.max())
    threshold = max(floor, RULE.relative * float(scores.max()))
    order = np.argsort(-scores, kind="stable")
    kept = max(int((scores >= threshold).sum()), min(at_least, len(candidates)))
    return Screen(np.sort(candidates[order[:kept]]), candidates[order], scores[order], threshold)


def _elect(voters: Voters, query: SignScores) -> IntArray:
    p = len(query.centre)
    votes, elected = np.zeros(p), np.zeros(p, dtype=bool)
    for t in range(1, ROUNDS + 1):
        left = np.flatnonzero(~elected)
        rest = SignScores(query.centre[left], query.bins, query.table)
        ballots = voters.ballots(OnColumns(rest, left), f"picks {t}")
        count = np.bincount(left[np.concatenate(ballots)], minlength=p)
        votes += count
        elected |= count >= max(math.ceil(MAJORITY * len(ballots)), 1)
    seats = int(elected.sum()) + (round(SEATS * min(many(len(ballots)), 2.0)) if len(ballots) > 1 else 0)
    order = np.lexsort((np.arange(p), -votes, ~elected))
    return np.asarray(order[: min(seats, int((votes > 0).sum()))], dtype=np.int64)
