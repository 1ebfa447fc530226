"""PrivateSIR: sliced inverse regression with a differential-privacy guarantee."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, cast, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import Bounds
from sfumato.errors import InputError
from sfumato.forecast.belief import Belief, choose_by_test, with_next
from sfumato.forecast.evidence import Evidence, Heard, Seen
from sfumato.forecast.populations import IndexResponse
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import (
    CLASSES,
    EXPLAINING,
    EXPLAINING_OPTIONS,
    NAMES,
    PARAMETERS,
    SCALE,
    About,
    Attack,
    finding,
    method_among,
    searching,
    verdict_of,
)
from sfumato.methods.base import Assessed, ExplainingReducer, ExplainingTask, half_widths, location_of, open_session
from sfumato.methods.inputs import chosen_method, directions_of, share_of
from sfumato.methods.prediction import Predicting
from sfumato.methods.reporting import draw_picture
from sfumato.privacy.asking import Asking
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.parameters import budget_of, relation_of
from sfumato.privacy.plan import Plan, Step
from sfumato.records import Response
from sfumato.schema import HUGE, Reader, array, given, known_number, optional, record, truth, word
from sfumato.sources import ResponseKind
from sfumato.statistics.whitening import Whitening
from sfumato.steps.descent import Descent, Fit, Schedule, schedule_of
from sfumato.steps.dimension import Choice
from sfumato.steps.links import Links, signs_of, unit_directions
from sfumato.steps.location import Located, Locating
from sfumato.steps.one_shot import SLICES, OneShot
from sfumato.steps.picture import Picture, Snapshot
from sfumato.steps.ranks import Ranking, Ranks
from sfumato.steps.shape import RoughShape, Shape
from sfumato.steps.sparsity import eliminate
from sfumato.steps.subspace import unit_rows
from sfumato.typing import FloatArray

Solver = Literal["descent", "one-shot"]
METHODS = ("auto", *get_args(Solver))
SHARES = {"ranks": 0.07, "radius": 0.03, "shape": 0.20, "solve": 0.69}
"""Parts of mu^2. A fit that skips a step (bounds given) has more for the others: shares are relative. A descent
has those of its schedule, and its steps have what is for shape and solution together less what the shape gets."""
CAPS = {"descent": 3.0, "one-shot": 1.0}
"""Longest whitened record that is kept, over the root of the number of features."""


@dataclass(frozen=True, slots=True)
class Task(ExplainingTask):
    """What is public about a fit."""

    method: Solver = "descent"
    picture: float = 0.0
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def walked(self) -> Schedule:
        """The schedule, if there are steps; a single question takes the usual bins of the response."""
        return self.schedule if self.method == "descent" else Schedule()

    @property
    def ranking(self) -> Ranking:
        share = self.walked.ranks if self.response.categories is None else SHARES["ranks"]
        return Ranking(self.response, share, self.walked.bins)

    @property
    def shape(self) -> RoughShape:
        if self.method == "one-shot":
            return RoughShape(SHARES["radius"], SHARES["shape"], CAPS[self.method])
        return RoughShape(self.schedule.radius, self.schedule.shape, CAPS[self.method], sparse=True)

    @property
    def solver(self) -> Descent | OneShot:
        if self.method == "one-shot":
            return OneShot(SHARES["solve"], min(len(self.schedule.weights), SLICES))
        rest = SHARES["shape"] + SHARES["solve"] - self.schedule.shape
        return Descent(self.schedule, rest, self.schedule.residual)

    def plan(self) -> Plan:
        """Every release the fit will make, with its share; the picture takes its own off the top."""
        return Plan.of(*with_picture(self.picture, Locating(self.bounds), self.ranking, self.shape, self.solver))

    def prospect(self) -> Prospect:
        """Both methods, on records whose response (or class) an index explains."""
        fits = tuple((method, replace(self, method=method)) for method in get_args(Solver))
        k, known = self.n_directions or 1, self.response.categories
        # Of declared classes the last code is that of all others; k + 1 undeclared ones can show k directions.
        classes = None if known is None else k + 1 if self.response.hashed else max(known - 1, 2)
        return Prospect(fits, IndexResponse(self.n_features, k, classes=classes))

    def run(self) -> Asking["Outcome"]:
        """Walk the plan."""
        located = yield from Locating(self.bounds).run(self.n_features, self.n_records)
        heard = Heard()
        ranks = yield from heard.of(self.ranking.run(self.n_records))
        return (yield from solve(self, ranks, located, heard))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a fit learnt, from releases alone. `centre` and `scale` are in the units of x.

    `belief` is what can be said about the directions themselves; None where nothing can.
    """

    directions: FloatArray
    fit: Fit
    ranks: Ranks
    located: Located
    centre: FloatArray
    scale: FloatArray
    picture: Picture | None
    belief: Belief | None = None
    solver: Solver | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """The same fit on records in half widths of its bounds; ranks are counted again if a line paid for that."""

    task: Task
    ranks: Ranks
    counted: bool

    def look(self) -> Asking[Links]:
        """The links that the number of directions is chosen by."""
        task, (ranks, n, shape) = self.task, (yield from self._shape(None))
        return (yield from task.solver.look(shape, ranks, n, task.n_directions))

    def run(self, n_directions: int, units: FloatArray | None = None) -> Asking[Seen]:
        """The whole fit, on records measured in other units (half widths)."""
        ranks, n, shape = yield from self._shape(units)
        fit = yield from self.task.solver.run(shape, ranks, n, n_directions)
        whitening = shape.whitening
        return Seen(
            shown_links(self.task, fit, ranks),
            ranks.probabilities,
            whitening.exact_matrix / whitening.source.half_width,
        )

    def _shape(self, units: FloatArray | None) -> Asking[tuple[Ranks, float, Shape]]:
        task, ranks = self.task, self.ranks
        if self.counted:
            counted = yield from task.ranking.count(ranks.bins, task.n_records)
            ranks = replace(counted, functions=ranks.functions)
        n = task.records_of(ranks)
        return ranks, n, (yield from task.shape.measure(half_widths(task.n_features, units), n))


