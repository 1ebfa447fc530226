"""Printed: a door for noise as a paper printed it, for reproducing tables; the ledger says that nothing is promised."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.privacy.door import Setting
from sfumato.privacy.events import NoGuarantee
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.privacy.noise import Noise, rounded_gaussian, rounded_laplace
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Printed:
    """A door that adds the noise it is told to, and writes into the ledger that nothing is guaranteed."""

    setting: Setting
    ledger: Ledger
    noise: Noise
    epsilon: float
    delta: float
    reason: str
    _kept: list[tuple[BoundedSum, FloatArray]] = field(default_factory=list, repr=False, compare=False)

    def noised(
        self,
        queries: Sequence[BoundedSum],
        of: Callable[..., FloatArray],
        scale: float,
        why: str,
        laplace: bool = False,
    ) -> Release:
        """``of(exact sums)`` plus Gaussian noise of standard deviation `scale`, or Laplace noise of that scale."""
        self._record(why, queries[0], scale)
        value = of(*self._exact(queries))
        unit = scale * 2.0**-22
        draw = rounded_laplace if laplace else rounded_gaussian
        noise = draw(self.noise, np.broadcast_to(np.int64(2**22), value.shape), value.shape)
        return Release(np.asarray((np.rint(value / unit) + noise) * unit), np.full(value.shape, scale))

    def peeled(
        self, queries: Sequence[BoundedSum], of: Callable[..., FloatArray], picks: int, scale: float
    ) -> IntArray:
        """Algorithm 1, lines 1 to 5: the noisy largest, again and again, with fresh Laplace noise of that scale."""
        self._record("peeling", queries[0], scale)
        scores = of(*self._exact(queries))
        unit, chosen = scale * 2.0**-22, np.zeros(len(scores), dtype=bool)
        order = []
        for _ in range(picks):
            noise = rounded_laplace(self.noise, np.broadcast_to(np.int64(2**22), scores.shape), scores.shape)
            order.append(int(np.argmax(np.where(chosen, -np.inf, np.rint(scores / unit) + noise))))
            chosen[order[-1]] = True
        return np.array(order, dtype=np.int64)

    def _exact(self, queries: Sequence[BoundedSum]) -> list[FloatArray]:
        """Exact sums; those of the last queries are kept, as every step noises the same few again."""
        known = [(query, total) for query, total in self._kept if any(query is asked for asked in queries)]
        asked = [query for query in queries if not any(query is old for old, _ in known)]
        self._kept[:] = known + [(query, self.setting.sum(query) * query.grid) for query in asked]
        return [next(total for old, total in self._kept if old is query) for query in queries]

    def _record(self, why: str, query: BoundedSum, scale: float) -> None:
        event = NoGuarantee(self.reason)
        self.ledger.record(Entry(why, query.describe, event, math.nan, scale, 0.0, self.ledger.relation))
