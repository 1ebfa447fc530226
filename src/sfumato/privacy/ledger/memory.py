"""Ledger: every release ever made on the data, written before its noise is drawn."""

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from threading import Lock
from typing import Any, Self

from sfumato.displays import Displayed
from sfumato.errors import BudgetError
from sfumato.privacy.accounting import total_epsilon, total_rho
from sfumato.privacy.budget import Budget, adaptive_epsilon, admits, describe_remaining, remaining_budget
from sfumato.privacy.events import Event, NoGuarantee
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Kind, Unit, neighbours
from sfumato.typing import Relation

SEEDED = "No privacy guarantee: the noise was seeded for rehearsal; fit again with random_state=None."
_ROUNDING = 1e-6  # of a numerical total: of some releases of a plan, it may differ from that of the whole plan


@dataclass(frozen=True, slots=True)
class Entry:
    """One release: what was asked, how far one record can move it, the noise, the cost. Public values only.

    `sensitivity` and `noise_std` are in the units of the release (of its noisiest coordinate, where they differ); of a
    selection `sensitivity` is half its spread: how far a score moves beside what moves all scores alike.
    """

    purpose: str
    query: str
    event: Event
    sensitivity: float
    noise_std: float
    share: float
    relation: Relation
    at: str = ""
    unit: Unit = RECORD


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a ledger file, to be noted elsewhere: a file that no longer contains it was cut or rewritten.

    `ledger` is the file's own id, `head` the hash of the last line then, `size` its end in the file.
    """

    ledger: str
    head: str
    size: int


class Ledger(Displayed):
    """Append-only account of what a data set has paid, in the memory of one process.

    `reserve` sets a plan's whole cost aside in one step, so threads that race for the rest of a budget are never both
    admitted; `record` refuses what is neither set aside nor within the budget. A copy in another process (pickled,
    as joblib does, or forked) cannot see what this one spends, so it refuses to spend at all: several processes
    share a `FileLedger`.

    Parameters
    ----------
    budget : Budget
        The total that was asked for; `reserve` refuses a plan that would pass it.
    relation : {"replace", "add-remove"}
        Neighbouring relation of the guarantee.
    rehearsal : bool
        True if the noise was seeded: whoever knows the seed can subtract it, so there is no guarantee.
    unit : Unit
        Whom the guarantee protects: a record, or a person with at most so many rows that count.

    Examples
    --------
    >>> ledger = Ledger(Budget.approximate(1.0, 1e-6), "replace")
    >>> ledger.total(1e-6)
    0.0
    """

    def __init__(self, budget: Budget, relation: Relation, *, rehearsal: bool = False, unit: Unit = RECORD) -> None:
        self.budget = budget
        self.relation: Relation = relation
        self.rehearsal = rehearsal
        self.unit = unit
        self._entries: tuple[Entry, ...] = ()
        self._reserved: Counter[Event] = Counter()
        self._returned: deque[Event] = deque()
        self._runs = 0
        self._process: int | None = os.getpid()
        self._mark: Mark | None = None
        self._lock = Lock()

    @staticmethod
    def restore(
        budget: Budget, relation: Relation, rehearsal: bool, entries: Iterable[Entry], mark: Mark | None = None
    ) -> "Ledger":
        """A ledger that holds these entries, with the times at which they were made, and where they stand in a file.

        For accounts of fits that were made earlier, from model files and from a file shared with other runs: nothing
        is booked by it.
        """
        listed = tuple(entries)
        unit = listed[0].unit if listed else RECORD
        ledger = Ledger(budget, relation, rehearsal=rehearsal, unit=unit)
        ledger._entries, ledger._mark = listed, mark
        return ledger

    def of_this_run(self, budget: Budget) -> "Ledger":
        """The account of this run alone, whose budget it was; in memory every ledger is one."""
        return self

    @property
    def protects(self) -> Kind:
        """A record or a person: releases that protect the one and the other do not add up."""
        return self.unit.kind

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases so far, oldest first."""
        return self._entries

    @property
    def events(self) -> tuple[Event, ...]:
        """Their costs."""
        return tuple(entry.event for entry in self.entries)

    @property
    def mark(self) -> Mark | None:
        """Where the fit stands in the ledger file that it was written to; None for an account of its own."""
        return self._mark

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def admit(self, plan: Plan) -> None:
        """Refuse a plan that would pass the budget, before any record is read; sets nothing aside."""
        with self._spending():
            self._refuse_unless_allowed(plan.events)

    def reserve(self, plan: Plan) -> None:
        """Set the whole cost of a plan aside, or refuse it; one step for all threads."""
        with self._spending():
            self._refuse_unless_allowed(plan.events)
            self._reserved.update(plan.events)
            self._runs += 1

    def record(self, entry: Entry) -> None:
        """Append an entry; refused if it is neither set aside nor within the budget.

        Called before the noise is drawn: a crash may overcount, never undercount. A release without a guarantee is no
        overdraft, it voids the whole sentence.
        """
        self._refuse_another_unit(entry)
        with self._spending():
            if self._reserved[entry.event] > 0:
                self._reserved[entry.event] -= 1
            else:
                if not isinstance(entry.event, NoGuarantee):
                    self._refuse_unless_allowed((entry.event,))
                self._runs += 1  # a cost that no plan fixed beforehand
            self._entries = (*self._entries, replace(entry, at=_now()))

    def give_back(self, events: Iterable[Event]) -> None:
        """What a run set aside and will never release. May be called while the lock is held, by a finaliser."""
        self._returned.extend(events)

    def remaining(self) -> Budget | None:
        """The largest budget one more run can have (at the same delta); None if nothing is left.

        >>> Ledger(Budget.zcdp(0.5), "replace").remaining()
        Budget(epsilon=None, delta=None, rho=0.5)
        """
        with self._lock:
            return remaining_budget(self.budget, self._counted())

    def total(self, delta: float | None = None) -> float:
        """Epsilon spent by all releases together, at `delta` (the budget's own if None); inf if unguaranteed.

        Of one run, whose costs are fixed in its plan, this is a guarantee. After several runs it is the reading of an
        odometer: if the later ones were chosen by the results of the earlier ones, what is guaranteed is the budget,
        which `reserve` enforces (a filter), and not the reading.
        """
        if self.rehearsal and self.entries:
            return float("inf")
        return self.spent(delta)

    def spent(self, delta: float | None = None) -> float:
        """Like `total`, but what the same releases cost with unseeded noise: what a rehearsal rehearses."""
        chosen = self._delta(delta)
        return total_epsilon(self.events, chosen) if self._one_plan else adaptive_epsilon(self.events, chosen)

    @property
    def rho(self) -> float:
        """zCDP cost of all releases together."""
        return total_rho(self.events)

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence, or why there is none, or by how much the budget was passed."""
        if self.rehearsal:
            return SEEDED
        for event in self.events:
            if isinstance(event, NoGuarantee):
                return f"No privacy guarantee: {event.reason}"
        if self._passed():
            return f"No guarantee of {self.budget.describe()}: the {len(self)} releases {self._cost()}."
        return (
            f"The {len(self)} releases of this run together are differentially private with "
            f"{self.budget.describe()} with respect to {self.neighbours}."
        )

    @property
    def neighbours(self) -> str:
        """With respect to what the releases are private."""
        units = [entry.unit for entry in self.entries] if self.protects == "person" else []
        return neighbours(self.relation, units, self.protects)

    def _refuse_another_unit(self, entry: Entry) -> None:
        if entry.unit.kind != self.protects:
            raise BudgetError(
                f"the ledger protects any one {self.protects}, the release any one {entry.unit.kind}; "
                "use a ledger of its own for each."
            )

    @property
    def _one_plan(self) -> bool:
        """Whether one plan fixed all costs beforehand, so that any accountant may total them."""
        return self._runs <= 1

    def _passed(self) -> bool:
        """Whether more was spent than the budget allows. No door lets that happen; a model file may say anything."""
        return _used(self.budget, self.events, self._one_plan) > 1.0 + _ROUNDING

    def _cost(self) -> str:
        delta = self.budget.delta
        return (
            f"cost rho = {self.rho:.4g}" if delta is None else f"cost epsilon = {self.spent():.4g}, delta = {delta:.4g}"
        )

    def _refuse_unless_allowed(self, events: tuple[Event, ...]) -> None:
        if not admits(self.budget, spent := self._counted(), events):
            rest = describe_remaining(remaining_budget(self.budget, spent))
            raise BudgetError(
                f"the plan would pass the budget {self.budget.describe()}, of which {rest}; "
                "raise the budget or start from an unspent ledger."
            )

    def _counted(self) -> tuple[Event, ...]:
        """What is spent or set aside; under the lock."""
        while self._returned:
            self._reserved[self._returned.popleft()] -= 1
        self._reserved = +self._reserved
        return (*self.events, *self._reserved.elements())

    @contextmanager
    def _spending(self) -> Iterator[None]:
        if self._process != os.getpid():
            raise BudgetError(
                "ledger: this is a copy of a ledger in the memory of another process, which would not see what is "
                "spent here; share a ledger file: FileLedger(path, budget), or ledger=path."
            )
        with self._lock:
            yield

    def _delta(self, delta: float | None) -> float:
        chosen = self.budget.delta if delta is None else delta
        if chosen is None:
            raise BudgetError(
                "delta must be given to turn a zCDP (rho) budget into an epsilon; for instance total(1e-6)."
            )
        return chosen

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock(), _process=None)  # a copy can be read, and spends nothing

    def __copy__(self) -> Self:
        """The ledger itself: scikit-learn's ``clone`` copies parameters, and a copied account is spent twice."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self)} releases, budget {self.budget.describe()}, relation={self.relation!r})"
        )


@lru_cache(maxsize=64)
def _used(budget: Budget, events: tuple[Event, ...], one_plan: bool) -> float:
    """The part of the budget that is spent: by any accountant if one plan fixed every cost, else by `remaining`."""
    if one_plan or budget.epsilon is None or budget.delta is None:
        return budget.used(events)
    return adaptive_epsilon(events, budget.delta) / budget.epsilon


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
