"""PrivateSIR: sliced inverse regression with a differential-privacy guarantee."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from sklearn.utils.validation import check_is_fitted

from sfumato.bounds import GivenBounds
from sfumato.errors import InputError
from sfumato.estimators.auto import with_best_method
from sfumato.estimators.base import PrivateReducer, given_of, known_of, location_of
from sfumato.estimators.paper_fit import fit_paper
from sfumato.estimators.paper_methods import LOW, PaperTask, paper_task
from sfumato.estimators.parameters import CALIBRATIONS, budget_of, directions_of, one_of, relation_of, share_of
from sfumato.estimators.pipeline import Outcome, Task, run
from sfumato.estimators.session import open_session
from sfumato.iterate.picture import Picture
from sfumato.privacy.ledger import Ledger
from sfumato.records import Response

METHODS = ("auto", "descent", "one-shot", *LOW)
PICTURE_SHARE = 0.05


class PrivateSIR(PrivateReducer):
    """Directions of x that explain y, without revealing any one record.

    Parameters
    ----------
    epsilon, delta : float
        The total privacy budget of everything that touches the data, found bounds and pictures included.
    n_directions : int or "auto"
        "auto" counts the singular values that stand out of the known noise; this costs nothing.
    bounds : Bounds, mapping, "search" or None
        Range of each feature, or of some (``{"age": (0, 120), "grade": range(1, 8)}``, by name or position), known
        without looking at the data. The others are found privately and charged to the same budget; of columns of true
        and false, and of ranges of integers, nothing is bought. If there are too few records to find them, `fit`
        refuses before anything is spent; "search", for all features or as the value of some, goes on all the same.
    method : {"auto", "descent", "one-shot", "dp-ini", "dp-sir", "dp-sir-full", "rayleigh-flow"}
        "descent" asks several small questions, each with less noise than the last; "one-shot" asks once.
        "auto" takes the one with the least expected loss, by the planner and from public numbers alone: "descent",
        but for a few hundred records or a tiny budget; over sites, at the noise they add. Where the number of records
        is private it chooses nothing: "descent". For comparison: "dp-ini" and "dp-sir" are Algorithms B.4 and 2 of
        Xia, Zhang and Cai, "dp-sir-full" the latter with all records in every step, "rayleigh-flow" the iteration of
        Hu, Xiang, Liu and Wang (one direction).
    calibration : {"tight", "paper"}
        Of the paper's methods: correct noise under one total budget, or the printed noise, which gives no guarantee
        (the ledger says so and a `PrivacyWarning` is raised).
    relation : {"replace", "add-remove"}
        Neighbouring data sets differ by replacing one record (the number of records is public), or by adding or
        removing one (it is private, and never used).
    rho : float, optional
        A zCDP budget; replaces (epsilon, delta) if given.
    classes : sequence, optional
        Public list of the categories of y; others share one class. Without it, numbers and booleans are numeric,
        and the categories of a text response are found privately.
    picture : bool or float
        Reserve a share of the budget (0.05 if True) for `summary_plot`.
    ledger : Ledger, optional
        A ledger with a cap shared by several runs; a run that would pass it is refused before a record is read.
    random_state : int, optional
        Seeded noise, for rehearsal only: the guarantee is void, as the ledger says. None: cryptographic noise.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x, most explaining first.
    standard_errors_ : ndarray of shape (n_directions, n_features)
        What the known noise alone adds to the directions (first order; sampling error is not in it).
    eigenvalues_ : ndarray of shape (n_directions,)
        Part of the variance of a function of y that the direction explains, in [0, 1].
    mean_, scale_ : ndarray of shape (n_features,)
        Released centre and standard deviation of the (clipped) features.
    bounds_ : Bounds
        Those given, or those found.
    unseen_features_ : ndarray
        Names (or positions) of features of which no spread was seen: constants, or rare values that do not show
        through the noise. Their scale is a guess, wide rather than narrow.
    ledger_ : Ledger
        Every release with purpose, sensitivity, noise and cost; ``ledger_.guarantee`` is the privacy statement.
    picture_ : Picture or None
        Noisy counts behind `summary_plot`.

    Notes
    -----
    The guarantee covers everything set by ``fit``. ``transform`` returns values of the records handed to it: they
    are the caller's own and are not private.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_directions: int | str = "auto",
        bounds: GivenBounds = None,
        method: str = "auto",
        *,
        calibration: str = "tight",
        relation: str = "replace",
        rho: float | None = None,
        classes: Sequence[Any] | None = None,
        picture: bool | float = False,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_directions = n_directions
        self.bounds = bounds
        self.method = method
        self.calibration = calibration
        self.relation = relation
        self.rho = rho
        self.classes = classes
        self.picture = picture
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array, dataframe, Arrow table, or Source
            Features; or the result of `sfumato.scan`, which names its own response.
        y : array or series
            Response: numbers of any scale, booleans, or categories.
        """
        session = open_session(self, X, y)
        task = self._task(session.source.n_features, session.n_records, session.source.response)
        if isinstance(task, PaperTask):
            self._keep(fit_paper(task, session, self)[0], session.ledger)
        else:
            self._keep(run(task, session.curator(task)), session.ledger)
        return self

    def summary_plot(self, ax: Any = None) -> Any:
        """Heat map of the first direction against the response: counts paid for in the plan, no record is drawn.

        Needs ``picture=True`` (or a share) before ``fit``, and matplotlib. Returns the matplotlib axes.
        """
        from sfumato.report.plot import draw

        check_is_fitted(self)
        if self.picture_ is None:
            raise InputError("picture: no picture was bought; fit again with picture=True.")
        return draw(self.picture_, ax)

    def _task(self, n_features: int, n_records: int | None, response: Response) -> Task | PaperTask:
        """What is public about this fit, every parameter checked."""
        method = one_of("method", self.method, METHODS)
        one_of("calibration", self.calibration, CALIBRATIONS)
        directions = directions_of(self.n_directions, n_features)
        if method in LOW:
            given = given_of(known_of(self, n_features))
            return paper_task(method, n_features, n_records, response, directions, given)
        share = share_of(self.picture, PICTURE_SHARE)
        kind: Literal["descent", "one-shot"] = "one-shot" if method == "one-shot" else "descent"
        bounds = location_of(self, n_features, n_records)
        task = Task(n_features, n_records, response, directions, bounds, kind, share)
        if method != "auto":
            return task
        return with_best_method(task, budget_of(self.epsilon, self.delta, self.rho), relation_of(self.relation))

    def _keep(self, outcome: Outcome, ledger: Ledger) -> None:
        self.directions_ = outcome.spectrum.directions
        self.standard_errors_ = outcome.spectrum.standard_errors
        self.eigenvalues_ = outcome.fit.eigenvalues
        self.mean_ = outcome.centre
        self.scale_ = outcome.scale
        self._keep_bounds(outcome.located)
        self.choice_ = outcome.fit.choice
        self.picture_: Picture | None = outcome.picture
        self.ledger_ = ledger

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
