"""PrivateSparseSIR: sliced inverse regression when there are more features than records, and few of them matter."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.bounds import Bounds, GivenBounds, PartialBounds
from sfumato.errors import InputError
from sfumato.forecast.populations import IndexResponse, Population, missed_distance
from sfumato.forecast.prospect import Prospect
from sfumato.forecast.stand_in import StandIn
from sfumato.methods.about import (
    CLASSES,
    EXPLAINING_OPTIONS,
    NAMES,
    PARAMETERS,
    SUPPORT,
    About,
    Attack,
    check_support,
    finding,
    method_among,
    number_or,
    searching,
)
from sfumato.methods.base import known_of, open_session
from sfumato.methods.parameters import chosen_method, directions_of, share_of
from sfumato.methods.sir import PICTURE_SHARE, PICTURED, RELEASED, WORDS, Outcome, PrivateSIR, Task, solve, with_picture
from sfumato.privacy.asking import Asking, drive, on_columns
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Gaussian, Selection
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.mechanisms import gaussian_std
from sfumato.privacy.parameters import budget_of
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.release import Release
from sfumato.schema import array, known_number, optional, places, record
from sfumato.sources import ResponseKind
from sfumato.statistics.columns import OnColumns
from sfumato.steps.descent import FOUR_STEPS, Descent, Schedule
from sfumato.steps.location import settled
from sfumato.steps.quantiles import Quantiles, Spans
from sfumato.steps.ranks import Ranks
from sfumato.steps.screening import Rule, Screen, Screening, contrasts
from sfumato.steps.shape import RoughShape
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation

SHARES = {
    "slices": 0.06,
    "picks": 0.24,
    "scores": 0.06,
    "location": 0.12,
    "radius": 0.02,
    "residual": 0.03,
    "shape": 0.12,
    "solve": 0.40,
}
"""Parts of the zCDP cost; relative, as in `pipeline.SHARES`."""
SMALL = Schedule(shares=(1.0, 1.0, 1.0, 2.0), sized=(2, 3, 4), levels=(0.7, 0.7), fading=1.0)
"""For a few thousand records: later steps gain less, and a larger part of the residuals is kept whole."""
SMALL_TABLE = 10_000
USUAL_PICKS = 6
ACTIVE = 3
WIDEST = 50_000
"""Most features for which a forecast is quick."""


@dataclass(frozen=True, slots=True)
class SparseTask:
    """What is public about a sparse fit. `n_records` is None where the number is private."""

    n_features: int
    n_records: int | None
    response: Response
    n_directions: int | None
    known: PartialBounds
    picks: int
    picture: float = 0.0
    rule: Rule = field(default_factory=Rule)

    @property
    def schedule(self) -> Schedule:
        """Steps of the descent: fewer for a small table."""
        return SMALL if self.n_records is None or self.n_records < SMALL_TABLE else FOUR_STEPS

    @property
    def slicing(self) -> Quantiles:
        return Quantiles(self.response, SHARES["slices"])

    @property
    def screening(self) -> Screening:
        return Screening(self.picks, SHARES["picks"], SHARES["scores"], self.rule)

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""
        spans = (Spans(self.picks, SHARES["location"]),) if self.known.unknown.size else ()
        shape = RoughShape(SHARES["radius"], SHARES["shape"])
        descent = Descent(self.schedule, SHARES["solve"], SHARES["residual"])
        return Plan.of(*with_picture(self.picture, self.slicing, self.screening, *spans, shape, descent))

    def prospect(self) -> Prospect:
        """The one honest method, on records of which three features matter."""
        return Prospect((("screen", self),), FewActiveFeatures(self.n_features))


@dataclass(frozen=True, slots=True)
class FewActiveFeatures(Population):
    """Independent features, three of which make up an index that explains the part `signal` of the response.

    The loss without privacy is that of SIR on those three alone: with more features than records there is no other.
    Thousands of features that are all alike need no points: their scores have a known law, and the descent then runs
    on a stand-in for the features that were kept.
    """

    meaning: ClassVar[str] = "how much of y three features explain"

    @property
    def quick(self) -> bool:
        return ACTIVE < self.n_features <= WIDEST

    def settle(self, fit: SparseTask, n_records: int | None, mu: float) -> SparseTask:
        searched = PartialBounds.nothing(self.n_features)
        known = searched if fit.known.unknown.size else PartialBounds.of(Bounds(-3.0, 3.0), self.n_features)
        return replace(fit, n_features=self.n_features, n_records=n_records, n_directions=1, known=known)

    def losses(
        self, fit: SparseTask, plan: Plan, n: float, relation: Relation, rng: np.random.Generator
    ) -> tuple[float, float]:
        three = IndexResponse(ACTIVE, 1, self.signal)
        door = StandIn.of(three.points(rng), n, plan, relation, rng)
        ranks = drive(Quantiles(Response()).run(), door)
        plain = three.plain_distance(*door.points)
        scores = _ScoreDoor(self._scores(ranks, n, rng), plan, relation, rng)
        kept = drive(fit.screening.run(np.zeros(self.n_features), ranks, n, 1), scores).kept
        found = int((kept < ACTIVE).sum())
        if found == 0 or len(kept) == 1:
            return missed_distance(found, ACTIVE, 0.0), plain
        # What the features that were missed would have explained is noise to the descent.
        seen = IndexResponse(len(kept), 1, self.signal * found / ACTIVE)
        door = StandIn.of(seen.points(rng), n, plan, relation, rng)
        bounds = Bounds(-seen.box, seen.box)
        inner = Task(len(kept), fit.n_records, Response(), 1, bounds, schedule=fit.schedule)
        ranks = drive(Quantiles(Response()).run(), door)
        outcome = drive(solve(inner, ranks, settled(bounds, len(kept))), door)
        return missed_distance(found, ACTIVE, seen.distance(outcome)), plain

    def _scores(self, ranks: Ranks, n: float, rng: np.random.Generator) -> FloatArray:
        """Sums over n records of functions of y times signs of x: sampling error, and for the active features, which
        come first and are all alike, a mean. The error is that of a feature that does not matter: a little more."""
        points = IndexResponse(ACTIVE, 1, self.signal).points(rng)
        table = contrasts(ranks)
        f, index = table[ranks.bins.index(points)], points.x[:, 0]
        # A feature that is one of three equal parts of the index, and independent of the rest of it.
        part = np.sqrt(1.0 / ACTIVE) * index + np.sqrt(1.0 - 1.0 / ACTIVE) * points.x[:, 1]
        spread = np.linalg.cholesky(n * (table.T @ table) / len(table) + 1e-9 * np.eye(table.shape[1]))
        scores = spread @ rng.standard_normal((table.shape[1], self.n_features))
        scores[:, :ACTIVE] += n * (f.T @ np.sign(part) / len(f))[:, None]
        return np.asarray(scores)


class _ScoreDoor:
    """The door as `screen` sees it: exact scores are known, picks and released scores get the noise of the plan."""

    def __init__(self, scores: FloatArray, plan: Plan, relation: Relation, rng: np.random.Generator) -> None:
        self._scores, self._plan, self._relation, self._rng = scores, plan, relation, rng

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """The largest scores under Gumbel noise."""
        event = self._plan.line(name).event
        assert isinstance(event, Selection)
        scale = 2.0 * query.peak(self._relation) * float(query.grid.max()) / event.epsilon
        noisy = np.abs(self._scores).max(axis=0) + self._rng.gumbel(scale=scale, size=self._scores.shape[1])
        return np.argsort(-noisy)[: event.picks]

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The scores of the picked features, with Gaussian noise."""
        event = self._plan.line(name).event
        assert isinstance(event, Gaussian) and isinstance(query, OnColumns)
        std = np.broadcast_to(gaussian_std(query, self._relation, event) * query.grid, query.shape)
        return Release(self._scores[:, query.columns] + std * self._rng.standard_normal(query.shape), std)


