"""PrivateMultiSIR: sliced inverse regression of several responses at once with a differential-privacy guarantee."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.errors import InputError
from sfumato.forecast.evidence import Heard
from sfumato.forecast.populations import POINTS, PointPopulation, weighted_covariance
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import PARAMETERS, About, Attack, finding
from sfumato.methods.base import location_of, open_session
from sfumato.methods.explanation import Explanation
from sfumato.methods.inputs import directions_of, paired_source
from sfumato.methods.sir import LINKED, WORDS, LinkedReducer, Outcome, Task, solve
from sfumato.privacy.asking import Asking, on_columns
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Unit
from sfumato.records import Records, Response
from sfumato.sources import ResponseKind, Source
from sfumato.statistics.parts import Cells
from sfumato.steps.cells import CellRanking, on_cells, project
from sfumato.steps.location import Locating
from sfumato.steps.subspace import subspace_distance
from sfumato.steps.symmetric import inverse_root
from sfumato.typing import FloatArray, IntArray, is_whole

CELLS = 144
"""Most cells: with more of them their counts drown in noise, with fewer they tell less."""
MOST_RESPONSES = 7
"""As many as can be halved within that many cells."""
COMBINATIONS = 12
WEIGHTS = np.array([1.0, 0.6, 0.6, 0.6])
"""Of the cosines of the ranks of a combination of responses."""


@dataclass(frozen=True, slots=True)
class CellTask(Task):
    """What is public about a fit whose response is a cell of several columns, those after the features."""

    @property
    def ranking(self) -> CellRanking:
        """How the columns are cut."""
        raise NotImplementedError

    def functions(self, places: IntArray, probabilities: FloatArray) -> FloatArray:
        """What x is to explain, on every cell."""
        raise NotImplementedError

    def plan(self) -> Plan:
        return Plan.of(Locating(self.bounds), self.ranking, self.shape, self.solver)

    def run(self) -> Asking[Outcome]:
        """Walk the plan: bounds of the features, cells, and then as `PrivateSIR` does."""
        location = Locating(self.bounds).run(self.n_features, self.n_records)
        located, heard = (yield from on_columns(location, range(self.n_features))), Heard()
        ranks = yield from heard.of(self.ranking.run(self.n_records))
        ranks = replace(ranks, functions=self.functions(ranks.cells.places, ranks.probabilities))
        return (yield from on_cells(solve(self, ranks, located, heard), ranks.cells))

    def plain_directions(self, points: Records, counts: FloatArray, places: IntArray, k: int) -> FloatArray:
        """Directions without privacy, of points in known pieces that count several times each."""
        features, share = Records(points.x[:, : self.n_features], points.y), counts / counts.sum()
        cells = Cells.cut([np.arange(place.max(), dtype=np.float64) for place in places.T])
        cell = np.ravel_multi_index(tuple(places.T), tuple(cells.sizes + 1))
        shares = np.bincount(cell, share, minlength=cells.count).astype(np.float64)
        table = self.functions(cells.places, shares)
        root = inverse_root(weighted_covariance(features, counts), 1e-12)
        centred = features.x - share @ features.x
        u = np.linalg.svd(root @ ((centred.T * share) @ table[cell]), full_matrices=False)[0]
        return np.asarray((root @ u[:, :k]).T)


@dataclass(frozen=True, slots=True)
class MultiTask(CellTask):
    """What is public about a fit of so many responses."""

    n_targets: int = 2

    @property
    def ranking(self) -> CellRanking:
        pieces = int(CELLS ** (1.0 / self.n_targets) + 1e-9)
        return CellRanking(
            self.response, self.schedule.ranks, n_features=self.n_features, pieces=(pieces,) * self.n_targets
        )

    def functions(self, places: IntArray, probabilities: FloatArray) -> FloatArray:
        """Those of projective resampling."""
        return project(places, probabilities, combinations(places.shape[1]), WEIGHTS)

    def prospect(self) -> Prospect:
        """On responses that each move with one direction."""
        return Prospect((("descent", self),), SeveralResponses(self.n_features, self.n_directions or 1, fit=self))


def combinations(q: int) -> FloatArray:
    """Weights (combinations, q) of q responses: all angles of two; of more each by itself, and fixed random ones.

    >>> combinations(1), combinations(2).shape, combinations(3)[:3].tolist()
    (array([[1.]]), (12, 2), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """
    if q == 1:
        return np.ones((1, 1))
    if q == 2:
        angles = np.pi * np.arange(COMBINATIONS) / COMBINATIONS
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    drawn = np.random.default_rng(0).standard_normal((max(COMBINATIONS, 4 * q), q))
    return np.concatenate([np.eye(q), drawn / np.linalg.norm(drawn, axis=1, keepdims=True)])


@dataclass(frozen=True, slots=True)
class CellPopulation(PointPopulation):
    """Normal features, and responses in the columns after them; `fit` says how many, and what is done with them."""

    fit: Any = None

    def __post_init__(self) -> None:
        PointPopulation.__post_init__(self)
        object.__setattr__(self, "n_directions", min(self.n_directions, self.shown))

    @property
    @abstractmethod
    def shown(self) -> int:
        """How many directions such responses can show."""

    def points(self, rng: np.random.Generator) -> Records:
        """Every index and its responses with a normal rest of x and with its mirror image."""
        m, k, p = POINTS // 2, self.n_directions, self.n_features
        index, rest = rng.standard_normal((m, k)), rng.standard_normal((m, p - k))
        if m > 2 * (p - k):
            rest = rest @ inverse_root(rest.T @ rest / m, 1e-12)
        y = self.responses(index, rng)
        rows = [np.column_stack([index, side * rest, y]) for side in (1.0, -1.0)]
        return Records(np.concatenate(rows), np.zeros(2 * m))

    @abstractmethod
    def responses(self, index: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Of records with these coordinates along the true directions."""

    @abstractmethod
    def places(self, y: FloatArray) -> IntArray:
        """The piece of each response."""

    def distance(self, outcome: Any) -> float:
        return subspace_distance(outcome.directions, np.eye(self.n_directions, self.n_features))

    def plain_distance(self, points: Records, counts: FloatArray) -> float:
        p, k = self.n_features, self.n_directions
        task = replace(self.fit, n_features=p)
        found = task.plain_directions(points, counts, self.places(points.x[:, p:]), k)
        return subspace_distance(found, np.eye(k, p))


def pieces_of(y: FloatArray, pieces: int) -> IntArray:
    """The piece of each number, as many numbers in every piece."""
    return np.asarray(np.argsort(np.argsort(y, kind="stable"), kind="stable") * pieces // len(y), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class SeveralResponses(CellPopulation):
    """Responses that each move with one direction, which explains the part `signal` of it."""

    meaning: ClassVar[str] = "how much of each response one of them explains"

    @property
    def shown(self) -> int:
        return int(self.fit.n_targets)

    def responses(self, index: FloatArray, rng: np.random.Generator) -> FloatArray:
        own = index[:, np.arange(self.fit.n_targets) % index.shape[1]]
        return np.asarray(np.sqrt(self.signal) * own + np.sqrt(1.0 - self.signal) * rng.standard_normal(own.shape))

    def places(self, y: FloatArray) -> IntArray:
        return np.stack([pieces_of(of_one, self.fit.ranking.pieces[0]) for of_one in y.T], axis=1)


@dataclass(eq=False, repr=False)
class CellReducer(LinkedReducer):
    """Plan and records of estimators whose response is several columns."""

    def explain(self, n_samples: int, n_features: int, n_targets: int = 2) -> Explanation:
        """The plan before any data: every release, what it costs and how much noise it gets."""
        return self._explain(n_samples, n_features, lambda p, n: self._cells(p, n_targets, n))

    def _read(self, X: Any, y: Any, response_kind: ResponseKind | None = None, unit: Unit = RECORD) -> Source:
        return paired_source(self, X, y, unit)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> CellTask:
        p = int(self.n_features_in_)
        return self._cells(p, n_features - p, n_records)

    def _cells(self, n_features: int, n_targets: int, n_records: int | None) -> CellTask:
        """What is public about a fit of so many columns, every parameter checked."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    yield Attack("PrivateMultiSIR", PrivateMultiSIR(**known), 4, two_tables=True)
    yield Attack(
        "PrivateMultiSIR, bounds found", PrivateMultiSIR(**finding(known)), 4, two_tables=True, replay_only=True
    )


@dataclass(eq=False, repr=False)
class PrivateMultiSIR(CellReducer):
    """Directions of x that explain several responses together, without revealing any one record.

    What x explains of a table of responses is more than what it explains of each: two responses of which neither
    depends on x may depend on each other the more, the larger x is. Projective resampling (Li, Wen and Zhu 2008) sees
    all of it, by averaging SIR over many linear combinations of the responses. Here all of them are asked at once, at
    the price of one: the average is a single bounded sum.

    Parameters
    ----------
    epsilon, delta, n_directions, bounds, relation, rows_per_person, rho, ledger, random_state
        As in `PrivateSIR`; the bounds are those of x. Of responses nothing need be known: they enter by their ranks.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Unit rows, in the units of x, most explaining first; the first response rises with each.
    eigenvalues_ : ndarray of shape (n_directions,)
        Part of the variance of a function of the responses that the direction explains.
    standard_errors_, privacy_errors_, loadings_, loadings_errors_, choice_, verdict_, mean_, scale_, bounds_, ledger_
        As in `PrivateSIR`.
    y_feature_names_in_ : ndarray of str
        Names of the responses, where their table has them.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivateMultiSIR
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(20_000, 5)), rng.normal(size=(20_000, 2))
    >>> together = np.tanh(2 * x[:, 1])  # how the responses go together; each by itself is noise
    >>> y = np.column_stack([noise[:, 0], together * noise[:, 0] + np.sqrt(1 - together**2) * noise[:, 1]])
    >>> sir = PrivateMultiSIR(epsilon=1.0, n_directions=1, bounds=Bounds(-5, 5)).fit(x, y)
    >>> bool(abs(sir.directions_[0, 1]) > 0.98), round(sir.ledger_.total(), 6)
    (True, 1.0)
    """

    about: ClassVar[About] = About(
        title="Private sliced inverse regression of several responses",
        page="methods/multi-sir.md",
        options=("second", "q"),
        method=lambda fitted: f"projective resampling by {WORDS['descent']}",
        federated=False,
        parameters=PARAMETERS,
        released=LINKED,
        attacks=_attacks,
    )

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Find the directions of X (n, p) that explain the responses y (n, q), numbers of any scale.

        X may be a Source that names them: ``sfumato.scan(path, second=["a", "b"])``, without y. `groups` says whose
        row it is, as in `PrivateSIR.fit`.
        """
        return self._fit(open_session(self, X, y, groups))

    def _cells(self, n_features: int, n_targets: int, n_records: int | None) -> MultiTask:
        if not is_whole(n_targets, 1, MOST_RESPONSES):
            raise InputError(
                f"y has {n_targets!r} responses; PrivateMultiSIR takes at most {MOST_RESPONSES}: leave some out, or "
                "use PrivateCCA."
            )
        k, bounds = directions_of(self.n_directions, n_features), location_of(self, n_features, n_records)
        return MultiTask(n_features, n_records, Response(), k, bounds, n_targets=n_targets)
