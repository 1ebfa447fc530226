"""PrivateSparseSIR: sliced inverse regression when there are more features than records, and few of them matter."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds import Bounds, PartialBounds
from sfumato.errors import InputError
from sfumato.forecast.populations import IndexResponse, Population, missed_distance
from sfumato.forecast.prospect import Prospect
from sfumato.forecast.screened import ScreenedBelief
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
from sfumato.methods.base import known_of
from sfumato.methods.inputs import chosen_method, directions_of, share_of
from sfumato.methods.sir import PICTURE_SHARE, PICTURED, RELEASED, WORDS, Outcome, PrivateSIR, Task, solve, with_picture
from sfumato.privacy.asking import Asking, drive, on_columns
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Gaussian, Selection
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.mechanisms import gaussian_std, gumbel_scale
from sfumato.privacy.parameters import budget_of
from sfumato.privacy.plan import Plan
from sfumato.records import Records, Response
from sfumato.release import Release
from sfumato.schema import array, known_number, optional, places, record
from sfumato.statistics.scores import SignResiduals
from sfumato.steps.descent import FOUR_STEPS, Descent, Schedule
from sfumato.steps.location import Located, settled
from sfumato.steps.pursuit import Pursuit, Rule
from sfumato.steps.quantiles import Quantiles, Spans
from sfumato.steps.ranks import Ranks
from sfumato.steps.screening import Screen
from sfumato.steps.shape import RoughShape
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation, is_whole

SHARES = {
    "slices": 0.06,
    "picks": 0.40,
    "sums": 0.12,
    "location": 0.12,
    "radius": 0.02,
    "residual": 0.03,
    "shape": 0.10,
    "solve": 0.30,
}
"""Parts of the zCDP cost; relative, as in `sfumato.methods.sir.SHARES`."""
SMALL = Schedule(shares=(1.0, 1.0, 1.0, 2.0), sized=(2, 3, 4), levels=(0.7, 0.7), fading=1.0, sparse=True)
LARGE = replace(FOUR_STEPS, sparse=True)
"""For a few thousand records, where later steps gain less, and a larger part of the residuals is kept whole; and for
more."""
SMALL_TABLE = 10_000
USUAL_PICKS, MOST_PICKS = 8, 48
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
        return SMALL if self.n_records is None or self.n_records < SMALL_TABLE else LARGE

    @property
    def slicing(self) -> Quantiles:
        return Quantiles(self.response, SHARES["slices"])

    @property
    def screening(self) -> Pursuit:
        return Pursuit(self.picks, SHARES["picks"], SHARES["sums"], self.most_kept, self.rule)

    @property
    def most_kept(self) -> int:
        """Features that may be kept: where bounds must be found each of them costs, so two in three of the picks."""
        if not self.known.unknown.size:
            return self.picks
        return max(min(self.picks, 4), -(-2 * self.picks // 3), self.n_directions or 1)

    def plan(self) -> Plan:
        spans = (Spans(self.most_kept, SHARES["location"]),) if self.known.unknown.size else ()
        shape = RoughShape(SHARES["radius"], SHARES["shape"])
        descent = Descent(self.schedule, SHARES["solve"], SHARES["residual"])
        return Plan.of(*with_picture(self.picture, self.slicing, self.screening, *spans, shape, descent))

    def prospect(self) -> Prospect | None:
        """The one honest method, on records of which three features matter; none where y has classes."""
        if self.response.categories is not None:
            return None
        return Prospect((("screen", self),), FewActiveFeatures(self.n_features))

    def run(self) -> Asking[tuple[Outcome, Screen]]:
        """Walk the plan; the outcome is about all features again."""
        ranks = yield from self.slicing.run()
        n = float(self.n_records) if self.n_records is not None else max(ranks.total, 10.0 * self.picks)
        centre = np.nan_to_num(self.known.lower / 2 + self.known.upper / 2)
        found = yield from self.screening.run(centre, ranks, n, self.n_directions or 1)
        bounds = yield from _kept_bounds(self.known, found.kept)
        facts = (len(found.kept), self.n_records, self.response, self.n_directions, bounds)
        few = Task(*facts, picture=self.picture, schedule=self.schedule)
        located = settled(bounds, len(found.kept))
        return (yield from solve_kept(few, ranks, self.known, found.kept, located)), found


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
        scores = _SignDoor(three.points(rng), self.n_features, n, plan, relation, rng)
        kept = drive(fit.screening.run(np.zeros(self.n_features), ranks, n, 1), scores).kept
        found = int((kept < ACTIVE).sum())
        if found == 0 or len(kept) == 1:
            return missed_distance(found, ACTIVE, 0.0), plain
        # What the features that were missed would have explained is noise to the descent.
        seen, turn = IndexResponse(len(kept), 1, self.signal * found / ACTIVE), np.eye(len(kept))
        turn[:found, :found] = _evenly(found)  # slopes that may be zero are shrunk: it matters which features count
        points = seen.points(rng)
        door = StandIn.of(Records(points.x @ turn.T, points.y), n, plan, relation, rng)
        bounds = Bounds(-seen.box, seen.box)
        inner = Task(len(kept), fit.n_records, Response(), 1, bounds, schedule=fit.schedule)
        ranks = drive(Quantiles(Response()).run(), door)
        outcome = drive(solve(inner, ranks, settled(bounds, len(kept))), door)
        turned = replace(outcome, directions=outcome.directions @ turn)
        return missed_distance(found, ACTIVE, seen.distance(turned)), plain


def _evenly(size: int) -> FloatArray:
    """Coordinates in which the first one is an even sum of so many: an orthogonal matrix whose first column is even."""
    turn, _ = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))
    return np.asarray(turn * np.sign(turn[0, 0]))


class _SignDoor:
    """The door as the pursuit sees it, on n records of which three features are equal parts of an index.

    Of points that stand for the records their responses and the signs of these three are known. Thousands of other
    features need no points: their sums have the law of chance, the same draw of it while one function is pursued. The
    few of them that were picked get signs of their own, so that what is subtracted for them is seen.
    """

    def __init__(
        self, points: Records, n_features: int, n: float, plan: Plan, relation: Relation, rng: np.random.Generator
    ) -> None:
        self._records, self._n, self._plan, self._relation, self._rng = points, n, plan, relation, rng
        parts = np.sign(points.x @ _evenly(ACTIVE).T).astype(np.int8)
        self._columns: dict[int, NDArray[np.int8]] = dict(enumerate(parts.T))
        self._luck = np.empty(n_features)

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """The largest score under Gumbel noise."""
        event = self._plan.line(name).event
        assert isinstance(event, Selection) and isinstance(query, SignResiduals)
        if not len(query.support):  # another function, another chance
            self._luck = self._rng.standard_normal(len(self._luck))
        scores = np.abs(self._sums(query))
        scale = gumbel_scale(query, self._relation, event) * float(query.grid.max())
        return np.array([np.argmax(scores + self._rng.gumbel(scale=scale, size=len(scores)))])

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The sum of a picked feature, with Gaussian noise."""
        event = self._plan.line(name).event
        assert isinstance(event, Gaussian) and isinstance(query, SignResiduals)
        std = np.broadcast_to(gaussian_std(query, self._relation, event) * query.grid, query.shape)
        return Release(self._sums(query) + std * self._rng.standard_normal(query.shape), std)

    def _sums(self, query: SignResiduals) -> FloatArray:
        support = [self._column(int(a)) for a in query.support]
        signs = np.array(support, dtype=np.int8).reshape(len(support), len(self._records)).T
        r = query.residuals(query.bins.index(self._records), signs) * float(query.grid.max())
        sums = self._luck * np.sqrt(self._n * (r**2).mean())
        for a in range(ACTIVE):
            sums[a] += self._n * float((r * self._columns[a]).mean())
        return np.asarray(sums[query.columns])

    def _column(self, a: int) -> NDArray[np.int8]:
        if a not in self._columns:
            self._columns[a] = (2 * self._rng.integers(0, 2, len(self._records)) - 1).astype(np.int8)
        return self._columns[a]


