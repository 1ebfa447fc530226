"""PrivatePCA: principal components with a differential-privacy guarantee."""

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from sfumato.bounds import Bounds, GivenBounds
from sfumato.errors import InputError
from sfumato.estimators.base import PrivateReducer, bounds_only, common_scale
from sfumato.estimators.parameters import CALIBRATIONS, budget_of, directions_of, one_of, relation_of
from sfumato.estimators.session import Session, open_printed, open_session
from sfumato.iterate.location import Located, Location, find_bounds, plan_location, settled
from sfumato.iterate.principal import Method, Principal, along, plan_principal, principal
from sfumato.iterate.printed_flow import COVARIANCE, FLOW_REASON, printed_flow, zcdp_of
from sfumato.planner.outlook import Outlook
from sfumato.planner.principal import Spiked
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.solve.pairs import principal_pair
from sfumato.solve.rotated import standard_errors
from sfumato.statistics.moments import Moments

METHODS = ("auto", "refined", "one-shot", "rayleigh-flow")
HONEST: tuple[Method, ...] = ("refined", "one-shot")


@dataclass(frozen=True, slots=True)
class PrincipalTask:
    """What is public about a fit."""

    n_features: int
    n_records: int | None
    n_directions: int
    bounds: Bounds | Location
    method: Method

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""
        return Plan(plan_location(self.bounds) + plan_principal(1.0, self.method))

    def outlook(self) -> Outlook | None:
        """Refined or one-shot, on records whose components stand out of equal variances."""
        if self.method == "rayleigh-flow":
            return None
        plans = tuple((method, replace(self, method=method).plan()) for method in HONEST)
        law = Spiked(self.n_features, self.n_directions)
        return Outlook(plans, self.n_features, self.n_directions, law)

    def run(self, curator: Curator) -> tuple[Located, Principal]:
        """Walk the plan."""
        located = find_bounds(curator, self.bounds, self.n_features, self.n_records)
        grid = common_scale(located)
        return located, principal(curator, grid, self.n_records, self.n_directions, self.method)