def solve(
    task: Task, ranks: Ranks, located: Located, heard: Heard | None = None, *, tested: bool = True
) -> Asking[Outcome]:
    """The rest of the plan, once bounds and ranks are known.

    `heard` is what was released about the ranks; `tested` is False where the features were picked by what they have to
    do with y: a test would not know.
    """
    grid, heard = located.grid, heard or Heard()
    n = task.records_of(ranks)
    shape = yield from heard.of(task.shape.measure(grid, n))
    whitening = shape.whitening
    # In half widths: whatever was known of the bounds is not part of it.
    again = Again(replace(task, bounds=Bounds(-1.0, 1.0), picture=0.0), ranks, "ranks" in heard.lines)

    def chooser(first: Links) -> Choice:
        return choose_by_test(Evidence.of(heard, n, whitening, ranks, again, located.reading), first)

    automatic = tested and task.n_directions is None
    fit = yield from heard.of(task.solver.run(shape, ranks, n, task.n_directions, chooser if automatic else None))
    ordered = ranks.is_ordered or ranks.functions is not None  # cells are in the order of their first response
    signs = signs_of(fit.links, ranks.probabilities, fit.choice.n_directions, ordered)
    directions = unit_directions(fit.links, whitening.exact_matrix / grid.half_width, signs)
    evidence = Evidence.of(heard, n, whitening, ranks, again, located.reading)
    belief = Belief(evidence, fit.first, shown_links(task, fit, ranks), fit.choice, grid.half_width, signs, tested)
    picture = None
    if task.picture > 0:
        picture = yield from Snapshot(task.picture).run(whitening, ranks, fit.links.axes[:, 0] * signs[0])
    centre = grid.centre + whitening.mean * grid.half_width
    return Outcome(directions, fit, ranks, located, centre, _scale(whitening), picture, belief, task.method)


def shown_links(task: Task, fit: Fit, ranks: Ranks) -> Links:
    """All links that a fit shows, those that it keeps first."""
    if task.method != "descent":
        return fit.links
    return with_next(fit.first, fit.links, fit.choice.n_directions, ranks.probabilities)


def with_picture(part: float, *steps: Step) -> tuple[Step, ...]:
    """The steps of a fit, and a picture that takes a part of the budget off the top."""
    return steps if part == 0.0 else (*steps, Snapshot.taking(part, *steps))


