"""Checks of what private estimators are told, before anything is read or spent."""

from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.ledger_file import FileLedger
from sfumato.privacy.noise import Noise, SecureNoise, SeededNoise
from sfumato.privacy.plan import Line, Plan
from sfumato.privacy.unit import RECORD, Unit
from sfumato.typing import Relation

CALIBRATIONS = ("tight", "paper")
"""Of the papers' methods: correct noise under one total budget, or the printed noise, flagged."""


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
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return SeededNoise(int(random_state))
    raise InputError(f"random_state must be None or a non-negative integer, got {random_state!r}.")


def directions_of(n_directions: Any, n_features: int) -> int | None:
    """Number of directions, None for "auto"."""
    if isinstance(n_directions, str) and n_directions == "auto":
        return None
    if not isinstance(n_directions, Integral) or isinstance(n_directions, bool) or int(n_directions) < 1:
        raise InputError(f"n_directions must be a positive integer or 'auto', got {n_directions!r}.")
    if int(n_directions) > n_features:
        raise InputError(
            f"n_directions is {n_directions} but x has {n_features} feature(s); ask for at most {n_features}."
        )
    return int(n_directions)


def sizes_of(n_samples: Any, n_features: Any) -> tuple[int, int]:
    """Number of records and of features of a study to come."""
    for name, value in (("n_samples", n_samples), ("n_features", n_features)):
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
            raise InputError(
                f"{name} must be a positive integer, got {value!r}; a guess will do, since no record is read."
            )
    return int(n_samples), int(n_features)


def share_of(picture: Any, default: float) -> float:
    """Share of the budget reserved for the picture."""
    if isinstance(picture, (bool, np.bool_)):
        return default if picture else 0.0
    if not isinstance(picture, Real) or not 0.0 <= float(picture) <= 0.5:
        raise InputError(f"picture must be True, False or a share of the budget up to 0.5, got {picture!r}.")
    return float(picture)


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """A word from a short list."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
    return str(value)


def open_ledger(ledger: Any, budget: Budget, relation: Relation, noise: Noise, unit: Unit = RECORD) -> Ledger:
    """The ledger a run writes to: its own, or a shared one (a path names its file) with room for the whole run.

    Checked before a record is read: a run spends exactly its budget, so one line of that cost stands for it. The
    curator then reserves the plan itself, after the records were found to be usable.
    """
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
