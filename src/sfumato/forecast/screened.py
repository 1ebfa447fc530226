"""What to believe of a fit to features that were picked among many: whether others would be picked on a fresh sample.

Fits on stand-ins are about the features that were kept: how these scatter says nothing of which they are. The released
scores of the picked features do, each in standard deviations of chance and noise together.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.forecast.assessment import OFTEN, SURE, Verdict, seeded
from sfumato.forecast.belief import Belief
from sfumato.steps.pursuit import Rule
from sfumato.steps.screening import Screen
from sfumato.steps.subspace import unit_rows
from sfumato.typing import FloatArray

SAMPLES = 200
"""Pairs of fresh samples."""
OTHERS = "Other features might be picked there."


@dataclass(frozen=True, eq=False)
class ScreenedBelief(Belief):
    """What the releases of such a fit say about its own directions."""

    screen: Screen
    rule: Rule

    @classmethod
    def of(cls, belief: Belief, screen: Screen, rule: Rule) -> Self:
        """The same belief, with what is known of the picked features and the rule by which some were kept."""
        return cls(**{field.name: getattr(belief, field.name) for field in fields(Belief)}, screen=screen, rule=rule)

    @cached_property
    def picked_alike(self) -> FloatArray:
        """Correlation of scores along each direction that all but few pairs of fresh samples reach, as far as that is a
        matter of which features are kept there.

        What a kept feature weighs the fit says; one that was picked and not kept weighs as its score does beside
        theirs, chance and noise taken out. Features are taken for unrelated, which is rough. Of those that were never
        picked nothing is known.
        """
        screen, kept = self.screen, np.isin(self.screen.picked, self.screen.kept)
        shown = np.where(kept, without_chance(screen.scores, kept), without_chance(screen.scores, ~kept))
        weights = np.tile(shown / max(float(np.linalg.norm(shown[kept])), 1e-9), (self._k, 1))
        weights[:, kept] = unit_rows(self.per_deviation(self.own))[:, np.searchsorted(screen.kept, screen.picked[kept])]
        rng = seeded(self.evidence)
        one, other = (weights[:, None] * self._kept_again(rng) for _ in range(2))
        lengths = np.linalg.norm(one, axis=2) * np.linalg.norm(other, axis=2)
        return np.asarray(np.quantile((one * other).sum(axis=2) / np.maximum(lengths, 1e-300), 1.0 - OFTEN, axis=1))

    def _kept_again(self, rng: np.random.Generator) -> FloatArray:
        """Which of the picked features are kept on fresh samples, one or zero: (samples, picked)."""
        scores = np.abs(self.screen.scores + rng.standard_normal((SAMPLES, len(self.screen.scores))))
        largest = scores.max(axis=1, keepdims=True)
        least = np.minimum(np.maximum(self.rule.least, self.rule.relative * largest), largest)
        return np.asarray(scores >= least, dtype=np.float64)

    @cached_property
    def alikeness(self) -> FloatArray:
        return np.minimum(self._alike(self.evidence.beyond), self.picked_alike)

    @cached_property
    def alikeness_inside(self) -> FloatArray:
        return np.minimum(self._alike(np.zeros_like(self.evidence.beyond)), self.picked_alike)

    @cached_property
    def verdict(self) -> Verdict:
        """As of any fit; it says so where other features might be picked."""
        found = super().verdict
        if found.level == "noise" or min(self.picked_alike[: self.tested.announced], default=1.0) >= SURE:
            return found
        return Verdict(found.level, f"{found.sentence} {OTHERS}", found.levels)


def without_chance(scores: FloatArray, some: NDArray[np.bool_]) -> FloatArray:
    """Scores less what chance and noise, of variance one, make of them: some of them together exceed it by no more.

    >>> without_chance(np.array([0.5, 1.5, 5.0]), np.array([True, True, False])).round(2)
    array([0.  , 0.71, 3.1 ])
    >>> without_chance(np.array([0.2, 1.2]), np.array([True, True]))
    array([0., 0.])
    """
    excess = np.maximum(scores**2 - 1.0, 0.0)
    part = float((scores[some] ** 2 - 1.0).sum()) / max(float(excess[some].sum()), 1e-300)
    return np.asarray(np.sqrt(max(part, 0.0) * excess))
