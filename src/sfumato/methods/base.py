"""What every private fit does first: check the parameters, open the ledger, check the records."""

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from types import FrameType
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds, GivenBounds, Grid, PartialBounds, by_column
from sfumato.errors import PrivacyWarning
from sfumato.forecast.assessment import Assessment, Verdict
from sfumato.forecast.prospect import Prospect
from sfumato.hints import unusual_budget
from sfumato.methods.about import About
from sfumato.methods.explanation import Explanation
from sfumato.methods.inputs import first_rows, fit_source, has_ids, sizes_of, transform_array
from sfumato.methods.reporting import Reporting
from sfumato.privacy.asking import Asking, drive
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.door import Behind, Door, open_door
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.ledger.file import current_account
from sfumato.privacy.noise import Noise
from sfumato.privacy.parameters import budget_of, noise_of, open_ledger, relation_of
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Unit, is_count_public, unit_of
from sfumato.records import Response
from sfumato.settings import adder_of
from sfumato.settings.central import solving_threads
from sfumato.sources import ResponseKind, Source, declared_response
from sfumato.steps.dimension import Choice
from sfumato.steps.location import Located, Location, check_search, location_share
from sfumato.steps.ranks import Ranks
from sfumato.typing import FloatArray, IntArray

RARE = 0.04
"""A 0/1 feature is rare if no larger part of the records has it, two standard errors considered."""
SEARCHED = (
    "every fit of a cross-validation or a search spends its whole budget anew, on the same records; give all of them "
    "one account, as ledger=FileLedger('study.jsonl', Budget.approximate(3, 1e-6))."
)
REHEARSAL = "random_state is set: the noise is seeded and gives no privacy; leave it None for a real run."


class Planned(Protocol):
    """Public facts of a fit, from which its plan follows; whoever holds a door can run it."""

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""

    def prospect(self) -> Prospect | None:
        """What a forecast needs; None where there is none."""

    def run(self) -> Asking[Any]:
        """Walk the plan; what it returns is what the estimator keeps."""


@dataclass(frozen=True, slots=True)
class ExplainingTask:
    """What is public about a fit that explains a response. `n_records` is None where the number is private."""

    n_features: int
    n_records: int | None
    response: Response
    n_directions: int | None
    bounds: Bounds | Location

    def records_of(self, ranks: Ranks) -> float:
        """The number of records: public, or else what the released histogram of y says, kept away from zero."""
        return float(self.n_records) if self.n_records is not None else max(ranks.total, 10.0 * self.n_features)


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
        return self.source.count() if is_count_public(self.ledger.relation, self.ledger.unit.rows) else None

    def open(self, task: Planned) -> Door:
        """The door, for the plan of a task scaled to cost exactly the budget; a hopeless search is refused before."""
        bounds = getattr(task, "bounds", None)
        if isinstance(bounds, Location):
            check_search(bounds, self.n_records, self.budget.mu() / self.ledger.unit.factor, stacklevel=5)
        unit = self.ledger.unit
        setting, calibrated = adder_of(self.source), task.plan().calibrate(self.budget, unit.factor)
        curator = Curator(setting, calibrated, self.ledger, self.noise)
        return open_door(curator, Behind(setting, calibrated, self.ledger.relation, unit=unit))


def open_session(
    estimator: Any, X: Any, y: Any, groups: Any = None, response_kind: ResponseKind | None = None
) -> Session:
    """Check what an estimator with the usual privacy parameters was given; the ledger before the records."""
    budget = budget_of(estimator.epsilon, estimator.delta, estimator.rho)
    relation, noise = relation_of(estimator.relation), noise_of(estimator.random_state)
    unit = unit_of(estimator.rows_per_person, has_ids(X, groups))
    ledger = open_ledger(estimator.ledger, budget, relation, noise, unit)
    source = first_rows(estimator._read(X, y, response_kind, unit), groups, unit)
    if estimator.ledger is None and current_account() is None and _in_search():
        warnings.warn(SEARCHED, PrivacyWarning, stacklevel=3)
    if noise.rehearsal:
        warnings.warn(REHEARSAL, PrivacyWarning, stacklevel=3)
    session = Session(budget, ledger, noise, source)
    estimator._binary = source.binary
    estimator.n_records_ = session.n_records  # None where it is private
    if not noise.rehearsal and estimator.rho is None:
        for sentence in unusual_budget(estimator.epsilon, estimator.delta, estimator.n_records_):
            warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    return session


