"""LabelPrivateIHT: sparse linear regression on public features and labels randomised by their owners."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InputError, PrivacyWarning
from sfumato.local.answers import LABEL_ONLY, Answers, LocalLedger, entry_of
from sfumato.local.randomisers import NumberRandomiser
from sfumato.methods.about import About
from sfumato.methods.base import REHEARSAL, DeviceEstimator
from sfumato.methods.inputs import device_unit, first_rows, fit_source, transform_array
from sfumato.privacy.parameters import noise_of
from sfumato.settings.central import one_blas_thread
from sfumato.typing import FloatArray, IntArray, is_whole


@dataclass(frozen=True, slots=True, eq=False)
class Squares:
    """Everything least squares needs of a table: ``x^T x``, ``x^T y``, ``y^T y``. Parts of a table add up."""

    gram: FloatArray
    cross: FloatArray
    square: float

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> "Squares":
        """Of rows x (n, p) and y (n,)."""
        return cls(x.T @ x, x.T @ y, float(y @ y))

    def __add__(self, other: "Squares") -> "Squares":
        return Squares(self.gram + other.gram, self.cross + other.cross, self.square + other.square)

    def __sub__(self, other: "Squares") -> "Squares":
        return Squares(self.gram - other.gram, self.cross - other.cross, self.square - other.square)

    def loss(self, theta: FloatArray) -> float:
        """``|y - x theta|^2``."""
        return float(self.square - 2.0 * (self.cross @ theta) + theta @ (self.gram @ theta))


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Coefficients and how many steps they took."""

    theta: FloatArray
    steps: int


def threshold(data: Squares, s: int, steps: int = 50, radius: float | None = None) -> Sparse:
    """Coefficients (p,) with at most s non-zero, by hard thresholding pursuit (Foucart 2011).

    Each step moves downhill, ``theta + eta x^T (y - x theta)`` (the printed DP-IHT has the opposite sign), keeps the
    s largest entries and fits them by least squares. The length eta is what exact line search along the s best
    newcomers asks for, ``|g|^2 / |x g|^2``: it comes from the features' own spectrum. The best fit seen is
    returned, shortened to `radius` if that is given.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((200, 30))
    >>> threshold(Squares.of(x, 2.0 * x[:, 4] - x[:, 9]), 2).theta.nonzero()[0]
    array([4, 9])
    """
    best, least, done = np.zeros(len(data.cross)), np.inf, 0
    support = _largest(data.cross, s)
    for _ in range(max(steps, 1)):
        theta = _fitted(data, support)
        loss = data.loss(theta)
        done += 1
        if not loss < least:
            break
        best, least = theta, loss
        gradient = data.cross - data.gram[:, support] @ theta[support]
        newcomers = _largest(gradient, s)  # on the support itself the gradient of a least-squares fit is zero
        g = gradient[newcomers]
        curvature = float(g @ data.gram[np.ix_(newcomers, newcomers)] @ g)
        eta = float(g @ g) / curvature if curvature > 0 else 0.0
        support = _largest(theta + eta * gradient, s)
    length = float(np.linalg.norm(best))
    return Sparse(best if radius is None or length <= radius else best * (radius / length), done)


def _fitted(data: Squares, support: IntArray) -> FloatArray:
    theta = np.zeros(len(data.cross))
    theta[support] = np.linalg.lstsq(data.gram[np.ix_(support, support)], data.cross[support], rcond=1e-10)[0]
    return theta


def _largest(values: FloatArray, s: int) -> IntArray:
    return np.sort(np.argpartition(-np.abs(values), min(s, len(values)) - 1)[:s])


PROTECTS = f"the label of each person (its owner's own answer y alone, clipped to the stated range); {LABEL_ONLY}"
MOST_ACTIVE = 55
MOST_FEATURES = 3000
"""Of more features only those most correlated with the randomised labels are kept: their products must fit memory."""
FOLDS = 5


