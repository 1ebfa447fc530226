"""What the private estimators have in common once their releases are made."""

from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds, Grid
from sfumato.errors import InputError
from sfumato.estimators.explanation import Explanation
from sfumato.estimators.inputs import transform_array
from sfumato.estimators.parameters import sizes_of
from sfumato.estimators.reporting import Reporting
from sfumato.forecast.prospect import Prospect
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.parameters import budget_of, relation_of
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, unit_of
from sfumato.records import Response
from sfumato.sources import declared_response
from sfumato.typing import FloatArray


class Planned(Protocol):
    """Public facts of a fit, from which its plan follows."""

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""

    def prospect(self) -> Prospect | None:
        """What a forecast needs; None where there is none."""


class PrivateReducer(Reporting, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Explains itself before a fit and projects records after it. A subclass gives `_task` and ``fit``."""

    epsilon: Any
    delta: Any
    rho: Any
    relation: Any
    rows_per_person: Any = None
    directions_: FloatArray
    mean_: FloatArray
    ledger_: Ledger
    _numeric_response = True

    def explain(self, n_samples: int, n_features: int) -> Explanation:
        """The plan before any data: every release, what it costs and how much noise it gets."""
        n_samples, n_features = sizes_of(n_samples, n_features)
        budget, relation = budget_of(self.epsilon, self.delta, self.rho), relation_of(self.relation)
        response = declared_response(self._numeric_response, getattr(self, "classes", None))
        unit = unit_of(self.rows_per_person, has_ids=False)
        public = n_samples if relation == "replace" and unit == RECORD else None
        task = self._task(n_features, public, response)
        plan = task.plan().calibrate(budget, unit.factor)
        return Explanation(plan, budget, relation, n_samples, n_features, task, task.prospect(), unit.rows)

    def transform(self, X: Any) -> FloatArray:
        """Coordinates of records along the directions. They are the records' own values: keep them with the data."""
        check_is_fitted(self)
        return np.asarray((transform_array(self, X) - self.mean_) @ self.directions_.T)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Planned:
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        return len(self.directions_)


def checked_bounds(bounds: Any, n_features: int, name: str = "bounds") -> Bounds | None:
    """Bounds for that many features, or None."""
    if bounds is None:
        return None
    if not isinstance(bounds, Bounds):
        raise InputError(f"{name} must be a sfumato Bounds or None; for instance Bounds(-1.5, 1.5).")
    bounds.grid(n_features)
    return bounds


def common_scale(grid: Grid) -> Grid:
    """The same centre with one half width for all features, the widest.

    Where lengths in the units of x matter, as for principal components, one unit must mean the same in every
    feature. No feature is clipped earlier than before; 20 bits of the widest leave enough for the others.
    """
    return Grid(grid.centre, np.full(grid.n_features, float(grid.half_width.max())))