def usual_picks(n_records: int | None, n_features: int, budget: Budget, n_directions: int | None) -> int:
    """How many features to pick: as many as can be told from noise, 4 to 8; from public numbers alone.

    Picks of zCDP cost rho in all need Gumbel noise of scale ``sqrt(2 picks / rho)`` on scores of up to n; the largest
    of p such noises is ``log p`` scales. That is kept below a fifth of n.
    """
    least = max(4, n_directions or 0)
    if n_records is None:
        return min(n_features, max(least, USUAL_PICKS))
    rho = SHARES["picks"] / sum(SHARES.values()) * min(budget.mu(), 1e6) ** 2 / 2.0  # huge budgets: no overflow
    most = rho * (0.2 * n_records / (np.log(n_features) + 2.0)) ** 2 / 2.0
    return min(n_features, max(least, int(min(most, 8.0))))


def run_sparse(task: SparseTask) -> Asking[tuple[Outcome, Screen]]:
    """Walk the plan; the outcome is about all features again."""
    ranks = yield from task.slicing.run()
    n = float(task.n_records) if task.n_records is not None else max(ranks.total, 10.0 * task.picks)
    centre = np.nan_to_num(task.known.lower / 2 + task.known.upper / 2)
    found = yield from task.screening.run(centre, ranks, n, task.n_directions or 1)
    bounds = yield from _kept_bounds(task.known, found.kept)
    small = Task(
        len(found.kept),
        task.n_records,
        task.response,
        task.n_directions,
        bounds,
        picture=task.picture,
        schedule=task.schedule,
    )
    outcome = yield from on_columns(solve(small, ranks, settled(bounds, len(found.kept)), tested=False), found.kept)
    return spread(outcome, task.known, found.kept), found