def _scale(whitening: Whitening) -> FloatArray:
    """Released standard deviation of each feature: the root of the diagonal of ``(W^T W)^-1``."""
    inverse = whitening.inverse
    return np.asarray(np.linalg.norm(inverse, axis=1) * whitening.source.half_width)


PICTURE_SHARE = 0.05


def _framed(picture: Picture) -> bool:
    edges = (picture.direction_edges, picture.response_edges)
    increasing = all(len(edge) >= 2 and (np.diff(edge) > 0).all() for edge in edges)
    groups = len(picture.response_edges) - 1
    named = picture.response_values is None or len(picture.response_values) == groups
    cut = picture.response_cuts is None or len(picture.response_cuts) == groups + 1
    return increasing and named and cut and picture.counts.shape == tuple(len(edge) - 1 for edge in edges)


def _unit(rows: FloatArray) -> bool:
    return len(rows) <= rows.shape[1] and np.allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=0.0, atol=1e-6)


PICTURE = record(
    Picture,
    "framed by increasing edges, one more than counts on each side",
    _framed,
    counts=array("columns", "groups"),
    noise_std=known_number,
    direction_edges=array("column edges"),
    response_edges=array("group edges"),
    is_ordered=truth,
    response_values=optional(array("values", most=HUGE)),
    response_cuts=optional(array("cuts", most=HUGE)),
    score_scale=known_number,
)
PICTURED: dict[str, Reader] = {"picture": given(lambda value, sizes: share_of(value, PICTURE_SHARE))}
RELEASED: dict[str, Reader] = (
    EXPLAINING
    | SCALE
    | {
        "picture": optional(PICTURE),
        "directions": array("k", "p", must="rows of length one", holds=_unit),
        "privacy_errors": optional(array("k", "p", gaps=True, most=HUGE)),
        "loadings_errors": optional(array("k", "p", gaps=True, most=HUGE)),
        "verdict": optional(verdict_of),
        "solver": optional(word(get_args(Solver))),
    }
)
LINKED = {name: reader for name, reader in RELEASED.items() if name not in ("picture", "solver")}
"""What a model file holds of a `LinkedReducer` that has no picture and one solver."""
WORDS = {"descent": "residual descent", "one-shot": "one shot", None: ""}
"""What a report calls the solvers."""


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    for method in get_args(Solver):
        yield Attack(f"PrivateSIR {method}", PrivateSIR(**known, method=method))
    yield Attack("PrivateSIR, bounds found, picture", PrivateSIR(**searching(known), method="descent", picture=True))
    # Its choice must not tell how many records there are.
    yield Attack("PrivateSIR auto", PrivateSIR(**known), replay_only=True)
    classes = PrivateSIR(**finding(known), method="descent", classes=NAMES)
    yield Attack("PrivateSIR, classes", classes, responses=NAMES, replay_only=True)
    names = PrivateSIR(**known, method="one-shot")
    yield Attack("PrivateSIR, names", names, responses=NAMES, declared="categorical", replay_only=True)


@dataclass(eq=False, repr=False)
class LinkedReducer(Assessed, ExplainingReducer):
    """What a fit keeps whose directions are what functions of y depend on."""

    def _keep(self, outcome: Outcome, ledger: Ledger) -> None:
        self._keep_belief(outcome.belief)
        self.directions_ = outcome.directions
        self.mean_ = outcome.centre
        self.scale_ = outcome.scale
        self._keep_bounds(outcome.located)
        self.ledger_ = ledger

    @cached_property
    def loadings_(self) -> FloatArray:
        """What one standard deviation of each feature does."""
        return unit_rows(self.directions_ * self.scale_)

    @cached_property
    def loadings_errors_(self) -> FloatArray:
        """Root mean square error of `loadings_`."""
        return self._wide(self._assessment.errors.loadings)

    @cached_property
    def eigenvalues_(self) -> FloatArray:
        """Part of the variance of a function of y that each direction explains."""
        belief = self._assessment
        assert isinstance(belief, Belief)
        return belief.eigenvalues

    def sparse_directions(self, penalty: float | None = None) -> FloatArray:
        """`directions_` without the features that do not show, by backward elimination; costs nothing.

        Where most features do nothing this is much nearer to the truth, with privacy or without (`SIR` has it, too);
        where all do something it loses the weakest. See `sfumato.steps.sparsity`. It needs the fit itself, not a
        model file.

        Parameters
        ----------
        penalty : float, optional
            For each feature that is kept, in squared errors; by default ``k + 2 log p``.

        Returns
        -------
        ndarray of shape (n_directions, n_features)
            Unit rows in the units of x, zero in the same features; scores along them may be correlated.
        """
        check_is_fitted(self)
        belief = self.__dict__.get("_belief")
        if not isinstance(belief, Belief):
            raise InputError("sparse_directions: a model file does not hold what it needs; ask right after the fit.")
        back = np.linalg.pinv(belief.own.to_z) * belief.half_width[:, None]
        rows = belief.in_x(belief.own) * belief.signs[:, None]
        return self._wide(eliminate(rows, belief.errors.directions, back @ back.T, penalty))


