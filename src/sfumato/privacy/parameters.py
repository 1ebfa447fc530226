"""Checks of what a run may spend and how: budget, relation, noise and ledger, before anything is read or spent."""

from os import PathLike
from typing import Any

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import FileLedger, Ledger
from sfumato.privacy.ledger.file import current_account
from sfumato.privacy.noise import Noise, SecureNoise, SeededNoise
from sfumato.privacy.plan import Line, Plan
from sfumato.privacy.unit import RECORD, Unit
from sfumato.typing import Relation, is_whole


def budget_of(epsilon: Any, delta: Any, rho: Any) -> Budget:
    """The total budget: rho if given, else (epsilon, delta)."""
    return Budget.approximate(epsilon, delta) if rho is None else Budget.zcdp(rho)


def relation_of(relation: Any) -> Relation:
    """One of the two neighbouring relations."""
    match relation:
        case "replace":
            return "replace"
        case "add-remove":
            return "add-remove"
    raise InputError(f"relation must be 'replace' or 'add-remove', got {relation!r}.")


def noise_of(random_state: Any) -> Noise:
    """Cryptographic noise, or seeded noise for a rehearsal."""
    if random_state is None:
        return SecureNoise()
    if isinstance(random_state, np.random.RandomState):
        return SeededNoise(int(random_state.randint(2**31)))
    if isinstance(random_state, np.random.Generator):
        return SeededNoise(int(random_state.integers(2**63)))
    if is_whole(random_state, 0):
        return SeededNoise(int(random_state))
    raise InputError(f"random_state must be None or a non-negative integer, got {random_state!r}.")


def open_ledger(ledger: Any, budget: Budget, relation: Relation, noise: Noise, unit: Unit = RECORD) -> Ledger:
    """The ledger a run writes to: its own, or a shared one (a path names its file) with room for the whole run.

    Checked before a record is read: a run spends exactly its budget, so one line of that cost stands for it. The
    curator then reserves the plan itself, after the records were found to be usable.
    """
    ledger = current_account() if ledger is None else ledger
    if ledger is None:
        return Ledger(budget, relation, rehearsal=noise.rehearsal, unit=unit)
    if isinstance(ledger, (str, PathLike)):
        ledger = FileLedger(ledger)
    elif isinstance(ledger, FileLedger):
        ledger = ledger.begin()
    if not isinstance(ledger, Ledger):
        raise InputError("ledger must be a sfumato Ledger, the path of a ledger file, or None.")
    if ledger.relation != relation:
        raise InputError(f"relation is {relation!r} but the ledger was opened for {ledger.relation!r}; use one.")
    if ledger.rehearsal != noise.rehearsal:
        raise BudgetError("random_state must not be set on a run that writes to a real ledger; leave it None.")
    if ledger.protects != unit.kind:
        raise InputError(
            f"ledger: it protects any one {ledger.protects}, this fit any one {unit.kind}, and the two do not add up; "
            f"use a ledger that protects a {unit.kind}."
        )
    if isinstance(ledger, FileLedger):
        ledger.unit = unit  # of this run; others on the same file may let more rows count, or fewer
    elif ledger.unit != unit:
        raise InputError(f"rows_per_person: the ledger was opened for '{ledger.unit}', this fit is '{unit}'; use one.")
    ledger.admit(Plan((Line("whole", "whole run", 1.0, ""),)).calibrate(budget))
    return ledger
