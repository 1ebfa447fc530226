"""PrivateSparsePCA: principal components that rest on a few of very many features."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.bounds import Bounds
from sfumato.errors import InputError
from sfumato.forecast.populations import Population, missed_distance
from sfumato.forecast.prospect import Prospect
from sfumato.forecast.stand_in import StandIn
from sfumato.methods.about import COMPONENTS as PRINCIPAL
from sfumato.methods.about import PARAMETERS, SUPPORT, About, Attack, check_support, method_among
from sfumato.methods.base import ComponentReducer, bounds_only, common_scale
from sfumato.methods.inputs import chosen_method
from sfumato.methods.pca import SpikedCovariance, components_of
from sfumato.privacy.asking import Asking, drive, on_columns
from sfumato.privacy.events import Selection
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.schema import whole
from sfumato.steps.location import Located, Locating, Location
from sfumato.steps.pca import REACH, Components, Loadings, VariancePicks, standard_errors
from sfumato.typing import IntArray, Relation, is_whole

METHODS = ("auto", "screen")
COMPONENTS = Components(0.70)
USUAL = 8
MOST_ACTIVE = 6
WIDEST = 50_000
"""Most features for which a forecast is quick."""


@dataclass(frozen=True, slots=True)
class SparseComponent(Population):
    """Independent features of variance 1 but for six (or as many as may be picked) that share a component.

    It explains the part `signal` of the variance of each of them. The loss without privacy is that of the components
    of those features alone. Thousands of features that are all alike need no points: their sums of squares have a known
    law, and so have the picks among them.
    """

    meaning: ClassVar[str] = "how much of the variance of its features the component explains"

    picks: int = MOST_ACTIVE

    @property
    def active(self) -> int:
        """Features of the component."""
        return min(MOST_ACTIVE, self.picks)

    @property
    def quick(self) -> bool:
        return self.active < self.n_features <= WIDEST

    def losses(
        self, fit: Any, plan: Plan, n: float, relation: Relation, rng: np.random.Generator
    ) -> tuple[float, float]:
        found = int((self._picked(plan, n, relation, rng) < self.active).sum())
        plain = self._inner(self.active, self.active)
        without = 0.0 if plain is None else plain.plain_distance(*self._door(plain, plan, n, relation, rng).points)
        inner = self._inner(self.picks, found)
        if inner is None:
            return missed_distance(found, self.active, 0.0), without
        grid, door = Bounds(-inner.box, inner.box).grid(self.picks), self._door(inner, plan, n, relation, rng)
        seen = drive(COMPONENTS.run(grid, fit.n_records, 1), door)
        return missed_distance(found, self.active, inner.distance((None, seen))), without

    def _door(
        self, inner: SpikedCovariance, plan: Plan, n: float, relation: Relation, rng: np.random.Generator
    ) -> StandIn:
        return StandIn.of(inner.points(rng), n, plan, relation, rng)

    def _picked(self, plan: Plan, n: float, relation: Relation, rng: np.random.Generator) -> IntArray:
        """The largest sums of clipped squares under Gumbel noise; the active features come first."""
        event = plan.line("picks").event
        assert isinstance(event, Selection)
        p, s, z = self.n_features, self.active, rng.standard_normal(4000)
        variance = 1.0 / (1.0 - self.signal)
        # Squared; of the typical size of an entry, which the histogram of lengths rounds up to a power of 2^(1/4).
        clip = REACH**2 * (1.0 + s * (variance - 1.0) / p) * 2.0**0.25
        scores = np.empty(p)
        for place, size in ((slice(0, s), variance), (slice(s, p), 1.0)):
            squares = np.minimum(size * z**2, clip)
            error = squares.std() * np.sqrt(n) * rng.standard_normal(p)[place]
            scores[place] = n * squares.mean() + error
        spread = 2.0 * clip if relation == "replace" else clip  # as of `SquareSums`
        scores += rng.gumbel(scale=spread / event.epsilon, size=p)
        return np.argsort(-scores)[: event.picks]

    def _inner(self, features: int, found: int) -> SpikedCovariance | None:
        """Records of some features of which `found` are active, turned so that the component is the first."""
        if features < 2 or found == 0:
            return None
        spike = found * self.signal / (1.0 - self.signal)
        return SpikedCovariance(features, 1, spike / (spike + features))


@dataclass(frozen=True, slots=True)
class SparsePrincipalTask:
    """What is public about a fit."""

    n_features: int
    n_records: int | None
    n_directions: int
    bounds: Bounds | Location
    picks: int

    @property
    def picking(self) -> VariancePicks:
        return VariancePicks(self.picks, 0.03, 0.27)

    def plan(self) -> Plan:
        return Plan.of(Locating(self.bounds), self.picking, COMPONENTS)

    def prospect(self) -> Prospect | None:
        """On records of which a few features share a component."""
        return Prospect((("screen", self),), SparseComponent(self.n_features, picks=self.picks))

    def run(self) -> Asking[tuple[Located, Loadings]]:
        located = yield from Locating(self.bounds).run(self.n_features, self.n_records)
        grid, k = common_scale(located), self.n_directions
        picked, length = yield from self.picking.run(grid)
        found = yield from on_columns(COMPONENTS.run(grid.some(picked), self.n_records, k), picked)
        return located, Loadings(picked, found.vectors[:, :k], picked, found, length**2)


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    yield Attack("PrivateSparsePCA screen", PrivateSparsePCA(**known, max_features=2, method="screen"), n_features=6)


@dataclass(eq=False, repr=False)
class PrivateSparsePCA(ComponentReducer):
    """Principal components on few of very many features, without revealing any one record.

    The features that vary most are picked privately, at a cost that grows with the logarithm of their number only;
    the components come from releases about those few columns.

    Parameters
    ----------
    n_directions, epsilon, delta, relation, rows_per_person, rho, ledger, random_state
        As in `PrivatePCA`.
    bounds : Bounds, mapping, list, "search" or None
        Range of each feature, known without looking at the data; a feature's variance is taken about the middle, so
        choose it near the typical value. Generous bounds cost nothing: the size at which entries are clipped is
        found privately. None: location and scale of *all* features are found privately, which needs many records.
    max_features : int
        Features the components may rest on.
    method : {"auto", "screen"}
        "auto" is "screen": pick, then components of the picked columns as in `PrivatePCA`; `explain` forecasts its
        loss. The papers' own methods are in `sfumato.research`.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows in the units of x, zero outside `support_`, largest variance first.
    support_ : ndarray of int
        Features the components rest on, in increasing order.
    standard_errors_ : ndarray of shape (n_directions, n_features)
        What the known noise adds to the directions, given the picked features (first order; zero elsewhere).
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

    max_features: int = USUAL
    method: str = "auto"

    about: ClassVar[About] = About(
        title="Private sparse principal components",
        page="methods/sparse-pca.md",
        options=("method", "max_features"),
        unit="component",
        meaning="{:.1%} of the variance",
        own_units=True,
        parameters=PARAMETERS | method_among(METHODS) | {"max_features": whole(1)},
        released=PRINCIPAL | SUPPORT,
        finish=check_support,
        attacks=_attacks,
    )

    def _task(self, n_features: int, n_records: int | None, response: Response) -> SparsePrincipalTask:
        chosen_method(self, METHODS)
        k = components_of(self.n_directions, n_features)
        size = size_of(self.max_features, k, n_features)
        return SparsePrincipalTask(n_features, n_records, k, bounds_only(self, n_features, n_records), size)

    def _keep(self, outcome: tuple[Located, Loadings], ledger: Ledger) -> None:
        located, state = outcome
        grid = common_scale(located)
        p, k, found = grid.n_features, int(self.n_directions), state.found
        self.directions_, self.standard_errors_ = np.zeros((k, p)), np.zeros((k, p))
        self.directions_[:, state.support] = state.vectors.T
        self.standard_errors_[:, state.support] = standard_errors(found.values, found.vectors, found.noise, k)
        self.support_ = np.flatnonzero(self.directions_.any(axis=0))
        self.eigenvalues_ = np.maximum(found.values[:k], 0.0) * grid.half_width[0] ** 2
        ratio = np.maximum(found.values[:k], 0.0) / max(state.variance, 1e-300)
        self.explained_variance_ratio_ = ratio / max(1.0, float(ratio.sum()))
        self.mean_ = grid.centre.copy()
        self.mean_[state.picked] += found.mean * grid.half_width[0]
        self._keep_bounds(located)
        self.ledger_ = ledger


def size_of(max_features: Any, k: int, n_features: int) -> int:
    """Features the components may rest on."""
    if not is_whole(max_features, k):
        raise InputError(f"max_features must be an integer of at least {k} (n_directions), got {max_features!r}.")
    return min(int(max_features), n_features)