@dataclass(eq=False, repr=False)
class PrivateSIR(Predicting, LinkedReducer):
    """Directions of x that explain y, without revealing any one record.

    Parameters
    ----------
    epsilon, delta : float
        The total privacy budget of everything that touches the data, found bounds and pictures included.
    n_directions : int or "auto"
        "auto" keeps those that a test finds, at least one; this costs nothing (see `choice_`).
    bounds : Bounds, mapping, list, "search" or None
        Range of each feature, or of some (``{"age": (0, 120), "grade": range(1, 8)}``, by name or position), known
        without looking at the data. The others are found privately and charged to the same budget; of columns of true
        and false, and of ranges of integers, nothing is bought. If there are too few records to find them, `fit`
        refuses before anything is spent; "search", for all features or as the value of some, goes on all the same.
    method : {"auto", "descent", "one-shot"}
        "descent" asks several small questions, each with less noise than the last; "one-shot" asks once.
        "auto" takes the one with the least expected loss, forecast from public numbers alone: "descent",
        but for a few hundred records or a tiny budget; over sites, at the noise they add. Where the number of records
        is private it chooses nothing: "descent". The papers' own methods are in `sfumato.research`.
    relation : {"replace", "add-remove"}
        Neighbouring data sets differ by replacing one record (the number of records is public), or by adding or
        removing one (it is private, and never used).
    rows_per_person : int, optional
        Protect persons, not records: of each person the first so many rows count, and noise grows as their number.
        Give the ids to ``fit(..., groups=ids)`` or ``scan(..., person=...)``; 1 if they are given and this is not.
        Without ids it declares that nobody has more rows, which is not checked. The number of rows is then private.
    rho : float, optional
        A zCDP budget; replaces (epsilon, delta) if given.
    classes : sequence, optional
        Public list of the categories of y; others share one class. Without it, numbers and booleans are numeric,
        and the categories of a text response are found privately.
    picture : bool or float
        Reserve a share of the budget (0.05 if True) for `summary_plot`, `predict` and `predict_interval` (of classes
        `predict_proba`).
    ledger : Ledger, optional
        A ledger with a cap shared by several runs; a run that would pass it is refused before a record is read.
    random_state : int, optional
        Seeded noise, for rehearsal only: the guarantee is void, as the ledger says. None: cryptographic noise.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Unit rows, in the units of x, most explaining first. Scores along them are uncorrelated under the released
        covariance, and y rises with each; of classes the second of two has the larger scores.
    standard_errors_, privacy_errors_ : ndarray of shape (n_directions, n_features)
        Root mean square error of `directions_`, and the part of it that privacy noise alone makes.
    loadings_, loadings_errors_ : ndarray of shape (n_directions, n_features)
        What one standard deviation of each feature does, rows of length one, and its root mean square error.
    eigenvalues_ : ndarray of shape (n_directions,)
        Part of the variance of a function of y that the direction explains; bias by noise and clipping is removed.
    choice_ : Choice
        The number of directions, why, and `p_values` of the singular values.
    verdict_ : Verdict
        Whether the fit would come out the same again: `level`, "reliable" (all directions), "weak" or "noise",
        `levels` of single directions, and a `sentence`.
    mean_, scale_ : ndarray of shape (n_features,)
        Released centre and standard deviation of the (clipped) features.
    bounds_ : Bounds
        Those given, or those found.
    box_ : Bounds
        The part of the bounds, by the spread found inside, in which values count as they are. Beyond it they count as
        its ends in the fit, and by the root of their distance from there in scores (`transform`).
    unseen_features_ : ndarray
        Names (or positions) of features of which no spread was seen: constants, or rare values that do not show
        through the noise. Their scale is a guess, wide rather than narrow.
    unseen_classes_ : tuple
        Declared classes whose noisy count does not show through its noise: spelled otherwise, perhaps, or rare. Known
        right after a fit; a model file does not keep it.
    ledger_ : Ledger
        Every release with purpose, sensitivity, noise and cost; ``ledger_.guarantee`` is the privacy statement.
    picture_ : Picture or None
        Noisy counts behind `summary_plot`.
    solver_ : {"descent", "one-shot"}
        How the directions were found: the method, or what "auto" chose from public numbers.

    Notes
    -----
    The guarantee covers everything set by ``fit``. ``transform`` returns values of the records handed to it: they
    are the caller's own and are not private.

    Errors, p-values, eigenvalues and the verdict are worked out from the releases when they are first asked for: the
    fit is made again on stand-ins for the population that the releases describe (`sfumato.forecast.belief`), which
    takes a few seconds. They say how far a fresh sample and fresh noise would move the result, not how far clipping
    moves it from SIR without privacy.

    Examples
    --------
    >>> from sfumato import PrivateSIR, Bounds, subspace_distance
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=20_000, p=10, random_state=0)
    >>> sir = PrivateSIR(epsilon=1.0, delta=1e-6, bounds=Bounds(-1.5, 1.5)).fit(sample.x, sample.y)
    >>> sir.directions_.shape
    (1, 10)
    >>> bool(subspace_distance(sir.directions_, sample.directions) < 0.2)
    True
    >>> round(sir.ledger_.total(), 6)
    1.0
    """

    method: str = "auto"
    _: KW_ONLY
    classes: Sequence[Any] | None = None
    picture: bool | float = False

    about: ClassVar[About] = About(
        title="Private sliced inverse regression",
        page="methods/descent.md",
        options=(*EXPLAINING_OPTIONS, "method", "picture"),
        method=lambda fitted: WORDS[fitted.solver_],
        parameters=PARAMETERS | method_among(METHODS) | CLASSES | PICTURED,
        released=RELEASED,
        attacks=_attacks,
    )

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, response_kind: ResponseKind | None = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array, dataframe, Arrow table, or Source
            Features; or the result of `sfumato.scan`, which names its own response.
        y : array or series
            Response: numbers of any scale, booleans, or categories.
        groups : array or series, optional
            Whose row it is: the fit then protects persons (see `rows_per_person`).
        response_kind : {"numeric", "categorical"}, optional
            What y is, if it is not to be taken from the type of its column, which counts as public.
        """
        return self._fit(open_session(self, X, y, groups, response_kind))

    def summary_plot(self, ax: Any = None) -> Any:
        """Heat map of the first direction against the response: counts paid for in the plan, no record is drawn.

        Needs ``picture=True`` (or a share) before ``fit``, and matplotlib. Returns the matplotlib axes.
        """
        check_is_fitted(self)
        if self.picture_ is None:
            raise InputError("picture: no picture was bought; fit again with picture=True.")
        return draw_picture(self.picture_, ax)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Task:
        """What is public about this fit, every parameter checked."""
        method = chosen_method(self, METHODS)
        directions = directions_of(self.n_directions, n_features)
        share = share_of(self.picture, PICTURE_SHARE)
        kind: Solver = "one-shot" if method == "one-shot" else "descent"
        bounds = location_of(self, n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.rho)
        schedule = schedule_of(n_features, n_records, budget.mu(), response.categories is None)
        task = Task(n_features, n_records, response, directions, bounds, kind, share, schedule)
        if method != "auto":
            return task
        return replace(task, method=cast(Solver, task.prospect().best(budget, n_records, relation_of(self.relation))))

    def _keep(self, outcome: Outcome, ledger: Ledger) -> None:
        super()._keep(outcome, ledger)
        self.picture_: Picture | None = outcome.picture
        self.solver_: Solver | None = outcome.solver
