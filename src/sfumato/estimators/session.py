"""What every private fit does first: check the parameters, open the ledger, check the records."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sfumato.errors import InputError, PrivacyWarning
from sfumato.estimators.inputs import fit_source
from sfumato.estimators.parameters import budget_of, noise_of, open_ledger, relation_of
from sfumato.iterate.location import Location, check_search
from sfumato.iterate.printed import Printed
from sfumato.planner.outlook import Outlook
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise
from sfumato.privacy.plan import Plan
from sfumato.settings.central import Central
from sfumato.sources import Source

REHEARSAL = "random_state is set: the noise is seeded and gives no privacy; leave it None for a real run."


class Planned(Protocol):
    """Public facts of a fit, from which its plan follows."""

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""

    def outlook(self) -> Outlook | None:
        """What the planner needs to look ahead; None where it has no theory."""


@dataclass(frozen=True, slots=True)
class Session:
    """Records ready to be asked, and a ledger with room for the answers. Nothing has been spent yet."""

    budget: Budget
    ledger: Ledger
    noise: Noise
    source: Source

    @property
    def n_records(self) -> int | None:
        """Number of records where it is public, under replace-one; None under add/remove-one."""
        return self.source.count() if self.ledger.relation == "replace" else None

    def curator(self, task: Planned) -> Curator:
        """The door, for the plan of a task scaled to cost exactly the budget; a hopeless search is refused before."""
        bounds = getattr(task, "bounds", None)
        if isinstance(bounds, Location):
            check_search(bounds, self.n_records, self.budget.mu(), stacklevel=4)
        return Curator(Central(self.source), task.plan().calibrate(self.budget), self.ledger, self.noise)


def open_session(estimator: Any, X: Any, y: Any, reader: Callable[..., Source] = fit_source) -> Session:
    """Check what an estimator with the usual privacy parameters was given; the ledger before the records."""
    budget = budget_of(estimator.epsilon, estimator.delta, estimator.rho)
    relation, noise = relation_of(estimator.relation), noise_of(estimator.random_state)
    ledger = open_ledger(estimator.ledger, budget, relation, noise)
    source = reader(estimator, X, y, getattr(estimator, "classes", None))
    if noise.rehearsal:
        warnings.warn(REHEARSAL, PrivacyWarning, stacklevel=3)
    session = Session(budget, ledger, noise, source)
    estimator._binary = source.binary
    estimator.n_records_ = session.n_records  # None where it is private
    return session


def open_printed(session: Session, estimator: Any, reason: str, takes_rho: bool = False) -> Printed:
    """The door of ``calibration="paper"``: it adds the printed noise, and the ledger says that nothing is promised."""
    refused = estimator.rho is not None and not takes_rho
    if refused or estimator.ledger is not None or session.n_records is None:
        raise InputError(
            "calibration='paper' gives no guarantee and takes neither a shared ledger nor relation='add-remove', and "
            "rho for Rayleigh flow only; use calibration='tight'."
        )
    warnings.warn(reason, PrivacyWarning, stacklevel=5)
    setting = Central(session.source)
    return Printed(setting, session.ledger, session.noise, estimator.epsilon, estimator.delta, reason)
