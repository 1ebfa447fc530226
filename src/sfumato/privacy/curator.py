"""Curator: the one door. Records, noise and ledger meet nowhere else."""

import math
from dataclasses import replace
from typing import Protocol

from sfumato import progress
from sfumato.privacy import mechanisms
from sfumato.privacy.events import Gaussian, Laplace, Selection
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.privacy.noise import Noise
from sfumato.privacy.plan import Line, Plan
from sfumato.release import Release
from sfumato.statistics.parts import Part
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation


class Setting(Protocol):
    """Who holds the records and adds them up."""

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records."""


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
    """

    def __init__(self, setting: Setting, plan: Plan, ledger: Ledger, noise: Noise) -> None:
        ledger.reserve(plan)
        self._setting = setting
        self._ledger = ledger
        self._noise = noise
        self._open = {line.name: line for line in plan.lines}
        self._begun: dict[str, tuple[Line, set[int]]] = {}
        progress.planned([line.purpose for line in plan.lines])

    @property
    def relation(self) -> Relation:
        """Neighbouring relation of every answer."""
        return self._ledger.relation

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The noisy sum for the plan's line `name`, which is thereby used up."""
        line, query = self._take(name), self._ledger.unit.of(query)
        match line.event:
            case Gaussian() as event:
                std = mechanisms.gaussian_std(query, self.relation, event) * query.grid
                self._record(line, query, event.mu * float(std.max()), float(std.max()))
                return mechanisms.gaussian(self._setting.sum(query), query, self.relation, event, self._noise)
            case Laplace() as event:
                sensitivity = query.l1_sensitivity(self.relation)
                self._record(line, query, sensitivity, 2.0**0.5 * sensitivity / event.epsilon)
                return mechanisms.laplace(self._setting.sum(query), query, self.relation, event, self._noise)
        raise RuntimeError(f"the plan's line {name!r} is a selection; ask for it with select.")

    def answer_part(self, query: BoundedSum, name: str, part: int) -> Release:
        """The noisy sum over one of the line's disjoint parts, each asked once; the first one asked pays for all."""
        first = name not in self._begun
        if first:
            line = self._take(name)
            self._begun[name] = (line, set(range(line.parts)))
        line, unanswered = self._begun[name]
        if part not in unanswered or not isinstance(line.event, Gaussian):
            raise RuntimeError(f"the plan's line {name!r} has no unanswered part {part}.")
        unanswered.remove(part)
        restricted = self._ledger.unit.of(Part(query, part, line.parts))
        if first:
            std = mechanisms.gaussian_std(restricted, self.relation, line.event) * restricted.grid
            self._record(line, restricted, line.event.mu * float(std.max()), float(std.max()))
        return mechanisms.gaussian(self._setting.sum(restricted), restricted, self.relation, line.event, self._noise)

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """Which coordinates of the sum are largest, privately, best first; the sums themselves stay inside."""
        line, query = self._take(name), self._ledger.unit.of(query)
        event = line.event
        if not isinstance(event, Selection):
            raise RuntimeError(f"the plan's line {name!r} is not a selection; ask for it with answer.")
        peak = query.peak(self.relation)
        self._record(line, query, peak, math.pi / math.sqrt(6.0) * 2.0 * peak / event.epsilon)  # std of a Gumbel
        return mechanisms.top(self._setting.sum(query), query, self.relation, event, self._noise)

    def _record(self, line: Line, query: BoundedSum, sensitivity: float, noise_std: float) -> None:
        entry = Entry(line.purpose, query.describe, line.event, sensitivity, noise_std, line.share, self.relation)
        self._ledger.record(replace(entry, unit=self._ledger.unit))

    def _take(self, name: str) -> Line:
        if name not in self._open:
            raise RuntimeError(f"the plan has no unanswered line {name!r}.")
        line = self._open.pop(name)
        progress.started(line.purpose)
        return line
