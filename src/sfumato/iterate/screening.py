"""Screening: which few of many features matter, from signs alone, and how many of them to keep."""

from dataclasses import dataclass

import numpy as np

from sfumato.iterate.ranks import Ranks
from sfumato.privacy.asking import Asking, ask, on_columns, pick
from sfumato.privacy.plan import Line
from sfumato.solve.contrasts import class_contrasts, rank_contrasts
from sfumato.statistics.scores import SignScores
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Rule:
    """Which of the picked features are kept: those whose score stands out of sampling and privacy noise, and of
    the shadow of the best. Constants, never read from the data.

    Attributes
    ----------
    sampling : float
        In standard deviations of the score of a feature that does not matter, sqrt(n) at most.
    noise : float
        In standard deviations of the known noise.
    relative : float
        Part of the largest score: a feature that is only correlated with those that matter scores less.
    """

    sampling: float = 2.0
    noise: float = 1.5
    relative: float = 0.4


@dataclass(frozen=True, slots=True)
class Screen:
    """Features kept (in increasing order) and picked (best first), with the released scores of the picked."""

    kept: IntArray
    picked: IntArray
    scores: FloatArray
    threshold: float


def plan_screening(picks: int, pick_share: float, score_share: float) -> tuple[Line, ...]:
    """The lines `screen` will use."""
    return (
        Line("picks", "features that move with the response", pick_share, "2 / 1", "selection", picks),
        Line("scores", "scores of the picked features", score_share, "2 sqrt(q s) / sqrt(q s)"),
    )


def contrasts(ranks: Ranks) -> FloatArray:
    """Bounded functions of the response that a feature is compared with."""
    return rank_contrasts(ranks.probabilities) if ranks.is_ordered else class_contrasts(ranks.probabilities)


def screen(centre: FloatArray, ranks: Ranks, n: float, at_least: int, rule: Rule) -> Asking[Screen]:
    """Pick the features with the largest scores, release those scores, keep what stands out.

    A sum of n signs that do not depend on y wanders by sqrt(n) at most; that and the known noise are what a score
    must pass. At least `at_least` features are kept, so that as many directions exist.
    """
    table = contrasts(ranks)
    picked = yield from pick(SignScores(centre, ranks.bins, table), "picks")
    released = yield from on_columns(ask(SignScores(centre[picked], ranks.bins, table), "scores"), picked)
    scores = np.abs(released.value).max(axis=0)
    floor = rule.sampling * np.sqrt(n) + rule.noise * float(released.noise_std.max())
    threshold = max(floor, rule.relative * float(scores.max()))
    order = np.argsort(-scores, kind="stable")
    kept = max(int((scores >= threshold).sum()), min(at_least, len(picked)))
    return Screen(np.sort(picked[order[:kept]]), picked[order], scores[order], threshold)
