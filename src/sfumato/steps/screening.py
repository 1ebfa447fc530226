"""Screening: which few of many features matter, from signs alone, and how many of them to keep."""

from dataclasses import dataclass

import numpy as np

from sfumato.privacy.asking import Asking, ask, on_columns, pick
from sfumato.privacy.plan import Line
from sfumato.statistics.scores import SignScores
from sfumato.steps.ranks import Ranks
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


@dataclass(frozen=True, slots=True)
class Screening:
    """The step that picks features by their scores, releases those scores, and keeps what stands out by a rule."""

    picks: int
    pick_share: float
    score_share: float
    rule: Rule = Rule()

    @property
    def lines(self) -> tuple[Line, ...]:
        """The picks, then their scores."""
        picked, scored = "features that move with the response", "scores of the picked features"
        return (
            Line("picks", picked, self.pick_share, "2 / 1", "selection", self.picks, asks=SignScores),
            Line("scores", scored, self.score_share, "2 sqrt(q s) / sqrt(q s)", asks=SignScores),
        )

    def run(self, centre: FloatArray, ranks: Ranks, n: float, at_least: int) -> Asking[Screen]:
        """Pick the features with the largest scores, release those scores, keep what stands out.

        A sum of n signs that do not depend on y wanders by sqrt(n) at most; that and the known noise are what a score
        must pass. At least `at_least` features are kept, so that as many directions exist.
        """
        table = contrasts(ranks)
        picked = yield from pick(SignScores(centre, ranks.bins, table), "picks")
        released = yield from on_columns(ask(SignScores(centre[picked], ranks.bins, table), "scores"), picked)
        scores = np.abs(released.value).max(axis=0)
        floor = self.rule.sampling * np.sqrt(n) + self.rule.noise * float(released.noise_std.max())
        threshold = max(floor, self.rule.relative * float(scores.max()))
        order = np.argsort(-scores, kind="stable")
        kept = max(int((scores >= threshold).sum()), min(at_least, len(picked)))
        return Screen(np.sort(picked[order[:kept]]), picked[order], scores[order], threshold)


def contrasts(ranks: Ranks) -> FloatArray:
    """Bounded functions of the response that a feature is compared with."""
    return rank_contrasts(ranks.probabilities) if ranks.is_ordered else class_contrasts(ranks.probabilities)


def rank_contrasts(probabilities: FloatArray) -> FloatArray:
    """Upper against lower half, and middle against outer halves, of the ranks: table (bins, 2).

    Each function is averaged over a bin's interval of ranks, so its mean is zero whatever the bins: a feature that
    does not depend on y has score zero even if its centre is far from its median.

    >>> rank_contrasts(np.full(4, 0.25)).T
    array([[-1., -1.,  1.,  1.],
           [-1.,  1.,  1., -1.]])
    """
    ends = np.concatenate([[0.0], np.cumsum(probabilities)])
    return np.column_stack([_mean_over(ends, np.abs(ends - 0.5)), _mean_over(ends, _tent(ends))])


def smooth_contrasts(probabilities: FloatArray) -> FloatArray:
    """``cos(pi u)`` and ``cos(2 pi u)`` of the ranks u, averaged over the bins: table (bins, 2).

    They follow a feature as `rank_contrasts` do, with half the variance where it does not depend on y: chance moves
    them less, privacy noise somewhat more.

    >>> smooth_contrasts(np.full(4, 0.25)).T.round(2) + 0.0
    array([[ 0.9 ,  0.37, -0.37, -0.9 ],
           [ 0.64, -0.64, -0.64,  0.64]])
    """
    ends = np.concatenate([[0.0], np.cumsum(probabilities)])
    return np.column_stack([_mean_over(ends, np.sin(j * np.pi * ends) / (j * np.pi)) for j in (1, 2)])


def class_contrasts(probabilities: FloatArray) -> FloatArray:
    """Each class in use against all others, scaled to mean zero and largest value one: table (bins, classes).

    >>> class_contrasts(np.array([0.5, 0.0, 0.5]))
    array([[ 1.],
           [ 0.],
           [-1.]])
    """
    used = np.flatnonzero(probabilities > 0)
    own = np.zeros((len(probabilities), len(used)))
    own[used, np.arange(len(used))] = 1.0
    table = own - probabilities[used]
    table /= np.maximum(np.abs(table).max(axis=0), 1e-12)
    table[probabilities <= 0] = 0.0
    return table[:, :1] if len(used) == 2 else table  # the second of two is minus the first


def _tent(u: FloatArray) -> FloatArray:
    """Integral of the function that is -1, 1, 1, -1 on the quarters of [0, 1]."""
    return np.asarray(np.where(u < 0.25, -u, np.where(u < 0.75, u - 0.5, 1.0 - u)))


def _mean_over(ends: FloatArray, integral: FloatArray) -> FloatArray:
    width = np.diff(ends)
    return np.clip(np.divide(np.diff(integral), width, out=np.zeros_like(width), where=width > 1e-12), -1.0, 1.0)