def usual_picks(n_records: int | None, n_features: int, budget: Budget, n_directions: int | None) -> int:
    """How many features to pick: as many as can be told from noise; from public numbers alone.

    k features that matter alike score about ``0.4 n / sqrt(k)`` each. k picks of zCDP cost rho in all need Gumbel noise
    of scale ``4 / sqrt(8 rho / k)``, and the k-th largest of p such noises is ``log(p / k)`` scales: the largest k is
    taken whose scores reach that.
    """
    least = max(4, n_directions or 0)
    if n_records is None:
        return min(n_features, max(least, USUAL_PICKS))
    rho = SHARES["picks"] / sum(SHARES.values()) * min(budget.mu(), 1e6) ** 2 / 2.0  # huge budgets: no overflow
    k = np.arange(1, min(n_features, MOST_PICKS) + 1)
    seen = 0.4 * n_records / np.sqrt(k) >= 4.0 / np.sqrt(8.0 * rho / k) * np.log(n_features / k)
    return min(n_features, max(least, int(k[seen].max(initial=1))))


def solve_kept(few: Task, ranks: Ranks, known: PartialBounds, columns: IntArray, located: Located) -> Asking[Outcome]:
    """The descent on the features that were kept; the outcome is about all features again."""
    outcome = yield from on_columns(solve(few, ranks, located, tested=False), columns)
    return spread(outcome, known, columns)


