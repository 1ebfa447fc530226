"""PrivateCCA: canonical correlation analysis of two tables with a differential-privacy guarantee."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds, GivenBounds, Grid
from sfumato.errors import InputError
from sfumato.estimators.base import PrivateReducer, given_of, location_of_pair
from sfumato.estimators.explanation import Explanation
from sfumato.estimators.inputs import paired_source, second_array
from sfumato.estimators.parameters import CALIBRATIONS, budget_of, directions_of, one_of, relation_of, sizes_of
from sfumato.estimators.printed_pairs import NEEDS, printed_canonical
from sfumato.estimators.session import open_session
from sfumato.iterate.canonical import joint_pairs, plan_pairs
from sfumato.iterate.covariance import whole
from sfumato.iterate.location import Located, Location, find_bounds, plan_location, settled
from sfumato.iterate.rayleigh import plan_flow, rayleigh_flow
from sfumato.iterate.shape import clipped
from sfumato.planner.canonical import Pairs
from sfumato.planner.outlook import Outlook
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Line, Plan
from sfumato.solve.canonical import Canonical, orthonormal_rows, unit_rows
from sfumato.solve.dimension import Choice
from sfumato.solve.pairs import canonical_pair, mean_and_covariance
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.typing import FloatArray

METHODS = ("auto", "refined", "rayleigh-flow")
COUNT_SHARE = 0.01
"""Beside those of `plan_pairs`."""


@dataclass(frozen=True, slots=True)
class CanonicalTask:
    """What is public about a fit; the bounds are those of all columns of both blocks, side by side."""

    n_features: int
    n_targets: int
    n_records: int | None
    n_directions: int | None
    bounds: Bounds | Location
    flows: bool = False

    def plan(self) -> Plan:
        """Every release the fit will make, with its share; the number of records only where it is private."""
        lines = plan_location(self.bounds)
        if self.n_records is None:
            lines += (Line("count", "number of records", COUNT_SHARE, "sqrt(2) / 1"),)
        if not self.flows:
            return Plan(lines + plan_pairs())
        radius = plan_pairs()[:1]
        return Plan(lines + radius + plan_flow(sum(line.share for line in plan_pairs()[1:]), "1.48 r^2 / 1.04 r^2"))

    def outlook(self) -> Outlook | None:
        """The one honest method, on pairs of correlated columns."""
        if self.flows:
            return None
        size, k = self.n_features + self.n_targets, self.n_directions or 1
        return Outlook((("refined", self.plan()),), size, k, Pairs(size, k, n_targets=self.n_targets))

    def run(self, curator: Curator) -> tuple[Located, FloatArray, Canonical]:
        """Walk the plan: bounds, mean of (x, y) and canonical weights, in the units of x and y."""
        p, size = self.n_features, self.n_features + self.n_targets
        located = find_bounds(curator, self.bounds, size, self.n_records)
        grid = located.grid
        n = float(self.n_records) if self.n_records is not None else _count(curator, size)
        if self.flows:
            return located, *self._flow(curator, grid, n)
        return located, *joint_pairs(curator, grid, p, n, self.n_directions)

    def _flow(self, curator: Curator, grid: Grid, n: float) -> tuple[FloatArray, Canonical]:
        """The first pair by Rayleigh flow of the cross-covariances, both ways, against the two covariances."""
        p, size = self.n_features, grid.n_features
        query = whole(clipped(curator, grid))
        flow = rayleigh_flow(curator, query, lambda released: canonical_pair(released.value, size, p, n), n)
        A, B = canonical_pair(flow.last.value, size, p, n)
        quotient = float(flow.vector @ A @ flow.vector) / max(float(flow.vector @ B @ flow.vector), 1e-300)
        weights = flow.vector / grid.half_width
        correlation = np.clip([quotient], 0.0, 1.0)
        choice = Choice(1, correlation, np.nan, True)
        pair = Canonical(unit_rows(weights[None, :p]), unit_rows(weights[None, p:]), correlation, choice)
        return grid.centre + mean_and_covariance(flow.last.value, size, n)[0] * grid.half_width, pair


class PrivateCCA(PrivateReducer):
    """Pairs of directions of two tables that are most correlated, without revealing any one record.

    A record is a row of both tables together.

    Parameters
    ----------
    n_directions : int or "auto"
        "auto" counts the correlations that stand out of the known noise; this costs nothing.
    epsilon, delta : float
        The total privacy budget of everything that touches the data, found bounds included.
    bounds, y_bounds : Bounds, mapping, "search" or None
        Range of each column of X and of Y, or of some (see `PrivateSIR`), known without looking at the data; the others
        are found privately, and charged.
    method : {"auto", "refined", "rayleigh-flow"}
        "auto" is "refined", the only method here that is not for comparison alone: the joint covariance in
        coordinates that earlier releases made round, solved exactly. `explain` forecasts its loss.
        "rayleigh-flow" is the published iteration for the first pair, for comparison.
    calibration : {"tight", "paper"}
        Of "rayleigh-flow": correct noise under one total budget, or the printed noise, which gives no guarantee (the
        ledger says so and a `PrivacyWarning` is raised) and releases the weights alone.
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
    x_weights_, y_weights_ : ndarray of shape (n_directions, n_features), (n_directions, n_targets)
        Canonical weights, unit rows in the units of X and Y, largest correlation first; not orthogonal in general.
    directions_, y_directions_ : ndarray
        Orthonormal rows; the first j span what the first j weights span.
    correlations_ : ndarray of shape (n_directions,)
        Released canonical correlations, in [0, 1]. Also called `eigenvalues_`.
    choice_, mean_, y_mean_, bounds_, ledger_
        How many directions and why; released means; bounds of all columns; every release with its cost.
    feature_names_in_, y_feature_names_in_ : ndarray of str
        Names of the columns, where the tables have them.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import PrivateCCA
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(20_000, 4)), rng.normal(size=(20_000, 3))
    >>> y[:, 0] += 2 * x[:, 1]
    >>> cca = PrivateCCA(n_directions=1, epsilon=1.0).fit(x, y)
    >>> bool(abs(cca.x_weights_[0, 1]) > 0.98), cca.correlations_.round(1)
    (True, array([0.9]))
    """

    def __init__(
        self,
        n_directions: int | str = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: GivenBounds = None,
        y_bounds: GivenBounds = None,
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
        self.y_bounds = y_bounds
        self.method = method
        self.calibration = calibration
        self.relation = relation
        self.rho = rho
        self.ledger = ledger
        self.random_state = random_state

    def explain(self, n_samples: int, n_features: int, n_targets: int = 1) -> Explanation:
        """The plan before any data: every release, what it costs and how much noise it gets."""
        n_samples, n_features = sizes_of(n_samples, n_features)
        budget, relation = budget_of(self.epsilon, self.delta, self.rho), relation_of(self.relation)
        task = self._pair(n_features, n_targets, n_samples if relation == "replace" else None)
        size, plan = n_features + n_targets, task.plan().calibrate(budget)
        return Explanation(plan, budget, relation, n_samples, size, task.outlook())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the pairs of directions of the tables X (n, p) and y (n, q).

        X may be a Source that names both: ``sfumato.scan(path, second=[...])``, without y.
        """
        session = open_session(self, X, y, paired_source)
        p = int(self.n_features_in_)
        task = self._pair(p, session.source.n_features - p, session.n_records)
        if one_of("calibration", self.calibration, CALIBRATIONS) == "paper":
            if not task.flows or not isinstance(task.bounds, Bounds):
                raise InputError(NEEDS)
            located = settled(task.bounds, p + task.n_targets)
            mean = task.bounds.grid(p + task.n_targets).centre
            found = printed_canonical(task.bounds, p, session, self)
        else:
            located, mean, found = task.run(session.curator(task))
        self._keep_bounds(located)
        self.x_weights_, self.y_weights_ = found.x_weights, found.y_weights
        self.directions_, self.y_directions_ = map(orthonormal_rows, (found.x_weights, found.y_weights))
        self.correlations_ = self.eigenvalues_ = found.correlations
        self.mean_, self.y_mean_ = mean[:p], mean[p:]
        self.choice_ = found.choice
        self.ledger_ = session.ledger
        return self

    def transform(self, X: Any, y: Any = None) -> Any:
        """Coordinates along `directions_`, and with y given also those along `y_directions_`; keep them private."""
        coordinates = super().transform(X)
        if y is None:
            return coordinates
        check_is_fitted(self)
        second, _ = second_array(y)
        if second.shape[1] != len(self.y_mean_):
            raise InputError(f"y has {second.shape[1]} columns, but fit saw {len(self.y_mean_)}; give the same ones.")
        return coordinates, np.asarray((second - self.y_mean_) @ self.y_directions_.T)

    def _pair(self, n_features: int, n_targets: int, n_records: int | None) -> CanonicalTask:
        k = directions_of(self.n_directions, min(n_features, n_targets))
        flows = one_of("method", self.method, METHODS) == "rayleigh-flow"
        if flows and k not in (None, 1):
            raise InputError(f"n_directions must be 1 with method='rayleigh-flow', got {k}; use 'auto' for more.")
        bounds = location_of_pair(self, (n_features, n_targets), n_records)
        if flows and isinstance(bounds, Location):  # for comparison alone: bounds as they are, if all are known
            bounds = given_of(bounds.known) or bounds
        return CanonicalTask(n_features, n_targets, n_records, 1 if flows else k, bounds, flows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _count(curator: Curator, size: int) -> float:
    released = curator.answer(ResponseHistogram(Bins(np.empty(0))), "count")
    return max(float(released.value[0]), 10.0 * size)
