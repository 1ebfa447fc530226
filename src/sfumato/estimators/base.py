"""What the private estimators have in common once their releases are made."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds, Grid, PartialBounds
from sfumato.estimators.explanation import Explanation
from sfumato.estimators.inputs import transform_array
from sfumato.estimators.parameters import sizes_of
from sfumato.estimators.reporting import Reporting
from sfumato.estimators.session import Planned
from sfumato.iterate.location import Located, Location, location_share
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.parameters import budget_of, relation_of
from sfumato.privacy.unit import RECORD, unit_of
from sfumato.records import Response
from sfumato.sources import declared_response
from sfumato.typing import FloatArray, IntArray


class PrivateReducer(Reporting, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Explains itself before a fit and projects records after it. A subclass gives `_task` and ``fit``."""

    epsilon: Any
    delta: Any
    rho: Any
    relation: Any
    rows_per_person: Any
    directions_: FloatArray
    mean_: FloatArray
    ledger_: Ledger
    unseen_: IntArray | None
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

    def _keep_bounds(self, located: Located) -> None:
        """The bounds, and the positions of features that showed no spread."""
        self.bounds_, self.unseen_ = located.bounds, np.flatnonzero(located.unseen)

    @property
    def unseen_features_(self) -> NDArray[Any]:
        """Features of which no spread was seen, by name, where they have names: their scale is a guess."""
        check_is_fitted(self)
        named = [getattr(self, name, None) for name in ("feature_names_in_", "y_feature_names_in_")]
        every = np.concatenate([names for names in named if names is not None] or [np.empty(0)])
        unseen = np.empty(0, dtype=np.int64) if self.unseen_ is None else self.unseen_
        return np.asarray(every[unseen] if unseen.max(initial=-1) < len(every) else unseen)

    @property
    def _n_features_out(self) -> int:
        return len(self.directions_)


def location_of(estimator: Any, n_features: int, n_records: int | None) -> Bounds | Location:
    """The search for bounds and scales that the estimator's budget pays; the bounds given where nothing is searched."""
    return _search(estimator, known_of(estimator, n_features), n_records, estimator.bounds)


def bounds_only(estimator: Any, n_features: int, n_records: int | None) -> Bounds | Location:
    """As `location_of`, where all features are measured in one unit: the spread inside given bounds is of no use."""
    known = known_of(estimator, n_features)
    return _search(estimator, replace(known, settled=~np.isnan(known.lower)), n_records, estimator.bounds)


def location_of_pair(estimator: Any, sizes: tuple[int, int], n_records: int | None) -> Bounds | Location:
    """As `location_of`, for the columns of two tables side by side."""
    known = known_of(estimator, sizes[0]).beside(known_of(estimator, sizes[1], "y_bounds"))
    return _search(estimator, known, n_records, estimator.bounds, estimator.y_bounds)


def known_of(estimator: Any, n_features: int, parameter: str = "bounds") -> PartialBounds:
    """What the parameter says of the features, or of those of the second table (``y_bounds``)."""
    attribute = "feature_names_in_" if parameter == "bounds" else "y_feature_names_in_"
    # Before there is a table nobody knows the names; a table without names has none.
    names = getattr(estimator, attribute, () if hasattr(estimator, "n_features_in_") else None)
    return PartialBounds.of(getattr(estimator, parameter), n_features, names, parameter)


def given_of(known: PartialBounds) -> Bounds | None:
    """The bounds of all features, if all are known: what methods that are for comparison alone take as they are."""
    return None if known.unknown.size else Bounds(known.lower, known.upper)


def _search(estimator: Any, known: PartialBounds, n_records: int | None, *given: Any) -> Bounds | Location:
    mu = budget_of(estimator.epsilon, estimator.delta, estimator.rho).mu()
    known = known.with_binary(getattr(estimator, "_binary", ()))
    return search_of(known, n_records, mu, any(isinstance(one, str) for one in given) or _names_all(known, *given))


def _names_all(known: PartialBounds, *given: Any) -> bool:
    """Whether "search" was said of every feature of which nothing is known."""
    said = [value for one in given if isinstance(one, Mapping) for value in one.values()]
    return 0 < known.unknown.size <= sum(isinstance(value, str) for value in said)


def search_of(known: PartialBounds, n_records: int | None, mu: float, insists: bool = False) -> Bounds | Location:
    """The search for what is not known, at a share that follows from public numbers."""
    share = location_share(known, n_records, mu)
    if not known.asked.size or share == 0.0:
        return Bounds(known.lower, known.upper)
    return Location(known, share, insists)


def common_scale(located: Located) -> Grid:
    """The grid with one half width for all features, the widest that was given or seen.

    Where lengths in the units of x matter, as for principal components, one unit must mean the same in every
    feature. No feature is clipped earlier than before; 20 bits of the widest leave enough for the others. A feature
    whose spread was not seen has a half width that is a guess, and must not set that of the others.
    """
    grid = located.bounds.grid(len(located.unseen))
    telling = grid.half_width[~located.unseen] if not located.unseen.all() else grid.half_width
    return Grid(grid.centre, np.full(grid.n_features, float(telling.max())))