def _kept_bounds(known: PartialBounds, columns: IntArray) -> Asking[Bounds]:
    """The bounds of some features: those that are known, and the others found privately."""
    lower, upper = known.lower[columns], known.upper[columns]
    unknown = np.flatnonzero(np.isnan(lower))
    if unknown.size:
        found = yield from Spans(unknown.size, 1.0).run(columns[unknown])
        lower[unknown], upper[unknown] = found.lower, found.upper
    return Bounds(lower, upper)


def spread(outcome: Outcome, known: PartialBounds, columns: IntArray) -> Outcome:
    """The outcome with zeros for features that were not kept; their centre and scale are those of the bounds."""
    p, found = known.n_features, outcome.located.bounds
    lower, upper = np.nan_to_num(known.lower, nan=-1.0), np.nan_to_num(known.upper, nan=1.0)
    lower, upper = (spread_columns(*both) for both in ((lower, columns, found.lower), (upper, columns, found.upper)))
    public = Bounds(lower, upper).grid(p)
    return replace(
        outcome,
        directions=spread_columns(np.zeros((len(outcome.directions), p)), columns, outcome.directions),
        located=settled(Bounds(lower, upper), p),
        centre=spread_columns(public.centre, columns, outcome.centre),
        scale=spread_columns(public.half_width, columns, outcome.scale),
    )


def spread_columns(into: FloatArray, columns: IntArray, values: FloatArray) -> FloatArray:
    """A copy with the last axis' `columns` replaced."""
    filled = into.copy()
    filled[..., columns] = values
    return filled


METHODS = ("auto", "screen", "blocks")
WHOLE = Rule(damping=1.0)
"""For features in blocks that tell about the same: once one is picked, the others have little left to show."""


SCREEN = record(
    Screen,
    kept=places("s", "p", ordered=True),
    picked=places("picked", "p"),
    scores=array("picked"),
    threshold=known_number,
)


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    yield Attack("PrivateSparseSIR screen", PrivateSparseSIR(**known, max_features=2, method="screen"), n_features=6)
    blocks = PrivateSparseSIR(**known, max_features=2, method="blocks")
    yield Attack("PrivateSparseSIR blocks", blocks, n_features=6)
    yield Attack("PrivateSparseSIR, bounds found", PrivateSparseSIR(**searching(known), max_features=2), n_features=6)
    classes = PrivateSparseSIR(**finding(known), method="screen", classes=NAMES)
    yield Attack("PrivateSparseSIR, classes", classes, 6, NAMES, replay_only=True)


