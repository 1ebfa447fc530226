"""Sparse components: which features the noise of the picks lets through, then the components of those."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.iterate.variances import REACH
from sfumato.planner.crowd import Crowd
from sfumato.planner.law import Law
from sfumato.planner.principal import Spiked
from sfumato.planner.screened import WIDEST, within
from sfumato.privacy.events import Selection
from sfumato.records import Records
from sfumato.typing import IntArray

MOST_ACTIVE = 6
_POINTS = 4000


@dataclass(frozen=True, slots=True)
class Varying(Law):
    """Independent features of variance 1 but for six (or as many as may be picked) that share a component.

    It explains the part `signal` of the variance of each of them. The loss without privacy is that of the components
    of those features alone.
    """

    meaning: ClassVar[str] = "how much of the variance of its features the component explains"

    picks: int = MOST_ACTIVE

    @property
    def active(self) -> int:
        """Features of the component."""
        return min(MOST_ACTIVE, self.picks)

    @property
    def quick(self) -> bool:
        return self.active < self.n_features <= WIDEST

    def points(self, rng: np.random.Generator) -> Records:
        """Standard normal values of one feature; all are alike up to scale."""
        return Records(rng.standard_normal((_POINTS, 1)), np.zeros(_POINTS))

    def private(self, crowd: Crowd) -> float:
        found = int((self._picked(crowd) < self.active).sum())
        inner = self._on(self.picks, found)
        if found == 0 or inner is None:
            return within(found, self.active, 0.0)
        return within(found, self.active, inner.private(inner.crowd(crowd.plan, crowd.relation, crowd.n, crowd.rng)))

    def plain(self, crowd: Crowd) -> float:
        inner = self._on(self.active, self.active)
        return 0.0 if inner is None else inner.plain(inner.crowd(crowd.plan, crowd.relation, crowd.n, crowd.rng))

    def _picked(self, crowd: Crowd) -> IntArray:
        """The largest sums of clipped squares under Gumbel noise; the active features come first."""
        event = crowd.plan.line("picks").event
        assert isinstance(event, Selection)
        p, s, z = self.n_features, self.active, crowd.points.x[:, 0]
        variance = 1.0 / (1.0 - self.signal)
        # Squared; of the typical size of an entry, which the histogram of lengths rounds up to a power of 2^(1/4).
        clip = REACH**2 * (1.0 + s * (variance - 1.0) / p) * 2.0**0.25
        scores = np.empty(p)
        for place, spread in ((slice(0, s), variance), (slice(s, p), 1.0)):
            squares = np.minimum(spread * z**2, clip)
            error = squares.std() * np.sqrt(crowd.n) * crowd.rng.standard_normal(p)[place]
            scores[place] = crowd.n * squares.mean() + error
        scores += crowd.rng.gumbel(scale=2.0 * clip / event.epsilon, size=p)
        return np.argsort(-scores)[: event.picks]

    def _on(self, features: int, found: int) -> Spiked | None:
        """Records of some features of which `found` are active, turned so that the component is the first."""
        if features < 2 or found == 0:
            return None
        spike = found * self.signal / (1.0 - self.signal)
        return Spiked(features, 1, spike / (spike + features))
