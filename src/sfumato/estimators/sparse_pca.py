"""PrivateSparsePCA: principal components that rest on a few of very many features."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np

from sfumato.bounds import Bounds, GivenBounds, Grid
from sfumato.errors import InputError
from sfumato.estimators.base import PrivateReducer, bounds_only, common_scale
from sfumato.estimators.parameters import directions_of, one_of
from sfumato.estimators.session import open_session
from sfumato.iterate.location import Located, Location, find_bounds, plan_location
from sfumato.iterate.principal import Method
from sfumato.iterate.variances import Loadings, loadings, plan_loadings, plan_variances
from sfumato.planner.outlook import Outlook
from sfumato.planner.varying import Varying
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.solve.rotated import standard_errors

METHODS = ("auto", "screen", "dp-spca", "truncated-rayleigh-flow")
SHARES = {"scale": 0.03, "picks": 0.27, "solve": 0.70}
USUAL = 8


@dataclass(frozen=True, slots=True)
class SparsePrincipalTask:
    """What is public about a fit."""

    n_features: int
    n_records: int | None
    n_directions: int
    bounds: Bounds | Location
    method: str
    size: int

    @property
    def picks(self) -> int:
        """Features picked: the truncated flow drops half of them again, the others keep all."""
        return min(self.n_features, self.size * (2 if self.method == "truncated-rayleigh-flow" else 1))

    @property
    def inner(self) -> Method:
        """How the directions on the picked features are found."""
        match self.method:
            case "screen":
                return "refined"
            case "dp-spca":
                return "one-shot"
        return "rayleigh-flow"

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""
        lines = plan_location(self.bounds) + plan_variances(self.picks, SHARES["scale"], SHARES["picks"])
        return Plan(lines + plan_loadings(SHARES["solve"], self.inner, self.picks, self.method == "dp-spca"))

    def outlook(self) -> Outlook | None:
        """The one honest method, on records of which a few features share a component."""
        if self.method != "screen":
            return None
        law = Varying(self.n_features, picks=self.picks)
        return Outlook((("screen", self.plan()),), self.n_features, law=law)

    def run(self, curator: Curator) -> tuple[Located, Loadings]:
        """Walk the plan."""
        located = find_bounds(curator, self.bounds, self.n_features, self.n_records)
        grid, descends = common_scale(located), self.method == "dp-spca"
        return located, loadings(curator, grid, self.n_records, self.n_directions, self.inner, self.size, descends)


class PrivateSparsePCA(PrivateReducer):
    """Principal components on few of very many features, without revealing any one record.

    The features that vary most are picked privately, at a cost that grows with the logarithm of their number only;
    the components come from releases about those few columns.

    Parameters
    ----------
    n_directions : int
        Number of components.
    epsilon, delta : float
        The total privacy budget of everything that touches the data, found bounds included.
    bounds : Bounds, mapping, "search" or None
        Range of each feature, known without looking at the data; a feature's variance is taken about the middle, so
        choose it near the typical value. Generous bounds cost nothing: the size at which entries are clipped is
        found privately. None: location and scale of *all* features are found privately, which needs many records.
    max_features : int
        Features the components may rest on.
    method : {"auto", "screen", "dp-spca", "truncated-rayleigh-flow"}
        "auto" is "screen", the only method here that is not for comparison alone: pick, then components of the picked
        columns as in `PrivatePCA`; `explain` forecasts its loss. For comparison: "dp-spca"
        goes on with the gradient steps and peeling of Xia, Zhang and Cai (appendix A), "truncated-rayleigh-flow" is
        the sparse iteration of Hu, Xiang, Liu and Wang (one component).
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
        Orthonormal rows in the units of x, zero outside `support_`, largest variance first.
    support_ : ndarray of int
        Features the components rest on, in increasing order.
    standard_errors_ : ndarray of shape (n_directions, n_features)
        What the known noise adds to the directions, given the picked features (first order; zero elsewhere; not known
        for "dp-spca", where it is nan).
    eigenvalues_ : ndarray of shape (n_directions,)
        Variance along each direction, in squared units of x; corrected for clipping on average only.
    explained_variance_ratio_ : ndarray of shape (n_directions,)
        The same over the variance of all features, of which only the order of magnitude was bought.
    mean_, bounds_, ledger_
        Released centre (the middle of the bounds for features not picked); bounds given or found; every release.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivateSparsePCA
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4000, 1000))
    >>> x[:, :3] += 3 * rng.normal(size=(4000, 1))
    >>> pca = PrivateSparsePCA(n_directions=1, max_features=3, bounds=Bounds(-20, 20)).fit(x)
    >>> pca.support_.tolist(), np.abs(pca.directions_[0, :3]).round(1)
    ([0, 1, 2], array([0.6, 0.6, 0.6]))
    >>> pca.ledger_.total() <= 1.0
    True
    """

    def __init__(
        self,
        n_directions: int = 1,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: GivenBounds = None,
        max_features: int = USUAL,
        method: str = "auto",
        *,
        relation: str = "replace",
        rho: float | None = None,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_directions = n_directions
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.max_features = max_features
        self.method = method
        self.relation = relation
        self.rho = rho
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of the features (array, dataframe, Arrow table, or Source); y is ignored."""
        session = open_session(self, X, None)
        task = self._task(session.source.n_features, session.n_records, session.source.response)
        located, found = task.run(session.curator(task))
        self._keep_bounds(located)
        self._keep(task, found, common_scale(located))
        self.ledger_ = session.ledger
        return self

    def _task(self, n_features: int, n_records: int | None, response: Response) -> SparsePrincipalTask:
        k = directions_of(self.n_directions, n_features)
        if k is None:
            raise InputError("n_directions must be a positive integer, got 'auto'; say how many components you need.")
        name = one_of("method", self.method, METHODS)
        method, size = "screen" if name == "auto" else name, self.max_features
        if not isinstance(size, Integral) or isinstance(size, bool) or int(size) < k:
            raise InputError(f"max_features must be an integer of at least {k} (n_directions), got {size!r}.")
        if method == "truncated-rayleigh-flow" and k > 1:
            raise InputError(f"n_directions must be 1 with method={method!r}, got {k}; use 'screen' for more.")
        bounds = bounds_only(self, n_features, n_records)
        return SparsePrincipalTask(n_features, n_records, k, bounds, method, min(int(size), n_features))

    def _keep(self, task: SparsePrincipalTask, state: Loadings, grid: Grid) -> None:
        p, k, found = task.n_features, task.n_directions, state.found
        self.directions_, self.standard_errors_ = np.zeros((k, p)), np.zeros((k, p))
        self.directions_[:, state.support] = state.vectors.T
        if task.method == "dp-spca":
            self.standard_errors_[:, state.support] = np.nan
        else:
            self.standard_errors_[:, state.support] = standard_errors(found.values, found.vectors, found.noise, k)
        self.support_ = np.flatnonzero(self.directions_.any(axis=0))
        self.eigenvalues_ = np.maximum(found.values[:k], 0.0) * grid.half_width[0] ** 2
        ratio = np.maximum(found.values[:k], 0.0) / max(state.variance, 1e-300)
        self.explained_variance_ratio_ = ratio / max(1.0, float(ratio.sum()))
        self.mean_ = grid.centre.copy()
        self.mean_[state.picked] += found.mean * grid.half_width[0]