@dataclass(eq=False, repr=False)
class PrivateSparseSIR(PrivateSIR):
    """Directions of x that explain y when x has thousands of features, without revealing any one record.

    The features that move with y are picked privately by the signs of x alone, one after another, each beside what
    those before explain; how many of them matter is found from their released scores, and the directions come from a
    descent on those few columns. The cost of picking grows with the logarithm of the number of features only.

    Parameters
    ----------
    epsilon, delta, relation, rows_per_person, rho, classes, picture, ledger, random_state
        As in `PrivateSIR`.
    n_directions : int or "auto"
        "auto" counts the singular values that stand out of the known noise; this costs nothing.
    bounds : Bounds, mapping, list, "search" or None
        Range of each feature, known without looking at the data. A sign is that of the difference from the *middle*
        of the bounds: choose it near the typical value. None: signs are those of the features themselves, and location
        and scale are found privately, on the picked features only.
    method : {"auto", "screen", "blocks"}
        "auto" is "screen"; `explain` forecasts its loss. "blocks" is for features in strongly correlated blocks (genes
        of one pathway, wavelengths, repeated measures) of which one or few matter: the whole effect of a pick is taken
        off before the next, not half of it. With few features and many records `PrivateSIR` needs no screening. The
        papers' own methods are in `sfumato.research`.
    max_features : int or "auto"
        Features to pick; those of them that stand out of the noise are kept. "auto" chooses from the number of
        records (if public), of features and the budget: 4 to 48.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Unit rows, zero outside `support_`.
    support_ : ndarray of int
        Columns kept, in increasing order.
    screen_ : Screen or None
        Columns picked (best first), their released scores in standard deviations of chance and noise together, and the
        threshold they had to pass.
    standard_errors_, privacy_errors_, loadings_, loadings_errors_, eigenvalues_, choice_, verdict_
        As in `PrivateSIR`, for the features kept; which ones are is not part of the errors. A direction is called
        reliable only if features kept by scores about as large would make up about the same one. There are no
        p-values: the features were kept for what they have to do with y.
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

    _: KW_ONLY
    max_features: int | str = "auto"

    about: ClassVar[About] = About(
        title="Private sparse sliced inverse regression",
        page="methods/screen.md",
        options=(*EXPLAINING_OPTIONS, "method", "picture", "max_features"),
        method=lambda fitted: f"sign screening one pick at a time, then {WORDS['descent']}",
        parameters=PARAMETERS | method_among(METHODS) | {"max_features": number_or("auto")} | CLASSES | PICTURED,
        released=RELEASED | SUPPORT | {"screen": optional(SCREEN)},
        finish=check_support,
        attacks=_attacks,
    )

    def _keep(self, outcome: Any, ledger: Ledger) -> None:
        found, screened = outcome
        self.screen_: Screen | None = screened
        if found.belief is not None:
            found = replace(found, belief=ScreenedBelief.of(found.belief, screened, self._rule))
        self.support_ = screened.kept
        super()._keep(found, ledger)

    def _wide(self, rows: FloatArray) -> FloatArray:
        """Zero for features that were not kept."""
        return spread_columns(np.zeros((len(rows), len(self.mean_))), self.support_, rows)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Any:
        """What is public about this fit, every parameter checked: a `SparseTask`."""
        known = known_of(self, n_features).with_binary(getattr(self, "_binary", ()))
        directions = directions_of(self.n_directions, n_features)
        picks, picture = self._picks(n_features, n_records, directions), share_of(self.picture, PICTURE_SHARE)
        return SparseTask(n_features, n_records, response, directions, known, picks, picture, self._rule)

    @property
    def _rule(self) -> Rule:
        return WHOLE if chosen_method(self, METHODS) == "blocks" else Rule()

    def _picks(self, n_features: int, n_records: int | None, n_directions: int | None) -> int:
        if self.max_features == "auto":
            budget = budget_of(self.epsilon, self.delta, self.rho)
            return usual_picks(n_records, n_features, budget, n_directions)
        given, least = self.max_features, n_directions or 1
        if not is_whole(given, least):
            raise InputError(f"max_features must be 'auto' or an integer of at least {least}, got {given!r}.")
        return min(int(given), n_features)
