"""Ledger: every release ever made on the data, written before its noise is drawn."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Self

from sfumato.errors import BudgetError
from sfumato.privacy import room
from sfumato.privacy.accounting import total_epsilon, total_rho
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event, NoGuarantee
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Kind, Unit, neighbours
from sfumato.typing import Relation

_ONE_AT_A_TIME = Lock()  # two threads that append at once would lose an entry: an undercount


@dataclass(frozen=True, slots=True)
class Entry:
    """One release: what was asked, how far one record can move it, the noise, the cost. Public values only.

    `sensitivity` and `noise_std` are in the units of the release (of its noisiest coordinate, where they differ).
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


class Ledger:
    """Append-only account of what a data set has paid.

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
        self._runs = 0

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

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def admit(self, plan: Plan) -> None:
        """Refuse a plan that would pass the budget, before any record is read; sets nothing aside."""
        if not self._allows(plan.events):
            raise BudgetError(
                f"the plan would pass the budget {self.budget.describe()}, of which {room.words(self.remaining())}; "
                "raise the budget or start from an unspent ledger."
            )

    def reserve(self, plan: Plan) -> None:
        """Admit a plan whose releases will follow. A file-backed ledger sets its whole cost aside here."""
        self.admit(plan)
        self._runs += 1

    def record(self, entry: Entry) -> None:
        """Append an entry. Called before the noise is drawn: a crash may overcount, never undercount."""
        self._refuse_another_unit(entry)
        with _ONE_AT_A_TIME:
            self._entries = (*self._entries, replace(entry, at=_now()))

    def remaining(self) -> Budget | None:
        """The largest budget one more run can have (at the same delta); None if nothing is left.

        >>> Ledger(Budget.zcdp(0.5), "replace").remaining()
        Budget(epsilon=None, delta=None, rho=0.5)
        """
        return room.remaining(self.budget, self.events)

    def total(self, delta: float | None = None) -> float:
        """Epsilon spent by all releases together, at `delta` (the budget's own if None); inf if unguaranteed."""
        if self.rehearsal and self.entries:
            return float("inf")
        return self.spent(delta)

    def spent(self, delta: float | None = None) -> float:
        """Like `total`, but what the same releases cost with unseeded noise: what a rehearsal rehearses."""
        chosen = self._delta(delta)
        return total_epsilon(self.events, chosen) if self._runs <= 1 else room.epsilon(self.events, chosen)

    @property
    def rho(self) -> float:
        """zCDP cost of all releases together."""
        return total_rho(self.events)

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence, or why there is none."""
        if self.rehearsal:
            return "No privacy guarantee: the noise was seeded for rehearsal; fit again with random_state=None."
        for event in self.events:
            if isinstance(event, NoGuarantee):
                return f"No privacy guarantee: {event.reason}"
        return (
            f"The {len(self)} releases of this run together are differentially private with "
            f"{self.budget.describe()} with respect to {self.neighbours}."
        )

    @property
    def neighbours(self) -> str:
        """With respect to what the releases are private."""
        return neighbours(self.relation, (entry.unit for entry in self.entries), self.protects)

    def _refuse_another_unit(self, entry: Entry) -> None:
        if entry.unit.kind != self.protects:
            raise BudgetError(
                f"the ledger protects any one {self.protects}, the release any one {entry.unit.kind}; "
                "use a ledger of its own for each."
            )

    def _allows(self, events: tuple[Event, ...]) -> bool:
        """Whether there is room for a run of these events. One plan is fixed beforehand; later ones are adaptive."""
        return room.allows(self.budget, self.events, events)

    def _delta(self, delta: float | None) -> float:
        chosen = self.budget.delta if delta is None else delta
        if chosen is None:
            raise BudgetError(
                "delta must be given to turn a zCDP (rho) budget into an epsilon; for instance total(1e-6)."
            )
        return chosen

    def __copy__(self) -> Self:
        """The ledger itself: scikit-learn's ``clone`` copies parameters, and a copied account is spent twice."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self)} releases, budget {self.budget.describe()}, relation={self.relation!r})"
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
