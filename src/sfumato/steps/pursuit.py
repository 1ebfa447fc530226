"""Pursuit: which few of many features matter, one pick at a time, each beside what the picks before have explained.

A feature that matters only a little beside strong ones is in their shadow as long as they are there; a feature that is
merely correlated with one that matters fades once that one is taken off. So after every pick half of its released
effect is subtracted from the response before the next (damped matching pursuit): half, because features that share
what they explain would otherwise take it from each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from sfumato.privacy.asking import Asking, ask, pick
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.statistics.scores import SignResiduals, Signs
from sfumato.steps.ranks import Ranks
from sfumato.steps.screening import Screen
from sfumato.typing import FloatArray, IntArray

CUT = 0.67
"""Residuals are cut here, in their standard deviations: half of a normal one's records then count as signs."""
SLOPE = float(2.0 * ndtr(CUT) - 1.0) / CUT
"""How much of a small shift of a normal residual is left by the cut, in units of it."""
LEAST_VARIANCE = 0.2
"""What is never explained: the released effects have errors, and so has the variance that is left."""
EVEN = 5
"""One pick in so many looks at the even function of the response."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which of the picked features are kept. Constants, never read from the data.

    Attributes
    ----------
    least : float
        Of the released sum, in standard deviations of chance and noise together.
    relative : float
        Part of the largest: a feature that is only correlated with those that matter scores less.
    damping : float
        Part of an effect that is subtracted before the next pick.
    """

    least: float = 2.2
    relative: float = 0.3
    damping: float = 0.5


@dataclass(frozen=True, slots=True)
class Pursuit:
    """The step that picks features one after another and releases what each explains beside those before.

    Of the picked features it keeps those that the rule lets pass, at most `most`.
    """

    picks: int
    pick_share: float
    sum_share: float
    most: int
    rule: Rule = Rule()

    @property
    def lines(self) -> tuple[Line, ...]:
        """A selection and a sum for each pick."""
        return tuple(line for t in range(1, self.picks + 1) for line in self._pair(t))

    def _pair(self, t: int) -> Iterator[Line]:
        name, each = f"feature {t} that moves with the response", self.pick_share / self.picks
        yield Line(f"pick {t}", name, each, "2 / 1", "selection", asks=SignResiduals)
        yield Line(f"sum {t}", f"how much feature {t} moves", self.sum_share / self.picks, "2 / 1", asks=SignResiduals)

    def run(self, centre: FloatArray, ranks: Ranks, n: float, at_least: int) -> Asking[Screen]:
        """Pick, release, subtract, again; then keep what stands out, at least `at_least` features."""
        signs = Signs(centre)
        functions = [Residual.of(table, ranks.probabilities) for table in functions_of(ranks).T]
        picked: list[int] = []
        scores: list[float] = []
        for t, which in enumerate(self._turns(len(functions), ranks.is_ordered), start=1):
            state = functions[which]
            # Two functions may pick the same feature, as long as there will be enough of them.
            must_differ = len(set(picked)) + self.picks - t < at_least
            left = np.delete(np.arange(len(centre)), picked if must_differ else state.support)
            query = state.query(signs, ranks, left)
            column = left[(yield from pick(query, f"pick {t}"))]
            released = yield from ask(replace(query, columns=column), f"sum {t}")
            functions[which] = state.explained(column, released, n, self.rule.damping)
            picked.append(int(column[0]))
            scores.append(state.standardised(released, n))
        return self._kept(np.array(picked, dtype=np.int64), np.array(scores), at_least)

    def _turns(self, functions: int, ordered: bool) -> list[int]:
        """Which function each pick looks at: classes in turn; of ranks the even function last."""
        if not ordered:
            return [t % functions for t in range(self.picks)]
        even = self.picks // EVEN if functions > 1 else 0
        return [0] * (self.picks - even) + [1] * even

    def _kept(self, picked: IntArray, scores: FloatArray, at_least: int) -> Screen:
        order = np.argsort(-scores, kind="stable")
        best = picked[order][np.sort(np.unique(picked[order], return_index=True)[1])]  # each once, best first
        own = np.array([scores[picked == column].max() for column in best])
        threshold = max(self.rule.least, self.rule.relative * float(own.max()))
        kept = max(min(int((own >= threshold).sum()), self.most), min(at_least, len(best)))
        return Screen(np.sort(best[:kept]), best, own, threshold)


