"""What every private fit does first: check the parameters, open the ledger, check the records."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sfumato.errors import PrivacyWarning
from sfumato.estimators.inputs import first_rows, fit_source, has_ids
from sfumato.forecast.prospect import Prospect
from sfumato.iterate.location import Location, check_search
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.door import Behind, Door, opened
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise
from sfumato.privacy.parameters import budget_of, noise_of, open_ledger, relation_of
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, unit_of
from sfumato.settings.central import Central
from sfumato.sources import ResponseKind, Source

REHEARSAL = "random_state is set: the noise is seeded and gives no privacy; leave it None for a real run."


class Planned(Protocol):
    """Public facts of a fit, from which its plan follows."""

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""

    def prospect(self) -> Prospect | None:
        """What a forecast needs; None where there is none."""


@dataclass(frozen=True, slots=True)
class Session:
    """Records ready to be asked, and a ledger with room for the answers. Nothing has been spent yet."""

    budget: Budget
    ledger: Ledger
    noise: Noise
    source: Source

    @property
    def n_records(self) -> int | None:
        """Number of records where it is public: under replace-one, unless a person may have several or none."""
        public = self.ledger.relation == "replace" and self.ledger.unit == RECORD
        return self.source.count() if public else None

    def open(self, task: Planned) -> Door:
        """The door, for the plan of a task scaled to cost exactly the budget; a hopeless search is refused before."""
        bounds = getattr(task, "bounds", None)
        if isinstance(bounds, Location):
            check_search(bounds, self.n_records, self.budget.mu() / self.ledger.unit.factor, stacklevel=4)
        unit = self.ledger.unit
        setting, calibrated = Central(self.source), task.plan().calibrate(self.budget, unit.factor)
        curator = Curator(setting, calibrated, self.ledger, self.noise)
        return opened(curator, Behind(setting, calibrated, self.ledger.relation, unit=unit))


def open_session(
    estimator: Any,
    X: Any,
    y: Any,
    groups: Any = None,
    reader: Callable[..., Source] = fit_source,
    response_kind: ResponseKind | None = None,
) -> Session:
    """Check what an estimator with the usual privacy parameters was given; the ledger before the records."""
    budget = budget_of(estimator.epsilon, estimator.delta, estimator.rho)
    relation, noise = relation_of(estimator.relation), noise_of(estimator.random_state)
    unit = unit_of(estimator.rows_per_person, has_ids(X, groups))
    ledger = open_ledger(estimator.ledger, budget, relation, noise, unit)
    source = reader(estimator, X, y, getattr(estimator, "classes", None), response_kind, unit)
    source = first_rows(source, groups, unit)
    if noise.rehearsal:
        warnings.warn(REHEARSAL, PrivacyWarning, stacklevel=3)
    session = Session(budget, ledger, noise, source)
    estimator._binary = source.binary
    estimator.n_records_ = session.n_records  # None where it is private
    return session
