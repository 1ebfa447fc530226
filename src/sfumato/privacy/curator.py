"""Curator: the one door. Records, noise and ledger meet in this file and nowhere else.

`PaperCurator` adds the noise that a paper printed, to reproduce its tables; its ledger says that nothing is promised.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sfumato import progress
from sfumato.privacy import mechanisms
from sfumato.privacy.door import Setting
from sfumato.privacy.events import Gaussian, Laplace, NoGuarantee, Selection
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.privacy.noise import Noise, rounded_gaussian, rounded_laplace
from sfumato.privacy.plan import Line, Plan
from sfumato.release import Release
from sfumato.statistics.parts import Part
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation


class Curator:
    """Answers the lines of one calibrated plan, each once.

    `answer` and `select` write the ledger, then add, then draw noise, in this order: whatever interrupts them,
    the ledger never says less than what was released.

    Parameters
    ----------
    setting : Setting
        Holds the records.
    plan : Plan
        Calibrated; lines not in it are refused, so a run cannot spend more than it declared.
    ledger : Ledger
        Must have room for the plan (`Ledger.reserve`).
    noise : Noise
        Source of randomness.
    share : int
        Noise of one over this fraction of the variance is added, where as many curators add theirs and only the sum
        of their releases is seen; the ledger states the cost of that sum.
    """

    def __init__(self, setting: Setting, plan: Plan, ledger: Ledger, noise: Noise, share: int = 1) -> None:
        ledger.reserve(plan)
        self._setting = setting
        self._ledger = ledger
        self._noise = noise
        self._share = share
        self._open = {line.name: line for line in plan.lines}
        self._unanswered = {line.name: set(range(line.parts)) for line in plan.lines if line.parts > 1}
        self._paid: set[str] = set()
        # a door that is gone answers no further line: what it had set aside is free again
        weakref.finalize(self, _give_back, ledger, self._open, self._paid).atexit = False
        progress.planned([line.purpose for line in plan.lines])

    @property
    def relation(self) -> Relation:
        """Neighbouring relation of every answer."""
        return self._ledger.relation

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The noisy sum for the plan's line `name`, which is thereby used up.

        A line of disjoint parts is asked a `Part` at a time, each once; the first one asked pays for all.
        """
        self._noise.begin(name)  # the stream of a rehearsal over sites is seeded line by line
        line, query = self._take(query, name), self._ledger.unit.of(query)
        match line.event:
            case Gaussian() as event:
                std = mechanisms.gaussian_std(query, self.relation, event) * query.grid
                self._pay(line, query, event.mu * float(std.max()), float(std.max()) / math.sqrt(self._share))
                # mu of the share alone; what the ledger states is mu of the sum, the only thing that is seen
                share = Gaussian(event.mu * math.sqrt(self._share))
                return mechanisms.gaussian(self._setting.sum(query), query, self.relation, share, self._noise)
            case Laplace() as event if self._share == 1:
                sensitivity = query.l1_sensitivity(self.relation)
                self._pay(line, query, sensitivity, 2.0**0.5 * sensitivity / event.epsilon)
                return mechanisms.laplace(self._setting.sum(query), query, self.relation, event, self._noise)
            case Laplace():
                raise RuntimeError(f"the plan's line {name!r} is not Gaussian, so its noise cannot be shared.")
        raise RuntimeError(f"the plan's line {name!r} is a selection; ask for it with select.")

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """Which coordinates of the sum are largest, privately, best first; the sums themselves stay inside."""
        if self._share != 1:  # a pick cannot be a share of a sum
            raise RuntimeError(f"the plan's line {name!r} is a selection, so its noise cannot be shared.")
        self._noise.begin(name)
        line, query = self._take(query, name), self._ledger.unit.of(query)
        event = line.event
        if not isinstance(event, Selection) or line.parts > 1:
            raise RuntimeError(f"the plan's line {name!r} is not a selection; ask for it with answer.")
        scale = mechanisms.gumbel_scale(query, self.relation, event)
        self._pay(line, query, query.spread(self.relation) / 2.0, math.pi / math.sqrt(6.0) * scale)
        return mechanisms.top(self._setting.sum(query), query, self.relation, event, self._noise)

    def _pay(self, line: Line, query: BoundedSum, sensitivity: float, noise_std: float) -> None:
        if line.name in self._paid:  # another part of it
            return
        entry = Entry(line.purpose, query.describe, line.event, sensitivity, noise_std, line.share, self.relation)
        self._ledger.record(replace(entry, unit=self._ledger.unit))
        self._paid.add(line.name)

    def _take(self, query: BoundedSum, name: str) -> Line:
        if name not in self._open:
            raise RuntimeError(f"the plan has no unanswered line {name!r}.")
        line = self._open[name]
        if line.parts > 1:
            self._take_part(query, line)
        else:
            del self._open[name]
        if name not in self._paid:
            progress.started(line.purpose)
        return line

    def _take_part(self, query: BoundedSum, line: Line) -> None:
        unanswered = self._unanswered[line.name]
        if not isinstance(query, Part) or query.parts != line.parts or query.index not in unanswered:
            raise RuntimeError(f"the plan's line {line.name!r} has no unanswered part that this question is about.")
        unanswered.remove(query.index)


def _give_back(ledger: Ledger, unanswered: dict[str, Line], paid: set[str]) -> None:
    ledger.give_back(line.event for line in unanswered.values() if line.name not in paid)


@dataclass(frozen=True, slots=True)
class PaperCurator:
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
