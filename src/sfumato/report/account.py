"""The account of one fit alone, whichever ledger it was written to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sfumato.local.answers import LocalLedger
from sfumato.privacy.accounting import total_epsilon
from sfumato.privacy.ledger import Entry, Ledger, Mark
from sfumato.privacy.parameters import budget_of
from sfumato.privacy.unit import Unit
from sfumato.report.document import LedgerRow

_MARK = "ledger {}; head after this fit {}"
RELATIONS = {"replace": "replace one", "add-remove": "add or remove one"}


@dataclass(frozen=True, slots=True)
class Account:
    """What a report says of a ledger."""

    budget: str
    neighbours: str
    guarantee: str
    total: str
    rows: tuple[LedgerRow, ...]
    rehearsal: bool
    mark: str = ""
    date: str = ""


def account_of(estimator: Any) -> Account:
    """The account of a fitted estimator: of its own releases, not of others on the same file."""
    ledger = estimator.ledger_
    if isinstance(ledger, LocalLedger):
        return _on_devices(ledger)
    own = own_ledger(estimator)
    return Account(
        budget=own.budget.describe(),
        neighbours=f"{RELATIONS[own.relation]} {own.protects}{_rows_of(own.unit)}",
        guarantee=own.guarantee,
        total=f"All releases together: {own.budget.describe()}",
        rows=_rows(own.entries, own.budget.delta or 1e-6),
        rehearsal=own.rehearsal,
        mark=_mark(own.mark),
        date=own.entries[-1].at[:10] if own.entries else "",
    )


def own_ledger(estimator: Any) -> Ledger:
    """The account of this fit alone, whichever ledger it was written to."""
    ledger: Ledger = estimator.ledger_
    return ledger.of_this_run(budget_of(estimator.epsilon, estimator.delta, estimator.rho))


def marks_in(page: str) -> list[Mark]:
    """The marks that a report shows; the places in the file are not shown.

    >>> marks_in("..., written to ledger 0a1b; head after this fit " + 64 * "0")[0].ledger
    '0a1b'
    """
    return [Mark(ledger, head, 0) for ledger, head in re.findall(_MARK.format("([0-9a-f]+)", "([0-9a-f]{64})"), page)]


def _mark(mark: Mark | None) -> str:
    return "" if mark is None else _MARK.format(mark.ledger, mark.head)


def _answers(unit: Unit) -> str:
    return "one answer and pays once" if unit.factor == 1 else f"up to {unit.factor} answers and pays for all of them"


def _rows_of(unit: Unit) -> str:
    if unit.rows is None:
        return ""
    return f" with up to {unit.rows} row{'s' if unit.rows > 1 else ''}{' (declared)' if unit.declared else ''}"


def _on_devices(ledger: LocalLedger) -> Account:
    spent = f"epsilon = {ledger.spent():.10g}" + (f", delta = {ledger.delta:.3g}" if ledger.delta else " (pure)")
    return Account(
        budget=f"{spent}, each person",
        neighbours=f"any other value of {re.split('[;(]', ledger.protects)[0].strip()}",
        guarantee=ledger.guarantee,
        total=f"Every person gives {_answers(ledger.unit)}: {spent}",
        rows=_rows(ledger.entries, ledger.delta),
        rehearsal=ledger.rehearsal,
    )


def _rows(entries: Iterable[Entry], delta: float) -> tuple[LedgerRow, ...]:
    listed = tuple(entries)
    whole = sum(entry.share for entry in listed) or 1.0
    return tuple(
        LedgerRow(
            purpose=entry.purpose,
            query=entry.query,
            mechanism=type(entry.event).__name__,
            sensitivity=entry.sensitivity,
            noise_std=entry.noise_std,
            epsilon_alone=total_epsilon((entry.event,), delta),
            share=entry.share / whole,
        )
        for entry in listed
    )
