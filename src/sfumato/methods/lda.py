"""PrivateLDA: linear discriminant analysis with a differential-privacy guarantee."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InputError
from sfumato.forecast.evidence import Evidence, Heard, Seen
from sfumato.forecast.family import DiscriminantBelief
from sfumato.forecast.populations import PointPopulation, signed_normals, weighted_covariance
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import (
    CLASSES,
    CODES,
    EXPLAINING,
    EXPLAINING_OPTIONS,
    JUDGED,
    NAMES,
    PARAMETERS,
    About,
    Attack,
    finding,
    method_among,
)
from sfumato.methods.base import Assessed, ExplainingReducer, ExplainingTask, half_widths, location_of, open_session
from sfumato.methods.inputs import chosen_method, directions_of
from sfumato.privacy.asking import Asking
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Unit
from sfumato.records import HASH_BUCKETS, Records, Response
from sfumato.schema import HUGE, Node, array, places, record
from sfumato.sources import ResponseKind, Source
from sfumato.statistics.whitening import Whitening
from sfumato.steps.lda import ClassMeans, Discriminant, Rule, rule
from sfumato.steps.links import Links, Spectrum, directions_in_x, links_of
from sfumato.steps.location import Located, Locating
from sfumato.steps.ranks import MOST_CLASSES, Ranking, Ranks
from sfumato.steps.shape import RoughShape
from sfumato.steps.subspace import subspace_distance
from sfumato.steps.symmetric import inverse_root
from sfumato.typing import FloatArray

METHODS = ("auto", "one-shot")
SHAPE = RoughShape(0.03, 0.20)
MEANS = ClassMeans(0.65)
LOGARITHMS = 700.0
"""Of which the exponential is finite."""
NUMBERS = (
    "classes must be listed for a scanned response of numbers, here and for scan; or leave them unnamed: "
    "scan(..., response_kind='categorical')."
)
TWO_CLASSES = Response(3)
"""Declared, so that the last code is that of all others."""


@dataclass(frozen=True, slots=True)
class SeparatedClasses(PointPopulation):
    """Classes of equal size, equally spaced along one direction of which they explain the part `signal`.

    `response` says how many they are; two, if their names were not declared.
    """

    meaning: ClassVar[str] = "how much of it the classes explain"

    response: Response = TWO_CLASSES

    @property
    def n_classes(self) -> int:
        """Classes that exist; of declared ones the last code is that of all others."""
        known = 2 if self.response.hashed else (self.response.categories or 3) - 1
        return min(max(known, 2), MOST_CLASSES)

    def points(self, rng: np.random.Generator) -> Records:
        """Either side of every class, and its mirror image: means are exact, and a cut by length keeps them so."""
        h = self.n_classes
        w = np.concatenate([half := signed_normals(self.n_features, rng, h), half])
        code, side = np.arange(len(w)) % h, np.repeat([1.0, -1.0], len(half))
        place = np.arange(h) - (h - 1) / 2.0
        index = np.sqrt(self.signal) * (place / place.std())[code]
        index += np.sqrt(1.0 - self.signal) * side * np.abs(w[:, 0, 0])
        mirrored = w[:, :, 0] < 0
        w[:, :, 0] = index[:, None] * np.where(mirrored, -1.0, 1.0)
        y = np.where(mirrored, h - 1 - code[:, None], code[:, None])
        return Records(w.reshape(-1, self.n_features), y.ravel())

    def distance(self, outcome: Any) -> float:
        return subspace_distance(outcome.spectrum.directions, np.eye(1, self.n_features))

    def plain_distance(self, points: Records, counts: FloatArray) -> float:
        one_hot = np.eye(self.n_classes)[points.y.astype(int)] * counts[:, None] / counts.sum()
        sums, share = one_hot.T @ points.x, one_hot.sum(axis=0)
        means = sums - np.outer(share, sums.sum(axis=0))
        root = inverse_root(weighted_covariance(points, counts), 1e-12)
        u = np.linalg.svd(root @ (means.T / np.sqrt(np.maximum(share, 1e-12))), full_matrices=False)[0]
        return subspace_distance((root @ u[:, :1]).T, np.eye(1, self.n_features))


@dataclass(frozen=True, slots=True)
class DiscriminantOutcome:
    """Everything a fit learnt, from releases alone; `centre` is the mean of x."""

    spectrum: Spectrum
    fit: Discriminant
    rule: Rule
    located: Located
    centre: FloatArray
    belief: DiscriminantBelief | None = None


@dataclass(frozen=True, slots=True)
class DiscriminantTask(ExplainingTask):
    """What is public about a fit."""

    @property
    def ranking(self) -> Ranking:
        return Ranking(self.response, 0.04)

    def plan(self) -> Plan:
        return Plan.of(Locating(self.bounds), self.ranking, SHAPE, MEANS)

    def prospect(self) -> Prospect | None:
        """On classes along one direction."""
        if self.response.categories is None:
            return None
        return Prospect((("one-shot", self),), SeparatedClasses(self.n_features, response=self.response))

    def run(self) -> Asking[DiscriminantOutcome]:
        heard = Heard()
        located, ranks, n = yield from self.prepare(heard)
        whitening = yield from heard.of(SHAPE.run(located.grid, n))
        fit = yield from heard.of(self.solve(whitening, ranks, n, self.n_directions))
        outcome, to_z = self.outcome(located, whitening, fit), fit.root @ whitening.exact_matrix
        again, links = DiscriminantAgain(self, ranks), class_links(fit, ranks)
        evidence = replace(Evidence.of(heard, n, whitening, ranks, again, located.reading), to_z=to_z)
        signs, half_width = np.ones(fit.choice.n_directions), located.grid.half_width
        belief = DiscriminantBelief(evidence, links, links, fit.choice, half_width, signs, True)
        return replace(outcome, belief=belief)

    def prepare(self, heard: Heard | None = None) -> Asking[tuple[Located, Ranks, float]]:
        """Bounds, shares of the classes and number of records, given or bought; `heard` remembers the shares."""
        located = yield from Locating(self.bounds).run(self.n_features, self.n_records)
        ranks = yield from (heard or Heard()).of(self.ranking.run(self.n_records))
        return located, ranks, self.records_of(ranks)

    def codes(self, ranks: Ranks) -> int:
        """Codes that are classes; where classes are declared the last one is all others."""
        return ranks.bins.count if self.response.hashed else ranks.bins.count - 1

    def solve(self, whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None) -> Asking[Discriminant]:
        """Directions in the coordinates of the whitening."""
        return (yield from MEANS.run(whitening, ranks, self.codes(ranks), n, n_directions))

    def outcome(self, located: Located, whitening: Whitening, fit: Discriminant) -> DiscriminantOutcome:
        """The fit in the units of x."""
        grid = located.grid
        to_z = whitening.exact_matrix / grid.half_width
        back = grid.half_width[:, None] * whitening.inverse
        spectrum = directions_in_x(fit.coefficients, fit.noise_std, fit.root @ to_z, fit.choice.n_directions)
        centre = grid.centre + whitening.mean * grid.half_width + back @ fit.mean
        return DiscriminantOutcome(spectrum, fit, rule(fit.moments, back, spectrum.directions), located, centre)


@dataclass(frozen=True, slots=True)
class DiscriminantAgain:
    """The same fit on records in half widths of its bounds."""

    task: DiscriminantTask
    ranks: Ranks

    def look(self) -> Asking[Links]:
        """The links that the number of directions is chosen by."""
        return (yield from self.run(self.task.n_directions)).links

    def run(self, n_directions: int | None, units: FloatArray | None = None) -> Asking[Seen]:
        """The whole fit, on records measured in other units (half widths)."""
        task = self.task
        ranks = yield from task.ranking.count(self.ranks.bins, task.n_records)
        n = task.records_of(ranks)
        whitening = yield from SHAPE.run(half_widths(task.n_features, units), n)
        fit = yield from task.solve(whitening, ranks, n, n_directions)
        to_z = fit.root @ whitening.exact_matrix / whitening.source.half_width
        return Seen(class_links(fit, ranks), ranks.probabilities, to_z)


def class_links(fit: Discriminant, ranks: Ranks) -> Links:
    """How indicators of the classes depend on x: the coefficients are least squares for these."""
    shares = fit.moments.shares
    table = np.zeros((ranks.bins.count, len(shares)))
    table[fit.used] = np.diag(1.0 / np.sqrt(shares)) - np.sqrt(shares)  # of all other codes nothing is known
    return links_of(fit.coefficients, np.pad(table, ((0, 0), (0, fit.coefficients.shape[1] - len(shares)))))


RULE = record(Rule, centres=array("h", "k"), root=array("k", "k", most=HUGE), priors=array("h", most=LOGARITHMS))


def finish_rule(estimator: Any, node: Node) -> None:
    """What follows from the rule of a classifier that was read from a file."""
    used, classes = estimator._used, estimator.classes
    if used.max() >= (HASH_BUCKETS if classes is None else len(classes)):
        node.refuse("about the declared classes: used names others")
    estimator.centres_, estimator.priors_ = estimator._rule.centres, np.exp(estimator._rule.priors)


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    for method in METHODS:
        more = PrivateLDA(**known, classes=CODES, method=method)
        yield Attack(f"PrivateLDA {method}", more, responses=CODES, replay_only=method == "auto")
    yield Attack("PrivateLDA, names", PrivateLDA(**known), responses=NAMES, declared="categorical", replay_only=True)
    found = PrivateLDA(**finding(known), classes=NAMES)
    yield Attack("PrivateLDA, text classes, bounds found", found, responses=NAMES, replay_only=True)


@dataclass(eq=False, repr=False)
class PrivateLDA(Assessed, ExplainingReducer):
    """Directions that tell classes apart, and a classifier, without revealing any one record.

    Parameters
    ----------
    epsilon, delta, bounds, relation, rows_per_person, rho, ledger, random_state
        As in `PrivateSIR`.
    n_directions : int or "auto"
        "auto" counts the singular values that stand out of the known noise; this costs nothing.
    classes : sequence, optional
        Public list of the classes; needed by `predict`. Without it the classes (of any type) are sorted into hash
        buckets, those in use are found privately, and their names stay unknown.
    method : {"auto", "one-shot"}
        "auto" is "one-shot": class sums and second moment once, solved exactly; `explain` forecasts its loss. The
        published iteration, Rayleigh flow, is in `sfumato.research`.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x, most telling first.
    eigenvalues_ : ndarray of shape (n_directions,)
        Part of the variance along the direction that lies between classes, in [0, 1].
    centres_, priors_ : ndarray of shape (n_classes_found, n_directions), (n_classes_found,)
        Released class means in the coordinates of `transform`, and shares of the classes.
    standard_errors_, privacy_errors_, verdict_, choice_, mean_, bounds_, ledger_
        As in `PrivateSIR`.

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

    classes: Sequence[Any] | None = None
    method: str = "auto"

    _numeric_response = False

    about: ClassVar[About] = About(
        title="Private linear discriminants",
        page="methods/lda.md",
        options=(*EXPLAINING_OPTIONS, "method"),
        meaning="{:.1%} between classes",
        parameters=PARAMETERS | method_among(METHODS) | CLASSES,
        released=EXPLAINING | JUDGED | {"rule": RULE, "used": places("h", "codes")},
        finish=finish_rule,
        attacks=_attacks,
    )

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find the directions of X (array, dataframe, Arrow table, or Source) that tell the classes y apart.

        Whatever the type of y, its values are names of classes: no value of one record decides what the others are.
        """
        return self._fit(open_session(self, X, y, groups))

    def _read(self, X: Any, y: Any, response_kind: ResponseKind | None = None, unit: Unit = RECORD) -> Source:
        if isinstance(X, Source) and X.has_response and X.response.categories is None:
            raise InputError(NUMBERS)
        return super()._read(X, y, "categorical", unit)

    def _keep(self, outcome: DiscriminantOutcome, ledger: Ledger) -> None:
        self.directions_ = outcome.spectrum.directions
        self._keep_belief(outcome.belief)
        if outcome.belief is None:
            self.standard_errors_, self.choice_ = outcome.spectrum.standard_errors, outcome.fit.choice
        self.eigenvalues_ = outcome.fit.eigenvalues
        self.centres_ = outcome.rule.centres
        self.priors_ = np.exp(outcome.rule.priors)
        self.mean_ = outcome.centre
        self._keep_bounds(outcome.located)
        self.ledger_ = ledger
        self._rule = outcome.rule
        self._used = outcome.fit.used

    @available_if(lambda self: self.classes is not None)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each record, by released means and covariance."""
        check_is_fitted(self)
        assert self.classes is not None
        return np.asarray(np.asarray(self.classes)[self._used[self._rule.nearest(self.transform(X))]])

    def _task(self, n_features: int, n_records: int | None, response: Response) -> DiscriminantTask:
        if response.categories is None:
            raise InputError(NUMBERS)
        k = directions_of(self.n_directions, n_features)
        chosen_method(self, METHODS)
        return DiscriminantTask(n_features, n_records, response, k, location_of(self, n_features, n_records))
