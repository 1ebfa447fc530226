"""PrivateCCA: canonical correlation analysis of two tables with a differential-privacy guarantee."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds, GivenBounds
from sfumato.errors import InputError
from sfumato.forecast.evidence import Evidence, Heard
from sfumato.forecast.family import Known, PairBelief
from sfumato.forecast.populations import WIDEST, PointPopulation, random_distance, signed_normals, weighted_covariance
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import BOX, CHOICE, JUDGED, PARAMETERS, About, Attack, finding, method_among
from sfumato.methods.base import Assessed, ComponentReducer, half_widths, location_of_pair, open_session
from sfumato.methods.explanation import Explanation
from sfumato.methods.inputs import chosen_method, directions_of, paired_source, second_array
from sfumato.privacy.asking import Asking
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Unit
from sfumato.records import Records, Response
from sfumato.schema import HUGE, Node, Reader, array, bounds, optional, said_of_bounds, series, some_places
from sfumato.sources import ResponseKind, Source
from sfumato.statistics.histograms import Bins
from sfumato.steps.cca import Canonical, Counting, JointPairs, canonical
from sfumato.steps.location import Located, Locating, Location, assume_bounds
from sfumato.steps.ranks import Ranks
from sfumato.steps.subspace import orthonormal_rows, subspace_distance
from sfumato.typing import FloatArray

METHODS = ("auto", "refined")
PAIRS = JointPairs()


@dataclass(frozen=True, slots=True)
class CorrelatedPairs(PointPopulation):
    """Two tables of independent normal columns, of which `n_directions` pairs have the squared correlation `signal`.

    `n_features` counts the columns of both tables; the loss is the mean over the tables.
    """

    meaning: ClassVar[str] = "the squared correlation of a pair"

    n_targets: int = 1

    @property
    def useless(self) -> float:
        q, k = self.n_targets, self.n_directions
        return (random_distance(self.n_features - q, k) + random_distance(q, k)) / 2.0

    @property
    def quick(self) -> bool:
        q = self.n_targets
        return self.n_features <= WIDEST and self.n_directions < max(q, self.n_features - q)

    def sized(self, n_features: int) -> Self:
        """The same share of the columns in either table."""
        k = self.n_directions
        q = min(max(round(self.n_targets * n_features / self.n_features), k), n_features - k)
        return replace(self, n_features=max(n_features, 2 * k), n_targets=max(q, k))

    def settle(self, fit: Any, n_records: int | None, mu: float) -> Any:
        sizes = {"n_features": self.n_features - self.n_targets, "n_targets": self.n_targets, "n_records": n_records}
        bounds = assume_bounds(fit.bounds, self.n_features, self.box, n_records, mu)
        return replace(fit, n_directions=self.n_directions, bounds=bounds, **sizes)

    def points(self, rng: np.random.Generator) -> Records:
        """Sum and difference of a pair are independent: a cut by length keeps them so."""
        p, k, r = self.n_features - self.n_targets, self.n_directions, np.sqrt(self.signal)
        x = signed_normals(self.n_features, rng).reshape(-1, self.n_features)
        both, apart = np.sqrt((1 + r) / 2) * x[:, :k], np.sqrt((1 - r) / 2) * x[:, p : p + k]
        x[:, :k], x[:, p : p + k] = both + apart, both - apart
        return Records(x, np.zeros(len(x)))

    def distance(self, outcome: Any) -> float:
        return self._distance(outcome[2])

    def plain_distance(self, points: Records, counts: FloatArray) -> float:
        p, n = self.n_features - self.n_targets, float(counts.sum())
        return self._distance(canonical(weighted_covariance(points, counts), p, 0.0, n, self.n_directions))

    def _distance(self, found: Canonical) -> float:
        weights, k = (found.x_weights, found.y_weights), self.n_directions
        return float(np.mean([subspace_distance(w, np.eye(k, w.shape[1])) for w in weights]))


@dataclass(frozen=True, slots=True)
class CanonicalTask:
    """What is public about a fit; the bounds are those of all columns of both blocks, side by side."""

    n_features: int
    n_targets: int
    n_records: int | None
    n_directions: int | None
    bounds: Bounds | Location

    @property
    def size(self) -> int:
        """Columns of both blocks."""
        return self.n_features + self.n_targets

    def plan(self) -> Plan:
        """Every release the fit will make, with its share; the number of records only where it is private."""
        counting = () if self.n_records is not None else (Counting(self.size),)
        return Plan.of(Locating(self.bounds), *counting, PAIRS)

    def prospect(self) -> Prospect | None:
        """On pairs of correlated columns."""
        return Prospect(
            (("refined", self),), CorrelatedPairs(self.size, self.n_directions or 1, n_targets=self.n_targets)
        )

    def run(self) -> Asking[tuple[Located, FloatArray, Canonical, PairBelief | None]]:
        """Walk the plan: bounds, mean of (x, y) and canonical weights, in the units of x and y; what to believe."""
        (located, n), heard = (yield from self.prepare()), Heard()
        p, grid = self.n_features, located.grid
        mean, found, joint = yield from heard.of(PAIRS.run(grid, p, n, self.n_directions))
        ranks = Ranks(Bins(np.empty(0)), np.ones(1), n)  # there is no response
        evidence = Evidence.of(heard, n, joint.whitening, ranks, PairsAgain(self, n), located.reading)
        root = joint.whitening.inverse
        noise = np.full(joint.matrix.shape, joint.noise_std / np.sqrt(2.0))
        known = Known((mean - grid.centre) / grid.half_width, joint.matrix, root, noise)
        # With the next pair: it may be about as strong.
        pairs = canonical(root @ joint.matrix @ root.T, p, joint.noise_std, n, found.choice.n_directions + 1)
        weights = block_rows(pairs.x_weights, pairs.y_weights)
        return located, mean, found, PairBelief(evidence, found.choice, grid.half_width, known, weights, p)

    def prepare(self) -> Asking[tuple[Located, float]]:
        """Bounds of all columns and number of records, given or bought."""
        located = yield from Locating(self.bounds).run(self.size, self.n_records)
        return located, float(self.n_records) if self.n_records is not None else (yield from Counting(self.size).run())


@dataclass(frozen=True, slots=True)
class PairsAgain:
    """The same pairs of n records in half widths of the bounds."""

    task: CanonicalTask
    n: float

    def look(self) -> Asking[FloatArray]:
        """Canonical correlations."""
        return (yield from self._found(None, None)).choice.singular_values

    def run(self, n_directions: int, units: FloatArray | None = None) -> Asking[FloatArray]:
        """Weights of x, zero on y, and then those of y, zero on x: in half widths."""
        found = yield from self._found(n_directions, units)
        return block_rows(found.x_weights, found.y_weights)

    def _found(self, k: int | None, units: FloatArray | None) -> Asking[Canonical]:
        return (yield from PAIRS.run(half_widths(self.task.size, units), self.task.n_features, self.n, k))[1]


def block_rows(x: FloatArray, y: FloatArray) -> FloatArray:
    """Rows about two tables side by side.

    >>> block_rows(np.ones((1, 2)), np.ones((1, 1)))
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """
    return np.block([[x, np.zeros((len(x), y.shape[1]))], [np.zeros((len(y), x.shape[1])), y]])


def _bounded(rows: FloatArray) -> bool:
    return len(rows) <= rows.shape[1] and bool((np.linalg.norm(rows, axis=1) < 1.0 + 1e-6).all())


RELEASED: dict[str, Reader] = {
    "x_weights": array("k", "p", must="at most p rows of length one", holds=_bounded),
    "y_weights": array("k", "q", must="at most q rows of length one", holds=_bounded),
    "correlations": series(most="k"),
    "mean": array("p", most=HUGE),
    "y_mean": array("q", most=HUGE),
    "bounds": bounds("p + q"),
    "box": optional(bounds("p + q")),
    "unseen": optional(some_places("p + q")),
    "choice": CHOICE,
    "standard_errors": optional(array("k", "p", gaps=True, most=HUGE)),
    "y_standard_errors": optional(array("k", "q", gaps=True, most=HUGE)),
} | JUDGED


def finish_pairs(estimator: Any, node: Node) -> None:
    """What follows from canonical weights that were read from a file."""
    estimator.directions_ = orthonormal_rows(estimator.x_weights_)
    estimator.y_directions_ = orthonormal_rows(estimator.y_weights_)
    estimator.eigenvalues_ = estimator.correlations_


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    for method in METHODS:
        more = PrivateCCA(**known, y_bounds=BOX, method=method)
        yield Attack(f"PrivateCCA {method}", more, 4, two_tables=True, replay_only=method == "auto")
    yield Attack("PrivateCCA, bounds found", PrivateCCA(**finding(known)), 4, two_tables=True, replay_only=True)


@dataclass(eq=False, repr=False)
class PrivateCCA(Assessed, ComponentReducer):
    """Pairs of directions of two tables that are most correlated, without revealing any one record.

    A record is a row of both tables together.

    Parameters
    ----------
    n_directions : int or "auto"
        "auto" counts the correlations that stand out of the known noise; this costs nothing.
    epsilon, delta, relation, rows_per_person, rho, ledger, random_state
        As in `PrivateSIR`.
    bounds, y_bounds : Bounds, mapping, "search" or None
        Range of each column of X and of Y, or of some (see `PrivateSIR`), known without looking at the data; the others
        are found privately, and charged.
    method : {"auto", "refined"}
        "auto" is "refined": the joint covariance in coordinates that earlier releases made round, solved exactly.
        `explain` forecasts its loss. The published iteration, Rayleigh flow, is in `sfumato.research`.

    Attributes
    ----------
    x_weights_, y_weights_ : ndarray of shape (n_directions, n_features), (n_directions, n_targets)
        Canonical weights, unit rows in the units of X and Y, largest correlation first; not orthogonal in general.
    directions_, y_directions_ : ndarray
        Orthonormal rows; the first j span what the first j weights span.
    correlations_ : ndarray of shape (n_directions,)
        Released canonical correlations, in [0, 1]. Also called `eigenvalues_`.
    standard_errors_, privacy_errors_, y_standard_errors_ : ndarray
        Root mean square error of `directions_`, by sampling and noise; the part that privacy noise alone makes; that
        of `y_directions_`.
    verdict_ : Verdict
        Whether the pairs would come out the same on a fresh sample: "reliable", "weak" or "noise".
    choice_, mean_, y_mean_, bounds_, ledger_
        How many directions and why, with a test of each; released means; bounds of all columns; every release.
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

    n_directions: int | str = "auto"
    y_bounds: GivenBounds = None
    method: str = "auto"

    about: ClassVar[About] = About(
        title="Private canonical correlations",
        page="methods/cca.md",
        options=("second", "q", "method"),
        unit="pair of directions",
        meaning="correlation {:.2f}",
        parameters=PARAMETERS | {"y_bounds": said_of_bounds("q")} | method_among(METHODS),
        released=RELEASED,
        finish=finish_pairs,
        attacks=_attacks,
    )

    def explain(self, n_samples: int, n_features: int, n_targets: int = 1) -> Explanation:
        """The plan before any data: every release, what it costs and how much noise it gets."""
        return self._explain(n_samples, n_features, lambda p, n: self._pair(p, n_targets, n), n_targets)

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find the pairs of directions of the tables X (n, p) and y (n, q).

        X may be a Source that names both: ``sfumato.scan(path, second=[...])``, without y.
        """
        return self._fit(open_session(self, X, y, groups))

    def _read(self, X: Any, y: Any, response_kind: ResponseKind | None = None, unit: Unit = RECORD) -> Source:
        return paired_source(self, X, y, unit)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> CanonicalTask:
        p = int(self.n_features_in_)
        return self._pair(p, n_features - p, n_records)

    def _keep(self, outcome: tuple[Located, FloatArray, Canonical, PairBelief | None], ledger: Ledger) -> None:
        (located, mean, found, belief), p = outcome, int(self.n_features_in_)
        self._keep_bounds(located)
        self.x_weights_, self.y_weights_ = found.x_weights, found.y_weights
        self.directions_, self.y_directions_ = map(orthonormal_rows, (found.x_weights, found.y_weights))
        self.correlations_ = self.eigenvalues_ = found.correlations
        self.mean_, self.y_mean_ = mean[:p], mean[p:]
        self._keep_belief(belief)
        if belief is None:
            self.choice_ = found.choice
        self.ledger_ = ledger

    @cached_property
    def y_standard_errors_(self) -> FloatArray:
        """Root mean square error of `y_directions_`."""
        k, p = len(self.directions_), int(self.n_features_in_)
        return self._assessment.errors.directions[k:, p:]

    def _wide(self, rows: FloatArray) -> FloatArray:
        """Those about x."""
        return rows[: len(self.directions_), : int(self.n_features_in_)]

    def transform(self, X: Any, y: Any = None) -> Any:
        """Coordinates along `directions_`, and with y given also those along `y_directions_`; keep them private."""
        coordinates = super().transform(X)
        if y is None:
            return coordinates
        check_is_fitted(self)
        second, _ = second_array(y)
        if second.shape[1] != len(self.y_mean_):
            raise InputError(f"y has {second.shape[1]} columns, but fit saw {len(self.y_mean_)}; give the same ones.")
        second = self._eased(second, len(self.mean_))
        return coordinates, np.asarray((second - self.y_mean_) @ self.y_directions_.T)

    def _pair(self, n_features: int, n_targets: int, n_records: int | None) -> CanonicalTask:
        k = directions_of(self.n_directions, min(n_features, n_targets))
        chosen_method(self, METHODS)
        bounds = location_of_pair(self, (n_features, n_targets), n_records)
        return CanonicalTask(n_features, n_targets, n_records, k, bounds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
