"""PrivateLDA: linear discriminant analysis with a differential-privacy guarantee."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds, GivenBounds
from sfumato.errors import InputError
from sfumato.estimators.base import PrivateReducer, given_of, known_of, location_of
from sfumato.estimators.parameters import CALIBRATIONS, directions_of, one_of
from sfumato.estimators.printed_pairs import NEEDS, UNKNOWN, printed_discriminant
from sfumato.estimators.session import Session, open_session
from sfumato.iterate.discriminant import Discriminant, discriminate, discriminate_by_flow, plan_discriminant
from sfumato.iterate.location import Located, Location, find_bounds, plan_location, settled
from sfumato.iterate.ranks import find_ranks, plan_ranks
from sfumato.iterate.rayleigh import plan_flow
from sfumato.iterate.shape import clipped, plan_shape, rough_shape
from sfumato.planner.discriminant import Groups
from sfumato.planner.outlook import Outlook
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.solve.discriminant import Rule, rule
from sfumato.solve.spectral import Spectrum, directions_in_x
from sfumato.sources import Source
from sfumato.typing import FloatArray

METHODS = ("auto", "one-shot", "rayleigh-flow")
SHARES = {"ranks": 0.04, "radius": 0.03, "shape": 0.20, "solve": 0.65}


@dataclass(frozen=True, slots=True)
class DiscriminantOutcome:
    """Everything a fit learnt, from releases alone; `centre` is the mean of x."""

    spectrum: Spectrum
    fit: Discriminant
    rule: Rule
    located: Located
    centre: FloatArray


@dataclass(frozen=True, slots=True)
class DiscriminantTask:
    """What is public about a fit."""

    n_features: int
    n_records: int | None
    response: Response
    n_directions: int | None
    bounds: Bounds | Location
    flows: bool = False

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""
        lines = plan_location(self.bounds) + plan_ranks(self.response, SHARES["ranks"])
        lines += plan_shape(SHARES["radius"], SHARES["shape"])
        if self.flows:  # the rough shape is not needed, its share goes to the flow
            return Plan(lines[:-1] + plan_flow(SHARES["shape"] + SHARES["solve"], "2.12 r / 1.41 r"))
        return Plan(lines + plan_discriminant(SHARES["solve"]))

    def outlook(self) -> Outlook | None:
        """The one honest method, on classes along one direction."""
        if self.flows or self.response.categories is None:
            return None
        law = Groups(self.n_features, response=self.response)
        return Outlook((("one-shot", self.plan()),), self.n_features, law=law)

    def run(self, curator: Curator) -> DiscriminantOutcome:
        """Walk the plan."""
        located = find_bounds(curator, self.bounds, self.n_features, self.n_records)
        grid = located.grid
        ranks = find_ranks(curator, self.response)
        n = float(self.n_records) if self.n_records is not None else max(ranks.total, 10.0 * self.n_features)
        whitening = clipped(curator, grid) if self.flows else rough_shape(curator, grid, n, 1.0)
        codes = ranks.bins.count if self.response.hashed else ranks.bins.count - 1  # declared: the last is all others
        if self.flows:
            fit = discriminate_by_flow(curator, whitening, ranks, codes, n)
        else:
            fit = discriminate(curator, whitening, ranks, codes, n, self.n_directions)
        to_z = whitening.exact_matrix / grid.half_width
        back = np.asarray(np.linalg.pinv(to_z), dtype=np.float64)
        spectrum = directions_in_x(fit.coefficients, fit.noise_std, fit.root @ to_z, fit.choice.n_directions)
        centre = grid.centre + whitening.mean * grid.half_width + back @ fit.mean
        return DiscriminantOutcome(spectrum, fit, rule(fit.moments, back, spectrum.directions), located, centre)


def as_names(y: Any) -> Any:
    """Labels of any type as text, so that they are classes and not numbers; None and bad shapes pass, to be refused."""
    raw = np.asarray(y)
    return raw.astype(str) if y is not None and raw.dtype.kind in "biu" else y


def _names_its_classes(estimator: Any) -> bool:
    return estimator.classes is not None and estimator.calibration == "tight"


class PrivateLDA(PrivateReducer):
    """Directions that tell classes apart, and a classifier, without revealing any one record.

    Parameters
    ----------
    epsilon, delta : float
        The total privacy budget of everything that touches the data, found bounds included.
    n_directions : int or "auto"
        "auto" counts the singular values that stand out of the known noise; this costs nothing.
    bounds : Bounds, mapping, "search" or None
        Range of each feature, or of some (see `PrivateSIR`), known without looking at the data; the others are found
        privately, and charged.
    classes : sequence, optional
        Public list of the classes; needed by `predict`. Without it the classes (of any type) are sorted into hash
        buckets, those in use are found privately, and their names stay unknown.
    method : {"auto", "one-shot", "rayleigh-flow"}
        "auto" is "one-shot", the only method here that is not for comparison alone: class sums and second moment
        once, solved exactly; `explain` forecasts its loss. "rayleigh-flow" is the published
        iteration for the first direction, for comparison.
    calibration : {"tight", "paper"}
        Of "rayleigh-flow": correct noise under one total budget, or the printed noise, which gives no guarantee (the
        ledger says so and a `PrivacyWarning` is raised) and releases the direction alone: nothing to predict with.
    relation : {"replace", "add-remove"}
        Neighbouring data sets differ by replacing one record (the number of records is public), or by adding or
        removing one (it is private, and never used).
    rho : float, optional
        A zCDP budget; replaces (epsilon, delta) if given.
    ledger : Ledger, optional
        A ledger with a cap shared by several runs.
    random_state : int, optional
        Seeded noise, for rehearsal only: the guarantee is void, as the ledger says.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x, most telling first.
    standard_errors_ : ndarray of shape (n_directions, n_features)
        What the known noise alone adds to the directions (first order; sampling error is not in it).
    eigenvalues_ : ndarray of shape (n_directions,)
        Part of the variance along the direction that lies between classes, in [0, 1].
    centres_, priors_ : ndarray of shape (n_classes_found, n_directions), (n_classes_found,)
        Released class means in the coordinates of `transform`, and shares of the classes.
    choice_, mean_, bounds_, ledger_
        How many directions and why; released mean; bounds given or found; every release with its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivateLDA
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["ash", "oak"], 10_000)
    >>> x = rng.normal(size=(10_000, 4)) + 2.0 * (y == "oak")[:, None] * [1, 0, 0, 0]
    >>> lda = PrivateLDA(epsilon=1.0, classes=["ash", "oak"], bounds=Bounds(-5, 7)).fit(x, y)
    >>> lda.predict([[-1, 0, 0, 0], [3, 0, 0, 0]])
    array(['ash', 'oak'], dtype='<U3')
    >>> round(lda.ledger_.total(), 6)
    1.0
    """

    _numeric_response = False

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_directions: int | str = "auto",
        bounds: GivenBounds = None,
        classes: Sequence[Any] | None = None,
        method: str = "auto",
        *,
        calibration: str = "tight",
        relation: str = "replace",
        rho: float | None = None,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_directions = n_directions
        self.bounds = bounds
        self.classes = classes
        self.method = method
        self.calibration = calibration
        self.relation = relation
        self.rho = rho
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions of X (array, dataframe, Arrow table, or Source) that tell the classes y apart."""
        if isinstance(X, Source) and X.has_response and X.response.categories is None:
            raise InputError("classes must be listed for a scanned response of numbers, here and for scan.")
        session = open_session(self, X, y if self.classes is not None else as_names(y))
        task = self._task(session.source.n_features, session.n_records, session.source.response)
        if one_of("calibration", self.calibration, CALIBRATIONS) == "paper":
            return self._printed(task, session)
        outcome = task.run(session.curator(task))
        self.directions_ = outcome.spectrum.directions
        self.standard_errors_ = outcome.spectrum.standard_errors
        self.eigenvalues_ = outcome.fit.eigenvalues
        self.centres_ = outcome.rule.centres
        self.priors_ = np.exp(outcome.rule.priors)
        self.choice_ = outcome.fit.choice
        self.mean_ = outcome.centre
        self._keep_bounds(outcome.located)
        self.ledger_ = session.ledger
        self._rule = outcome.rule
        self._used = outcome.fit.used
        return self

    def _printed(self, task: DiscriminantTask, session: Session) -> Self:
        """The direction by the paper's noise; of all else nothing was released."""
        if not task.flows or not isinstance(task.bounds, Bounds):
            raise InputError(NEEDS)
        self.directions_ = printed_discriminant(task.bounds, session, self)
        self.standard_errors_ = np.full(self.directions_.shape, np.nan)
        self.eigenvalues_, self.choice_ = np.full(1, np.nan), UNKNOWN
        self.centres_, self.priors_ = np.empty((0, 1)), np.empty(0)
        self.mean_ = task.bounds.grid(task.n_features).centre
        self._keep_bounds(settled(task.bounds, task.n_features))
        self.ledger_ = session.ledger
        return self

    @available_if(_names_its_classes)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each record, by released means and covariance."""
        check_is_fitted(self)
        assert self.classes is not None
        return np.asarray(np.asarray(self.classes)[self._used[self._rule.nearest(self.transform(X))]])

    def _task(self, n_features: int, n_records: int | None, response: Response) -> DiscriminantTask:
        k = directions_of(self.n_directions, n_features)
        flows = one_of("method", self.method, METHODS) == "rayleigh-flow"
        if flows and k not in (None, 1):
            raise InputError(f"n_directions must be 1 with method='rayleigh-flow', got {k}; use 'auto' for more.")
        given = given_of(known_of(self, n_features)) if flows else None
        bounds = given or location_of(self, n_features, n_records)
        return DiscriminantTask(n_features, n_records, response, 1 if flows else k, bounds, flows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