def _kept_bounds(known: PartialBounds, columns: IntArray) -> Asking[Bounds]:
    """The bounds of some features: those that are known, and the others found privately."""
    lower, upper = known.lower[columns], known.upper[columns]
    unknown = np.flatnonzero(np.isnan(lower))
    if unknown.size:
        found = yield from Spans(unknown.size, 1.0).run(columns[unknown])
        lower[unknown], upper[unknown] = found.lower, found.upper
    return Bounds(lower, upper)


def some_bounds(bounds: Bounds, columns: IntArray) -> Bounds:
    """The bounds of some features."""
    lower, upper = (bound if bound.ndim == 0 else bound[columns] for bound in (bounds.lower, bounds.upper))
    return Bounds(lower, upper)


def spread(outcome: Outcome, known: PartialBounds, columns: IntArray) -> Outcome:
    """The outcome with zeros for features that were not kept; their centre and scale are those of the bounds."""
    p, found = known.n_features, outcome.located.bounds
    lower, upper = np.nan_to_num(known.lower, nan=-1.0), np.nan_to_num(known.upper, nan=1.0)
    lower, upper = (spread_columns(*both) for both in ((lower, columns, found.lower), (upper, columns, found.upper)))
    public = Bounds(lower, upper).grid(p)
    return Outcome(
        spread_columns(np.zeros((len(outcome.directions), p)), columns, outcome.directions),
        outcome.fit,
        outcome.ranks,
        settled(Bounds(lower, upper), p),
        spread_columns(public.centre, columns, outcome.centre),
        spread_columns(public.half_width, columns, outcome.scale),
        outcome.picture,
        outcome.belief,
        outcome.solver,
    )


def spread_columns(into: FloatArray, columns: IntArray, values: FloatArray) -> FloatArray:
    """A copy with the last axis' `columns` replaced."""
    filled = into.copy()
    filled[..., columns] = values
    return filled


METHODS = ("auto", "screen")


SCREEN = record(
    Screen,
    kept=places("s", "p", ordered=True),
    picked=places("picked", "p"),
    scores=array("picked"),
    threshold=known_number,
)


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    yield Attack("PrivateSparseSIR screen", PrivateSparseSIR(**known, max_features=2, method="screen"), n_features=6)
    yield Attack("PrivateSparseSIR, bounds found", PrivateSparseSIR(**searching(known), max_features=2), n_features=6)
    classes = PrivateSparseSIR(**finding(known), method="screen", classes=NAMES)
    yield Attack("PrivateSparseSIR, classes", classes, 6, NAMES, replay_only=True)