@dataclass(frozen=True, slots=True)
class Residual:
    """What is left of a function of the response of variance one. Everything in it is released or public.

    `table` is the function on bins of the response, `probabilities` are theirs; effects of the `support` are taken off.
    `chance` is its mean square after the cut: a sum over n records wanders by the root of n times that.
    """

    table: FloatArray
    probabilities: FloatArray
    chance: float
    support: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    effects: FloatArray = field(default_factory=lambda: np.empty(0))
    variance: float = 1.0

    @classmethod
    def of(cls, table: FloatArray, probabilities: FloatArray) -> Self:
        """The function itself."""
        cut = np.clip(centred(table, probabilities, CUT) / CUT, -1.0, 1.0)
        return cls(table, probabilities, float(probabilities @ cut**2))

    @property
    def scale(self) -> float:
        """Where it is cut."""
        return CUT * float(np.sqrt(self.variance))

    def query(self, signs: Signs, ranks: Ranks, columns: IntArray) -> SignResiduals:
        """Its sums with the signs of some features."""
        table = centred(self.table, self.probabilities, self.scale)
        return SignResiduals(signs, ranks.bins, table, self.support, self.effects, self.scale, columns)

    def explained(self, column: IntArray, released: Release, n: float, damping: float) -> Self:
        """What is left once part of the effect of a feature is subtracted.

        A sum of cut residuals times a sign is n times effect and slope; it is shrunk by its known error (Stein's way).
        """
        slope = n * SLOPE / np.sqrt(self.variance)
        seen, noise = float(released.value[0]) / slope, float(np.max(released.noise_std)) / slope
        error = noise**2 + self.variance / n
        effect = damping * seen * max(0.0, 1.0 - error / max(seen**2, 1e-12))
        variance = max(self.variance - (2.0 * seen - effect) * effect, LEAST_VARIANCE)
        support, effects = np.append(self.support, column), np.append(self.effects, effect)
        return replace(self, support=support, effects=effects, variance=variance)

    def standardised(self, released: Release, n: float) -> float:
        """The size of a released sum in standard deviations of its noise and of chance together."""
        return abs(float(released.value[0])) / float(np.sqrt(np.max(released.noise_std) ** 2 + n * self.chance))


def functions_of(ranks: Ranks) -> FloatArray:
    """Functions of the response that features are to explain, each of mean zero and variance one: table (bins, q).

    Of ranks the normal scores of the bins and, where they say more, their squares; of classes the centred indicators
    of those that are seen, one of two.
    """
    p = ranks.probabilities if ranks.is_ordered else ranks.seen.probabilities
    table = normal_scores(p) if ranks.is_ordered else _indicators(p)
    table = table - p @ table
    variance = p @ table**2
    some = variance > 1e-6
    if not some.any():
        return np.zeros((len(p), 1))
    return np.asarray(table[:, some] / np.sqrt(variance[some]))


def cut_scores(probabilities: FloatArray) -> FloatArray:
    """Normal scores of the bins and their squares, cut as residuals are: table (bins, 2), from -1 to 1, of mean zero.

    Of functions within these bounds they show features well whose means lie on a line in y, or bend at its ends:
    noise is tied to the bounds, so a function that is near them for most records shows more than one that is not.

    >>> cut_scores(np.full(4, 0.25)).T.round(2) + 0.0
    array([[-1.  , -0.48,  0.48,  1.  ],
           [ 1.  , -1.  , -1.  ,  1.  ]])
    """
    scores = normal_scores(probabilities)
    return np.column_stack([np.clip(centred(each, probabilities, CUT) / CUT, -1.0, 1.0) for each in scores.T])


def centred(table: FloatArray, probabilities: FloatArray, scale: float) -> FloatArray:
    """The table moved so that its mean is zero *after* it is cut at `scale`.

    A feature that has nothing to do with the response then scores zero even if its centre is far from its median.

    >>> moved = centred(np.array([7.0, -1 / 7]), np.array([0.02, 0.98]), 0.67)
    >>> bool(abs(np.array([0.02, 0.98]) @ np.clip(moved / 0.67, -1, 1)) < 1e-12)
    True
    """
    values, place = np.unique(table, return_inverse=True)
    weights = np.bincount(place, probabilities)
    bends = np.unique(np.concatenate([values - scale, values + scale]))  # the mean is linear between them, and falls
    means = np.clip((values - bends[:, None]) / scale, -1.0, 1.0) @ weights
    by = float(np.interp(0.0, means[::-1], bends[::-1]))
    return np.where(probabilities > 0, table - by, 0.0)


def normal_scores(probabilities: FloatArray) -> FloatArray:
    """Mean of a normal variable on each bin's interval of ranks, and its square: table (bins, 2).

    >>> normal_scores(np.full(4, 0.25)).T.round(2)
    array([[-1.27, -0.32,  0.32,  1.27],
           [ 1.62,  0.11,  0.11,  1.62]])
    """
    ends = np.clip(np.concatenate([[0.0], np.cumsum(probabilities)]), 1e-12, 1.0 - 1e-12)
    width = np.diff(ends)
    density = np.exp(-(ndtri(ends) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)
    score = np.divide(-np.diff(density), width, out=ndtri((ends[1:] + ends[:-1]) / 2.0), where=width > 1e-9)
    return np.column_stack([score, score**2])


def _indicators(probabilities: FloatArray) -> FloatArray:
    used = np.flatnonzero(probabilities > 0)
    table = np.zeros((len(probabilities), max(len(used), 1)))
    table[used, np.arange(len(used))] = 1.0
    return table[:, :1] if len(used) == 2 else table