def _in_search() -> bool:
    """Whether the fit is one of many that scikit-learn makes on parts of the same records."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith("sklearn.model_selection"):
        frame = frame.f_back
    return frame is not None


class Projecting(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Projects records onto the directions of a fit."""

    about: ClassVar[About]
    bounds_: Bounds
    directions_: FloatArray
    mean_: FloatArray

    def transform(self, X: Any) -> FloatArray:
        """Coordinates of records along the directions. They are the records' own values: keep them with the data.

        They are ``(X - mean_) @ directions_.T`` for records within the box of the fit (`box_`). A value beyond it
        counted as the end of the box in the fit; here it counts by the root of its distance from there, so that
        values far out go on to tell something and do not outweigh all else. One of a feature of which a search for
        bounds saw nothing (`unseen_features_`) counts as the end of the box here, too. Components in the units of x
        are projections of records as they are.
        """
        check_is_fitted(self)
        return np.asarray((self._features(X) - self.mean_) @ self.directions_.T)

    def _features(self, X: Any) -> FloatArray:
        """Checked features, as scores take them."""
        return self._eased(transform_array(self, X))

    def _eased(self, x: FloatArray, first: int = 0) -> FloatArray:
        """Features from `first` on with values beyond the box of the fit brought nearer to it.

        The directions say nothing of what is beyond. There is something to tell, though: values in the hundreds may
        be a group of their own. What was written before scores knew of a box has none.
        """
        if self.about.own_units:
            return x
        unseen, box = getattr(self, "unseen_", None), getattr(self, "box_", None)
        inside = x if unseen is None else self.bounds_.cut(x, unseen, first)
        return inside if box is None else box.eased(inside, first)

    @property
    def _n_features_out(self) -> int:
        return len(self.directions_)


class Deferred:
    """What subclasses and fits set; apart from `Spending`, whose annotations are parameters of estimators."""

    epsilon: float
    delta: float
    n_records_: int | None
    _binary: tuple[int, ...]
    ledger_: Ledger
    unseen_: IntArray | None
    box_: Bounds | None


@dataclass(eq=False, repr=False)
class Spending(Deferred, BaseEstimator):
    """The parameters of everything that spends a budget, besides the budget itself.

    An estimator is a dataclass: scikit-learn asks that its ``__init__`` sets every parameter, and does nothing else.
    """

    _: KW_ONLY
    relation: str = "replace"
    rows_per_person: int | None = None
    rho: float | None = None
    ledger: Ledger | None = None
    random_state: int | None = None

    def _explain(
        self, n_samples: int, n_features: int, task_of: Callable[[int, int | None], Planned], n_targets: int = 0
    ) -> Explanation:
        """The plan of the task that follows from the number of features and, where it is public, of records."""
        n_samples, n_features = sizes_of(n_samples, n_features)
        budget, relation = budget_of(self.epsilon, self.delta, self.rho), relation_of(self.relation)
        unit = unit_of(self.rows_per_person, has_ids=False)
        task = task_of(n_features, n_samples if is_count_public(relation, unit.rows) else None)
        plan, size = task.plan().calibrate(budget, unit.factor), n_features + n_targets
        return Explanation(plan, budget, relation, n_samples, size, task, task.prospect(), unit.rows)


@dataclass(eq=False, repr=False)
class PrivateReducer(Projecting, Reporting, Spending):
    """Explains itself before a fit and projects records after it. A subclass gives `_task`, `_keep` and a budget.

    A fit of records at hand, over simulated sites and over remote ones is the same three steps: `_task`, its
    ``run()`` driven by whichever door there is, and `_keep`.
    """

    _numeric_response = True

    def explain(self, n_samples: int, n_features: int) -> Explanation:
        """The plan before any data: every release, what it costs and how much noise it gets."""
        response = declared_response(self._numeric_response, getattr(self, "classes", None))
        return self._explain(n_samples, n_features, lambda p, n_records: self._task(p, n_records, response))

    def _read(self, X: Any, y: Any, response_kind: ResponseKind | None = None, unit: Unit = RECORD) -> Source:
        """Checked records, as this estimator takes them."""
        return fit_source(self, X, y, getattr(self, "classes", None), response_kind, unit)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Planned:
        """What is public about a fit, every parameter checked; of two tables `n_features` counts both."""
        raise NotImplementedError

    def _keep(self, outcome: Any, ledger: Ledger) -> None:
        """Set what the task's run found, and the account it was charged to."""
        raise NotImplementedError

    def _fit(self, session: Session) -> Self:
        task = self._task(session.source.n_features, session.n_records, session.source.response)
        with solving_threads(session.source.n_features):
            self._keep(drive(task.run(), session.open(task)), session.ledger)
        return self

    def _keep_bounds(self, located: Located) -> None:
        """The bounds, the box in which values count as they are, and where features are that showed no spread."""
        self.bounds_, self.unseen_ = located.bounds, np.flatnonzero(located.unseen)
        if not self.about.own_units:
            self.box_ = located.box

    @property
    def unseen_features_(self) -> NDArray[Any]:
        """Features of which no spread was seen, by name, where they have names: their scale is a guess."""
        check_is_fitted(self)
        named = [getattr(self, name, None) for name in ("feature_names_in_", "y_feature_names_in_")]
        every = np.concatenate([names for names in named if names is not None] or [np.empty(0)])
        unseen = np.empty(0, dtype=np.int64) if self.unseen_ is None else self.unseen_
        return np.asarray(every[unseen] if unseen.max(initial=-1) < len(every) else unseen)

    @property
    def rare_features_(self) -> tuple[Any, ...]:
        """0/1 features that no more than one record in 25 has, as far as the noise of their means shows.

        A declared category that never occurs is among them, where there are records enough to tell. Right after a fit.
        """
        belief = self.__dict__.get("_belief")
        if not isinstance(belief, Assessment):
            return ()
        means, names = belief.evidence.means, getattr(self, "feature_names_in_", range(self.n_features_in_))
        if len(means.value) != len(names):  # of some features, or of two tables
            return ()
        most = means.value + 2.0 * means.noise_std
        # Further columns are of a second table.
        return tuple(names[j] for j in getattr(self, "_binary", ()) if j < len(names) and most[j] < RARE)