class PrivateSparseSIR(PrivateSIR):
    """Directions of x that explain y when x has thousands of features, without revealing any one record.

    The features that move with y are picked privately by the signs of x alone, how many of them matter is found
    from their released scores, and the directions come from a descent on those few columns. The cost of picking
    grows with the logarithm of the number of features only.

    Parameters
    ----------
    epsilon, delta : float
        The total privacy budget of everything that touches the data.
    n_directions : int or "auto"
        "auto" counts the singular values that stand out of the known noise; this costs nothing.
    bounds : Bounds, mapping, "search" or None
        Range of each feature, known without looking at the data. A sign is that of the difference from the *middle*
        of the bounds: choose it near the typical value. None: signs are those of the features themselves, and location
        and scale are found privately, on the picked features only.
    method : {"auto", "screen"}
        "auto" is "screen"; `explain` forecasts its loss. With few features and many records `PrivateSIR` needs no
        screening. The papers' own methods are in `sfumato.research`.
    max_features : int or "auto"
        Features to pick; those of them that stand out of the noise are kept. "auto" chooses from the number of
        records (if public), of features and the budget: 4 to 8.
    relation, rows_per_person, rho, classes, picture, ledger, random_state
        As in `PrivateSIR`.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Unit rows, zero outside `support_`.
    support_ : ndarray of int
        Columns kept, in increasing order.
    screen_ : Screen or None
        Columns picked (best first), their released scores and the threshold they had to pass.
    standard_errors_, privacy_errors_, loadings_, loadings_errors_, eigenvalues_, choice_, verdict_
        As in `PrivateSIR`, for the features kept; which ones are is not part of the errors. There are no p-values: the
        features were kept for what they have to do with y.
    mean_, scale_, bounds_, ledger_, picture_
        As in `PrivateSIR`; of features that were not kept nothing was learnt, so `mean_` and `scale_` are middle and
        half width of their bounds (0 and 1 without bounds).

    Examples
    --------
    >>> from sfumato import PrivateSparseSIR, Bounds, subspace_distance
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=2000, p=1500, high_dimensional=True, random_state=0)
    >>> sir = PrivateSparseSIR(epsilon=1.0, delta=1e-4, n_directions=1, bounds=Bounds(-1.5, 1.5))
    >>> sir = sir.fit(sample.x, sample.y)
    >>> bool(subspace_distance(sir.directions_, sample.directions) < 0.5), set(sir.support_) >= {0, 1}
    (True, True)
    >>> sir.ledger_.total() <= 1.0
    True
    """

    about: ClassVar[About] = About(
        title="Private sparse sliced inverse regression",
        page="methods/screen.md",
        options=(*EXPLAINING_OPTIONS, "method", "picture", "max_features"),
        method=lambda fitted: f"sign screening, then {WORDS['descent']}",
        parameters=PARAMETERS | method_among(METHODS) | {"max_features": number_or("auto")} | CLASSES | PICTURED,
        released=RELEASED | SUPPORT | {"screen": optional(SCREEN)},
        finish=check_support,
        attacks=_attacks,
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_directions: int | str = "auto",
        bounds: GivenBounds = None,
        method: str = "auto",
        *,
        max_features: int | str = "auto",
        relation: str = "replace",
        rows_per_person: int | None = None,
        rho: float | None = None,
        classes: Sequence[Any] | None = None,
        picture: bool | float = False,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            n_directions,
            bounds,
            method,
            relation=relation,
            rows_per_person=rows_per_person,
            rho=rho,
            classes=classes,
            picture=picture,
            ledger=ledger,
            random_state=random_state,
        )
        self.max_features = max_features

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, response_kind: ResponseKind | None = None) -> Self:
        """Find the features that matter and the directions; parameters as in `PrivateSIR.fit`."""
        session = open_session(self, X, y, groups, response_kind=response_kind)
        task = self._sparse_task(session.source.n_features, session.n_records, session.source.response)
        outcome, screened = drive(run_sparse(task), session.open(task))
        self.screen_: Screen | None = screened
        self.support_ = screened.kept
        self._keep(outcome, session.ledger)
        return self

    def _wide(self, rows: FloatArray) -> FloatArray:
        """Zero for features that were not kept."""
        return spread_columns(np.zeros((len(rows), len(self.mean_))), self.support_, rows)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Any:
        return self._sparse_task(n_features, n_records, response)

    def _sparse_task(self, n_features: int, n_records: int | None, response: Response) -> SparseTask:
        """What is public about this fit, every parameter checked."""
        known = known_of(self, n_features).with_binary(getattr(self, "_binary", ()))
        chosen_method(self, METHODS)
        directions = directions_of(self.n_directions, n_features)
        return SparseTask(
            n_features,
            n_records,
            response,
            directions,
            known,
            self._picks(n_features, n_records, directions),
            share_of(self.picture, PICTURE_SHARE),
        )

    def _picks(self, n_features: int, n_records: int | None, n_directions: int | None) -> int:
        if self.max_features == "auto":
            budget = budget_of(self.epsilon, self.delta, self.rho)
            return usual_picks(n_records, n_features, budget, n_directions)
        given = self.max_features
        if not isinstance(given, Integral) or isinstance(given, bool) or int(given) < (n_directions or 1):
            least = n_directions or 1
            raise InputError(f"max_features must be 'auto' or an integer of at least {least}, got {given!r}.")
        return min(int(given), n_features)
