"""PrivatePCA: principal components with a differential-privacy guarantee."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast, get_args

import numpy as np

from sfumato.bounds import Bounds, Grid
from sfumato.errors import InputError
from sfumato.forecast.evidence import Evidence, Heard
from sfumato.forecast.family import ComponentBelief, Known, shares_of_rest
from sfumato.forecast.populations import PointPopulation, signed_normals, weighted_covariance
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import CHOICE, COMPONENTS, JUDGED, PARAMETERS, About, Attack, method_among, searching
from sfumato.methods.base import Assessed, ComponentReducer, bounds_only, common_scale, half_widths
from sfumato.methods.inputs import chosen_method, directions_of
from sfumato.privacy.asking import Asking
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.parameters import budget_of, relation_of
from sfumato.privacy.plan import Plan
from sfumato.records import Records, Response
from sfumato.schema import optional
from sfumato.statistics.histograms import Bins
from sfumato.statistics.whitening import Whitening
from sfumato.steps.dimension import Choice
from sfumato.steps.location import Located, Locating, Location
from sfumato.steps.pca import Components, Method, Principal, descending, standard_errors
from sfumato.steps.ranks import Ranks
from sfumato.steps.subspace import subspace_distance
from sfumato.typing import FloatArray

METHODS = ("auto", "refined", "one-shot")


@dataclass(frozen=True, slots=True)
class SpikedCovariance(PointPopulation):
    """Normal records whose components stand out of equal variances (Johnstone 2001).

    The components have variance ``1 + signal p / (k (1 - signal))`` and all others 1: what stands out is the part
    `signal` of the whole variance. Points are in standard deviations of a component.

    >>> SpikedCovariance(8, 2, 0.5).variances
    array([5., 5., 1., 1., 1., 1., 1., 1.])
    """

    meaning: ClassVar[str] = "how much of the variance of x they explain"

    @property
    def variances(self) -> FloatArray:
        """Eigenvalues of the covariance, largest first."""
        p, k = self.n_features, self.n_directions
        spike = self.signal * p / (k * (1.0 - self.signal))
        return np.concatenate([np.full(k, 1.0 + spike), np.ones(p - k)])

    def points(self, rng: np.random.Generator) -> Records:
        x = signed_normals(self.n_features, rng).reshape(-1, self.n_features)
        return Records(x * np.sqrt(self.variances / self.variances[0]), np.zeros(len(x)))

    def distance(self, outcome: Any) -> float:
        return self._distance(outcome[1].vectors)

    def plain_distance(self, points: Records, counts: FloatArray) -> float:
        return self._distance(descending(weighted_covariance(points, counts))[1])

    def _distance(self, vectors: FloatArray) -> float:
        k = self.n_directions
        return subspace_distance(vectors[:, :k].T, np.eye(k, self.n_features))


@dataclass(frozen=True, slots=True)
class PrincipalTask:
    """What is public about a fit."""

    n_features: int
    n_records: int | None
    n_directions: int
    bounds: Bounds | Location
    method: Method

    @property
    def components(self) -> Components:
        return Components(1.0, self.method)

    def plan(self) -> Plan:
        return Plan.of(Locating(self.bounds), self.components)

    def prospect(self) -> Prospect:
        """Refined or one-shot, on records whose components stand out of equal variances."""
        fits = tuple((method, replace(self, method=method)) for method in get_args(Method))
        return Prospect(fits, SpikedCovariance(self.n_features, self.n_directions))

    def run(self) -> Asking[tuple[Located, Principal, ComponentBelief]]:
        located = yield from Locating(self.bounds).run(self.n_features, self.n_records)
        grid, heard = common_scale(located), Heard()
        found = yield from heard.of(self.components.run(grid, self.n_records, self.n_directions))
        return located, found, component_belief(heard, found, grid, self)


@dataclass(frozen=True, slots=True)
class ComponentsAgain:
    """The same components on records in half widths of the bounds."""

    task: PrincipalTask

    def look(self) -> Asking[FloatArray]:
        """What each component has of the variance that is left."""
        return shares_of_rest((yield from self._found()).values)

    def run(self, n_directions: int, units: FloatArray | None = None) -> Asking[FloatArray]:
        """Directions; all features are measured in one unit, whichever it is."""
        return np.asarray((yield from self._found()).vectors[:, :n_directions].T)

    def _found(self) -> Asking[Principal]:
        task = self.task
        return (yield from task.components.run(half_widths(task.n_features), task.n_records, task.n_directions))


def component_belief(heard: Heard, found: Principal, grid: Grid, task: PrincipalTask) -> ComponentBelief:
    """What the releases say about components."""
    p, k, again = grid.n_features, task.n_directions, ComponentsAgain(task)
    whitening = Whitening(grid, np.eye(p), found.mean, float(np.sqrt(p)))
    ranks = Ranks(Bins(np.empty(0)), np.ones(1), found.total)  # there is no response
    evidence = Evidence.of(heard, found.total, whitening, ranks, again, names=("radius", "rough"))
    known = Known(found.mean, np.diag(found.values), found.vectors, found.noise)
    choice = Choice(k, shares_of_rest(found.values), np.nan, True)
    return ComponentBelief(evidence, choice, grid.half_width, known, found.edge)


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    for method in get_args(Method):
        yield Attack(f"PrivatePCA {method}", PrivatePCA(**known, method=method))
    yield Attack("PrivatePCA auto", PrivatePCA(**known), replay_only=True)
    found = searching(known) | {"n_directions": 2}
    yield Attack("PrivatePCA, bounds found", PrivatePCA(**found), replay_only=True)


@dataclass(eq=False, repr=False)
class PrivatePCA(Assessed, ComponentReducer):
    """Leading principal components, without revealing any one record.

    Parameters
    ----------
    n_directions : int
        Number of components.
    epsilon, delta, relation, rows_per_person, rho, ledger, random_state
        As in `PrivateSIR`.
    bounds : Bounds, mapping, list, "search" or None
        Range of each feature, known without looking at the data; generous ones cost nothing, because the length
        at which records are clipped is found privately. None: location and scale are found privately too.
    method : {"auto", "refined", "one-shot"}
        "refined" buys a rough covariance first and then a second one in the coordinates in which noise blurs the
        leading subspace least; "one-shot" spends everything on one covariance. "auto" takes the one
        with the least expected loss, forecast from public numbers alone: "refined", but where records or
        budget are so few that the rough covariance shows nothing. Where the number of records is private: "refined".
        The published iteration, Rayleigh flow, is in `sfumato.research`.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x, largest variance first.
    eigenvalues_ : ndarray of shape (n_directions,)
        Variance along each direction, in squared units of x; corrected for clipping on average only.
    explained_variance_ratio_ : ndarray of shape (n_directions,)
        The same over the variance of all features.
    standard_errors_, privacy_errors_, verdict_, mean_, bounds_, ledger_
        As in `PrivateSIR`.

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

    method: str = "auto"

    about: ClassVar[About] = About(
        title="Private principal components",
        page="methods/pca.md",
        options=("method",),
        unit="component",
        meaning="{:.1%} of the variance",
        own_units=True,
        parameters=PARAMETERS | method_among(METHODS),
        released=COMPONENTS | JUDGED | {"choice": optional(CHOICE)},
        attacks=_attacks,
    )

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PrincipalTask:
        k = components_of(self.n_directions, n_features)
        name = chosen_method(self, METHODS)
        method = cast(Method, "refined" if name == "auto" else name)
        task = PrincipalTask(n_features, n_records, k, bounds_only(self, n_features, n_records), method)
        if name != "auto":
            return task
        budget, relation = budget_of(self.epsilon, self.delta, self.rho), relation_of(self.relation)
        return replace(task, method=cast(Method, task.prospect().best(budget, n_records, relation)))

    def _keep(self, outcome: tuple[Located, Principal, ComponentBelief | None], ledger: Ledger) -> None:
        located, found, belief = outcome
        grid = common_scale(located)
        k = int(self.n_directions)
        variance = np.maximum(found.values, 0.0)
        self.directions_ = found.vectors[:, :k].T.copy()
        self._keep_belief(belief)
        if belief is None:
            self.standard_errors_ = standard_errors(found.values, found.vectors, found.noise, k)
        self.eigenvalues_ = variance[:k] * grid.half_width[0] ** 2
        self.explained_variance_ratio_ = variance[:k] / max(float(variance.sum()), 1e-300)
        self.mean_ = grid.centre + found.mean * grid.half_width
        self._keep_bounds(located)
        self.ledger_ = ledger


def components_of(n_directions: Any, n_features: int) -> int:
    """Number of components; the noise does not tell how many there are, so it must be given."""
    k = directions_of(n_directions, n_features)
    if k is None:
        raise InputError("n_directions must be a positive integer, got 'auto'; say how many components you need.")
    return k