class Assessed:
    """A fit that says how far its directions are to be believed, from its releases alone, when it is first asked.

    A subclass calls `_keep_belief`; there is nothing to ask of a fit about which nothing can be said.
    """

    _belief: Assessment | None

    def _keep_belief(self, belief: Assessment | None) -> None:
        """What was worked out about an earlier fit goes."""
        for name in [name for name in self.__dict__ if isinstance(getattr(type(self), name, None), cached_property)]:
            del self.__dict__[name]
        self._belief = belief

    @property
    def _assessment(self) -> Assessment:
        belief = self.__dict__.get("_belief")
        if belief is None:
            check_is_fitted(self)
            raise AttributeError("nothing is said about the directions of this estimator")
        assert isinstance(belief, Assessment)
        return belief

    @cached_property
    def standard_errors_(self) -> FloatArray:
        """Root mean square error of `directions_`."""
        return self._wide(self._assessment.errors.directions)

    @cached_property
    def privacy_errors_(self) -> FloatArray:
        """The part of `standard_errors_` that privacy noise alone makes."""
        return self._wide(self._assessment.privacy_errors.directions)

    @cached_property
    def choice_(self) -> Choice:
        """The number of directions, and what it rests on."""
        return self._assessment.tested

    @cached_property
    def verdict_(self) -> Verdict:
        """Whether the fit would come out the same again."""
        return self._assessment.verdict

    def _wide(self, rows: FloatArray) -> FloatArray:
        """Rows about the features of the fit, as rows about all features."""
        return rows


@dataclass(eq=False, repr=False)
class ExplainingReducer(PrivateReducer):
    """Finds directions of x that explain a response."""

    epsilon: float = 1.0
    delta: float = 1e-6
    n_directions: int | str = "auto"
    bounds: GivenBounds = None

    @property
    def unseen_classes_(self) -> tuple[Any, ...]:
        """Declared classes of which hardly a record was seen, by their noisy counts; right after a fit."""
        belief, classes = self.__dict__.get("_belief"), getattr(self, "classes", None)
        if classes is None or not isinstance(belief, Assessment):
            return ()
        return tuple(list(classes)[i] for i in belief.evidence.ranks.unseen if i < len(classes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@dataclass(eq=False, repr=False)
class ComponentReducer(PrivateReducer):
    """Finds directions without a response to explain; how many is what one says first."""

    n_directions: int | str = 1
    epsilon: float = 1.0
    delta: float = 1e-6
    bounds: GivenBounds = None

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find the components of the features (array, dataframe, Arrow table, or Source); y is ignored."""
        return self._fit(open_session(self, X, y, groups))

    def _read(self, X: Any, y: Any, response_kind: ResponseKind | None = None, unit: Unit = RECORD) -> Source:
        return super()._read(X, None, response_kind, unit)


@dataclass(eq=False, repr=False)
class DeviceEstimator(Reporting, BaseEstimator):
    """Learns from answers that were randomised before anyone collected them."""

    _: KW_ONLY
    rows_per_person: int | None = None
    random_state: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


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
    return search_of(known, n_records, mu, insists_on_search(known, *given))


def insists_on_search(known: PartialBounds, *given: Any) -> bool:
    """Whether "search" was said of all features, or of every one of which nothing is known."""
    if any(isinstance(one, str) for one in given):
        return True
    said = [value for one in map(by_column, given) if isinstance(one, Mapping) for value in one.values()]
    return 0 < known.unknown.size <= sum(isinstance(value, str) for value in said)


def search_of(known: PartialBounds, n_records: int | None, mu: float, insists: bool = False) -> Bounds | Location:
    """The search for what is not known, at a share that follows from public numbers."""
    share = location_share(known, n_records, mu)
    if not known.asked.size or share == 0.0:
        return Bounds(known.lower, known.upper)
    return Location(known, share, insists)


def half_widths(n_features: int, units: FloatArray | None = None) -> Grid:
    """The grid of records that are in half widths of their bounds already, or in other units."""
    return Grid(np.zeros(n_features), np.ones(n_features) if units is None else units)


def common_scale(located: Located) -> Grid:
    """The grid with one half width for all features, the widest that was given or seen.

    Where lengths in the units of x matter, as for principal components, one unit must mean the same in every
    feature. No feature is clipped earlier than before; 20 bits of the widest leave enough for the others. A feature
    whose spread was not seen has a half width that is a guess, and must not set that of the others.
    """
    grid = located.bounds.grid(len(located.unseen))
    telling = grid.half_width[~located.unseen] if not located.unseen.all() else grid.half_width
    return Grid(grid.centre, np.full(grid.n_features, float(telling.max())))