@dataclass(eq=False, repr=False)
class LabelPrivateIHT(RegressorMixin, DeviceEstimator):
    """Sparse linear regression of a private label on public features (DP-IHT of Wang, Smith and Xu, mended).

    Each device clips its y to a public range, adds noise once (`sfumato.local.NumberRandomiser`) and reports;
    iterative hard thresholding then runs on public numbers, at no further cost.

    Parameters
    ----------
    epsilon, delta : float
        Guarantee of each person's answer; ``delta=0`` is pure.
    response_range : (float, float)
        Public range of y; values outside are clipped. Never read from the data.
    n_active : int or "auto"
        Number of features with a coefficient; "auto" chooses by cross-validation on the randomised labels (free), and
        shortens the coefficients by the factor that predicts best, to nothing where nothing is to be seen.
    mechanism : {"auto", "gaussian", "laplace", "two-point"}
        "auto" has the smallest worst-case variance at (epsilon, delta).
    radius : float, optional
        Coefficients are projected into the ball of this radius (on standardised features); the paper's is 1.
    max_iter : int
        Most thresholding steps.
    rows_per_person : int, optional
        As in `LabelPrivateSIR`: all answers of a person together cost (epsilon, delta).
    random_state : int, optional
        Seeded noise, for rehearsal only.

    Attributes
    ----------
    coef_, intercept_ : ndarray, float
    active_ : ndarray of int
        Features with a coefficient.
    form_ : NumberRandomiser
        What the devices answered.
    ledger_ : LocalLedger
        ``ledger_.guarantee`` says exactly what is protected.

    Notes
    -----
    Three things differ from the printed Algorithm 1: the step goes downhill (the paper's sign goes up); y is
    clipped before noise, to its whole range B rather than an assumed 2C; and the step length is taken from the
    features on the support at hand, with a least-squares fit on the support found.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import LabelPrivateIHT
    >>> from sfumato.local import NumberRandomiser
    >>> rng = np.random.default_rng(0)
    >>> x = rng.choice([-1.0, 1.0], (40_000, 50))
    >>> y = 0.8 * x[:, 3] - 0.5 * x[:, 7] + rng.uniform(-0.5, 0.5, len(x))
    >>> answers = NumberRandomiser(-2.0, 2.0, epsilon=1.0).randomize(y)      # on the devices
    >>> fitted = LabelPrivateIHT(n_active=2).fit(x, answers)                 # at the analyst's
    >>> fitted.active_
    array([3, 7])
    """

    epsilon: float = 1.0
    delta: float = 0.0
    response_range: Sequence[float] = (-1.0, 1.0)
    n_active: int | str = "auto"
    _: KW_ONLY
    mechanism: str = "auto"
    radius: float | None = None
    max_iter: int = 50

    about: ClassVar[About] = About(title="Sparse regression of randomised labels", page="howto/label-privacy.md")

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Fit public features X and y: the `Answers` of the devices, or true labels to be randomised first."""
        if not is_whole(self.max_iter, 1):
            raise InputError(f"max_iter must be a positive integer, got {self.max_iter!r}.")
        if self.radius is not None and not (isinstance(self.radius, Real) and float(self.radius) > 0):
            raise InputError(f"radius must be None or a positive number, got {self.radius!r}.")
        if getattr(y, "ndim", 1) == 2:
            message = "A column-vector y was passed when a 1d array was expected."
            warnings.warn(message, DataConversionWarning, stacklevel=2)
        given = np.zeros(len(y)) if isinstance(y, Answers) else y
        unit = device_unit(self, X, y, groups)
        source = first_rows(fit_source(self, X, given, None), groups, unit)
        if source.response.categories is not None:
            raise InputError("y must hold numbers; LabelPrivateIHT is a regression.")
        records = source.pooled()
        answers = y if isinstance(y, Answers) else self._randomise(records.y, unit.factor)
        if not isinstance(answers.form, NumberRandomiser):
            raise InputError("y: these answers are slices, not numbers; use LabelPrivateSIR, or a NumberRandomiser.")
        self.form_: NumberRandomiser = answers.form
        entries = (entry_of(self.form_, "y with noise"),)
        self.ledger_ = LocalLedger(entries, self.form_.delta, PROTECTS, answers.rehearsal, unit)
        self._solve(records.x, np.asarray(answers.values, dtype=np.float64))
        return self

    def _randomise(self, y: Any, rows: int) -> Answers:
        noise = noise_of(self.random_state)
        if noise.rehearsal:
            warnings.warn(REHEARSAL, PrivacyWarning, stacklevel=3)
        try:
            lower, upper = self.response_range
        except (TypeError, ValueError):
            raise InputError("response_range must be two numbers, lower and upper; for instance (0, 100).") from None
        form = NumberRandomiser(lower, upper, self.epsilon, self.delta, self.mechanism)
        return form.one_of(rows).randomize(y, noise)

    def _solve(self, x: FloatArray, y: FloatArray) -> None:
        """Public sparse regression of randomised labels."""
        centre = x.mean(axis=0)
        spread = np.sqrt(((x - centre) ** 2).mean(axis=0))
        usable = spread > 1e-12 * np.maximum(np.abs(centre), 1e-300)
        scale = np.where(usable, spread, np.inf)
        z, level = (x - centre) / scale, float(y.mean())
        near = np.sort(np.argsort(-np.abs(z.T @ (y - level)), kind="stable")[:MOST_FEATURES])
        with one_blas_thread():
            folds = [Squares.of(z[i::FOLDS][:, near], y[i::FOLDS] - level) for i in range(FOLDS)]
            whole = reduce(Squares.__add__, folds)
            count, factor = self._size(whole, folds, len(z))
            found = threshold(whole, count, self.max_iter, self.radius)
        self.n_iter_ = found.steps
        theta = np.zeros(x.shape[1])
        theta[near] = factor * found.theta
        self.coef_ = theta / scale
        self.active_ = np.flatnonzero(theta)
        self.intercept_ = level - float(centre @ self.coef_)

    def _size(self, whole: Squares, folds: list[Squares], n: int) -> tuple[int, float]:
        """How many features, and the factor on their coefficients: 1 if the number is given."""
        p = len(whole.cross)
        if self.n_active == "auto":
            most = min(p, max(1, n // 20), MOST_ACTIVE)
            return _cross_validated(whole, folds, most, self.max_iter, self.radius)
        if not is_whole(self.n_active, 1):
            raise InputError(f"n_active must be a positive integer or 'auto', got {self.n_active!r}.")
        return min(int(self.n_active), p, n), 1.0

    def predict(self, X: Any) -> FloatArray:
        """Predicted (true) labels of public records."""
        check_is_fitted(self)
        return np.asarray(transform_array(self, X) @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # labels clipped to (-1, 1) and randomised: a small table shows nothing
        return tags


def _cross_validated(
    whole: Squares, folds: list[Squares], most: int, steps: int, radius: float | None
) -> tuple[int, float]:
    """The number of features that predicts held-out randomised labels best, in five folds.

    And the factor from 0 to 1 on their coefficients that predicts best: where the signal drowns in the noise of the
    labels, the features picked are those with the luckiest noise, and held-out labels do not see their coefficients.
    """
    counts = [s for s in (1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 21, 34, 55) if s <= most]
    fits = [[(held, threshold(whole - held, s, steps, radius).theta) for held in folds] for s in counts]
    factors = [_factor(pairs) for pairs in fits]
    loss = [sum(held.loss(t * theta) for held, theta in pairs) for pairs, t in zip(fits, factors, strict=True)]
    best = int(np.argmin(loss))
    return counts[best], factors[best]


def _factor(pairs: list[tuple[Squares, FloatArray]]) -> float:
    """The t in [0, 1] at which the held-out loss of t theta, a parabola in t, is least."""
    slope = sum(float(held.cross @ theta) for held, theta in pairs)
    curvature = sum(float(theta @ (held.gram @ theta)) for held, theta in pairs)
    return min(max(slope / curvature, 0.0), 1.0) if curvature > 0 else 0.0