class PrivatePCA(PrivateReducer):
    """Leading principal components, without revealing any one record.

    Parameters
    ----------
    n_directions : int
        Number of components.
    epsilon, delta : float
        The total privacy budget of everything that touches the data, found bounds included.
    bounds : Bounds, mapping, "search" or None
        Range of each feature, known without looking at the data; generous ones cost nothing, because the length
        at which records are clipped is found privately. None: location and scale are found privately too.
    method : {"auto", "refined", "one-shot", "rayleigh-flow"}
        "refined" buys a rough covariance first and then a second one in the coordinates in which noise blurs the
        leading subspace least; "one-shot" spends everything on one covariance; "rayleigh-flow" is
        the published iteration for the first component alone, for comparison. "auto" takes the one of the first two
        with the least expected loss, by the planner and from public numbers alone: "refined", but where records or
        budget are so few that the rough covariance shows nothing. Where the number of records is private: "refined".
    calibration : {"tight", "paper"}
        Of "rayleigh-flow": correct noise under one total budget, or the printed noise, which gives no guarantee (the
        ledger says so and a `PrivacyWarning` is raised) and releases the direction alone: no variances, no centre.
    relation : {"replace", "add-remove"}
        Neighbouring data sets differ by replacing one record (the number of records is public), or by adding or
        removing one (it is private, and never used).
    rho : float, optional
        A zCDP budget; replaces (epsilon, delta) if given.
    ledger : Ledger, optional
        A ledger with a cap shared by several runs; a run that would pass it is refused before a record is read.
    random_state : int, optional
        Seeded noise, for rehearsal only: the guarantee is void, as the ledger says. None: cryptographic noise.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x, largest variance first.
    standard_errors_ : ndarray of shape (n_directions, n_features)
        What the known noise alone adds to the directions (first order; sampling error is not in it).
    eigenvalues_ : ndarray of shape (n_directions,)
        Variance along each direction, in squared units of x; corrected for clipping on average only.
    explained_variance_ratio_ : ndarray of shape (n_directions,)
        The same over the variance of all features.
    mean_ : ndarray of shape (n_features,)
        Released centre.
    bounds_ : Bounds
        Those given, or those found.
    ledger_ : Ledger
        Every release with purpose, sensitivity, noise and cost.

    Notes
    -----
    Components are those of the covariance in the units of x: rescale features of different units first, by public
    numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivatePCA, subspace_distance
    >>> x = np.random.default_rng(0).normal(size=(20_000, 6)) * [3, 2, 1, 1, 1, 1]
    >>> pca = PrivatePCA(n_directions=2, epsilon=1.0, delta=1e-6, bounds=Bounds(-50, 50)).fit(x)
    >>> pca.directions_.shape, bool(subspace_distance(pca.directions_, np.eye(6)[:2]) < 0.2)
    ((2, 6), True)
    >>> round(pca.ledger_.total(), 6)
    1.0
    """

    def __init__(
        self,
        n_directions: int = 1,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: GivenBounds = None,
        method: str = "auto",
        *,
        calibration: str = "tight",
        relation: str = "replace",
        rho: float | None = None,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_directions = n_directions
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.method = method
        self.calibration = calibration
        self.relation = relation
        self.rho = rho
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of the features (array, dataframe, Arrow table, or Source); y is ignored."""
        session = open_session(self, X, None)
        task = self._task(session.source.n_features, session.n_records, session.source.response)
        if self.calibration == "paper":
            self._keep(*self._printed(task, session), session.ledger)
        else:
            self._keep(*task.run(session.curator(task)), session.ledger)
        return self

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PrincipalTask:
        k = directions_of(self.n_directions, n_features)
        if k is None:
            raise InputError("n_directions must be a positive integer, got 'auto'; say how many components you need.")
        name = one_of("method", self.method, METHODS)
        one_of("calibration", self.calibration, CALIBRATIONS)
        method = cast(Method, "refined" if name == "auto" else name)
        if method == "rayleigh-flow" and k > 1:
            raise InputError(f"n_directions must be 1 with method='rayleigh-flow', got {k}; use 'refined' for more.")
        task = PrincipalTask(n_features, n_records, k, bounds_only(self, n_features, n_records), method)
        outlook = task.outlook() if name == "auto" else None
        if outlook is None:
            return task
        budget, relation = budget_of(self.epsilon, self.delta, self.rho), relation_of(self.relation)
        return replace(task, method=cast(Method, outlook.best(budget, n_records, relation)))

    def _printed(self, task: PrincipalTask, session: Session) -> tuple[Located, Principal]:
        """The flow with the paper's noise, records as they are."""
        if task.method != "rayleigh-flow" or not isinstance(task.bounds, Bounds):
            raise InputError("calibration='paper' needs method='rayleigh-flow' and bounds; use calibration='tight'.")
        door, p = open_printed(session, self, FLOW_REASON, takes_rho=True), task.n_features
        n, located = task.n_records or 0, settled(task.bounds, p)
        grid = common_scale(located)
        vector = printed_flow(
            door,
            [Moments(grid, float(np.sqrt(p)))],
            lambda sums: principal_pair(sums, p, n),
            (COVARIANCE * p, 0.0),
            n,
            rho=zcdp_of(self.epsilon, self.delta, self.rho),
        )
        return located, along(vector, np.zeros(p), np.full((p, p), np.nan), np.nan, 1.0, float(n))

    def _keep(self, located: Located, found: Principal, ledger: Ledger) -> None:
        grid = common_scale(located)
        k = int(self.n_directions)
        variance = np.maximum(found.values, 0.0)
        self.directions_ = found.vectors[:, :k].T.copy()
        self.standard_errors_ = standard_errors(found.values, found.vectors, found.noise, k)
        self.eigenvalues_ = variance[:k] * grid.half_width[0] ** 2
        self.explained_variance_ratio_ = variance[:k] / max(float(variance.sum()), 1e-300)
        self.mean_ = grid.centre + found.mean * grid.half_width
        self._keep_bounds(located)
        self.ledger_ = ledger
