"""What the private estimators have in common once their releases are made."""

from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds, Grid, PartialBounds
from sfumato.errors import InputError
from sfumato.estimators.explanation import Explanation
from sfumato.estimators.inputs import transform_array
from sfumato.estimators.parameters import budget_of, relation_of, sizes_of
from sfumato.estimators.reporting import Reporting
from sfumato.iterate.location import Located, Location, location_share
from sfumato.planner.outlook import Outlook
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.sources import declared_response
from sfumato.typing import FloatArray


class Planned(Protocol):
    """Public facts of a fit, from which its plan follows."""

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""

    def outlook(self) -> Outlook | None:
        """What the planner needs to look ahead; None where it has no theory."""


class PrivateReducer(Reporting, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Explains itself before a fit and projects records after it. A subclass gives `_task` and ``fit``."""

    epsilon: Any
    delta: Any
    rho: Any
    relation: Any
    directions_: FloatArray
    mean_: FloatArray
    ledger_: Ledger
    _numeric_response = True

    def explain(self, n_samples: int, n_features: int) -> Explanation:
        """The plan before any data: every release, what it costs and how much noise it gets."""
        n_samples, n_features = sizes_of(n_samples, n_features)
        budget, relation = budget_of(self.epsilon, self.delta, self.rho), relation_of(self.relation)
        response = declared_response(self._numeric_response, getattr(self, "classes", None))
        public = n_samples if relation == "replace" else None
        task = self._task(n_features, public, response)
        return Explanation(task.plan().calibrate(budget), budget, relation, n_samples, n_features, task.outlook())

    def transform(self, X: Any) -> FloatArray:
        """Coordinates of records along the directions. They are the records' own values: keep them with the data."""
        check_is_fitted(self)
        return np.asarray((transform_array(self, X) - self.mean_) @ self.directions_.T)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Planned:
        raise NotImplementedError

    def _keep_bounds(self, located: Located) -> None:
        """The bounds, and which features showed no spread: by name, where they have names."""
        self.bounds_ = located.bounds
        names = getattr(self, "feature_names_in_", np.arange(len(located.unseen)))
        self.unseen_features_ = names[located.unseen[: len(names)]]

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


def location_of(estimator: Any, n_features: int, n_records: int | None) -> Bounds | Location:
    """The bounds given, or the search for them that the estimator's budget pays."""
    return search_of(estimator, PartialBounds.of(checked_bounds(estimator.bounds, n_features), n_features), n_records)


def search_of(estimator: Any, known: PartialBounds, n_records: int | None) -> Bounds | Location:
    """The search for what is not known; the bounds themselves where all are."""
    if not known.unknown.size:
        return Bounds(known.lower, known.upper)
    mu = budget_of(estimator.epsilon, estimator.delta, estimator.rho).mu()
    return Location(known, location_share(known.unknown.size, n_records, mu))


def common_scale(located: Located, n_features: int) -> Grid:
    """The grid with one half width for all features, the widest that was given or seen.

    Where lengths in the units of x matter, as for principal components, one unit must mean the same in every
    feature. No feature is clipped earlier than before; 20 bits of the widest leave enough for the others. A feature
    whose spread was not seen has a half width that is a guess, and must not set that of the others.
    """
    grid = located.bounds.grid(n_features)
    telling = grid.half_width[~located.unseen] if not located.unseen.all() else grid.half_width
    return Grid(grid.centre, np.full(grid.n_features, float(telling.max())))
