"""Curator: the one door. Records, noise and ledger meet nowhere else, but for printed noise that promises nothing."""

import math
import weakref
from dataclasses import replace

from sfumato import progress
from sfumato.privacy import mechanisms
from sfumato.privacy.door import Setting
from sfumato.privacy.events import Gaussian, Laplace, Selection
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.privacy.noise import Noise
from sfumato.privacy.plan import Line, Plan
from sfumato.release import Release
from sfumato.statistics.parts import Part
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation


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
        self._noise.begin(name)
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
        peak = query.peak(self.relation)
        self._pay(line, query, peak, math.pi / math.sqrt(6.0) * 2.0 * peak / event.epsilon)  # std of a Gumbel
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
