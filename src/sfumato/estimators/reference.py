"""Non-private SIR, SAVE and DR: what the private estimators are measured against.

They read the records as they are and protect nobody. Use them on public data, in simulations and in tests.
"""

from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.errors import InputError
from sfumato.estimators.slice_moments import EPS, Slices, moments, slice_rows, whitener
from sfumato.typing import FloatArray


class _Sliced(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Slice y, sum per slice, whiten, take the eigenvectors of the method's kernel."""

    _needs_second_moments: ClassVar[bool] = True

    def __init__(self, n_directions: int | str | None = None, n_slices: int = 10) -> None:
        self.n_directions = n_directions
        self.n_slices = n_slices

    def fit(self, X: Any, y: Any) -> Self:
        """Find the directions of X (n, p) that explain y (n,); returns the estimator itself."""
        categorical = _is_categorical(y)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self._check_parameters(X.shape[1])
        rows = slice_rows(y, self.n_slices, categorical=categorical)
        self.mean_, covariance, slices = moments(X, rows, self._needs_second_moments)
        self.slice_sizes_ = np.array([len(r) for r in rows])
        W = whitener(covariance, self.mean_, len(X))
        values, vectors = eigh(self._kernel(slices.whitened(W)))
        # The kernels are positive semidefinite: what is below zero is rounding.
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        k = self._choose(values, len(X), len(rows))
        self.eigenvalues_ = values[:k]
        self.basis_ = _unit_rows((W @ vectors[:, :k]).T)
        self.directions_ = _orthonormal_rows(self.basis_)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Coordinates (n, n_directions) of X along `directions_`, centred at `mean_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray((X - self.mean_) @ self.directions_.T)

    def _check_parameters(self, p: int) -> None:
        k, h = self.n_directions, self.n_slices
        if isinstance(h, bool) or not isinstance(h, int | np.integer) or h < 2:
            raise InputError(f"n_slices must be an integer of at least 2, got {h!r}.")
        if k is None or (isinstance(k, str) and k in self._words()):
            return
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= p:
            words = "".join(f", {word!r}" for word in self._words())
            raise InputError(f"n_directions must be None{words} or an integer from 1 to {p}, got {k!r}.")

    def _words(self) -> tuple[str, ...]:
        return ()

    def _choose(self, values: FloatArray, n: int, n_slices: int) -> int:
        return len(values) if self.n_directions is None else min(int(self.n_directions), len(values))

    def _kernel(self, s: Slices) -> FloatArray:
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        return len(self.directions_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class SIR(_Sliced):
    """Sliced inverse regression (Li 1991), without privacy.

    Parameters
    ----------
    n_directions : int, None or "auto", default=None
        How many directions; None keeps all that the slices can show, min(rank of X, slices - 1); "auto"
        chooses by BIC (see Notes). Never more than the rank of X.
    n_slices : int, default=10
        Slices of a numeric y. Slices are closed at floor(n / n_slices) rows as by R's `dr`: equal values stay
        together, and rows left over may form one slice more. A y with at most `n_slices` values, of words,
        booleans or categories has one slice per value.

    Attributes
    ----------
    directions_ : ndarray, (n_directions, n_features)
        Orthonormal rows in the units of X; the first j span what the first j eigenvectors span.
    basis_ : ndarray, (n_directions, n_features)
        The eigenvectors themselves in the units of X, of unit length but not orthogonal, as `dr` prints them.
    eigenvalues_, mean_, slice_sizes_ : ndarray
        Largest eigenvalue first; means of the features; rows per slice.

    Notes
    -----
    `transform` uses `directions_`, as the private estimators do. Covariances divide by n, like `dr`. Constant
    and collinear columns are allowed: X is whitened on its range only.

    "auto": SIR is maximum likelihood for normal slices of common covariance whose means lie in a k-flat
    (Szretter and Yohai 2009). Twice the log-likelihood is -n sum_{i<=k} log(1 - lambda_i), the parameters are
    k(p + H - 1 - k), and Schwarz's criterion subtracts log(n) for each; k >= 1. The ratio criterion that goes
    back to Zhu, Miao and Peng (2006), n sum_{i<=k} lambda_i^2 / sum lambda^2 - C_n k(k+1)/2, leaves C_n open
    and overfits when all eigenvalues are small, for it looks at their ratios alone.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((2000, 4))
    >>> y = np.exp(x[:, 0] + x[:, 1])
    >>> SIR(n_directions="auto").fit(x, y).directions_.round(1)
    array([[0.7, 0.7, 0. , 0. ]])
    """

    _needs_second_moments: ClassVar[bool] = False

    def _words(self) -> tuple[str, ...]:
        return ("auto",)

    def _choose(self, values: FloatArray, n: int, n_slices: int) -> int:
        visible = max(1, min(len(values), n_slices - 1))
        if self.n_directions is None:
            return visible
        if self.n_directions == "auto":
            k = np.arange(1, visible + 1)
            fit = -n * np.cumsum(np.log(np.maximum(1.0 - values[:visible], EPS)))
            return int(k[np.argmax(fit - np.log(n) * k * (len(values) + n_slices - 1 - k))])
        return super()._choose(values, n, n_slices)

    def _kernel(self, s: Slices) -> FloatArray:
        return (s.means.T * s.shares) @ s.means


class SAVE(_Sliced):
    """Sliced average variance estimation (Cook and Weisberg 1991), without privacy.

    Sees what SIR misses when y depends on x evenly, such as y = x^2, and needs more data. Parameters,
    attributes and slices are those of `SIR`, except that `n_directions` is None (the rank of X) or an int.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((2000, 4))
    >>> SAVE(n_directions=1).fit(x, x[:, 2] ** 2).directions_.round(1) + 0.0
    array([[0., 0., 1., 0.]])
    """

    def _kernel(self, s: Slices) -> FloatArray:
        assert s.seconds is not None
        missing = np.eye(s.means.shape[1]) - (s.seconds - s.means[:, :, None] * s.means[:, None, :])
        return np.asarray(np.tensordot(s.shares, missing @ missing, axes=1))


class DR(_Sliced):
    """Directional regression (Li and Wang 2007), without privacy.

    Joins the first and second moments of the slices; finds what SIR or SAVE finds, at little more cost.
    Parameters, attributes and slices are those of `SIR`, except that `n_directions` is None or an int.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((4000, 4))
    >>> dr = DR(n_directions=2).fit(x, x[:, 2] ** 2 + x[:, 0])
    >>> abs(dr.directions_).sum(axis=0).round(1) > 0.5
    array([ True, False,  True, False])
    """

    def _kernel(self, s: Slices) -> FloatArray:
        # E[(2I - A(Y, Y'))^2] with A(Y, Y') = E[(Z - Z')(Z - Z')' | Y, Y'], multiplied out: a sum over slices
        # instead of pairs of slices (Li and Wang 2007).
        assert s.seconds is not None
        excess = s.seconds - np.eye(s.means.shape[1])
        between = (s.means.T * s.shares) @ s.means
        first = between @ between + np.trace(between) * between
        return np.asarray(2.0 * np.tensordot(s.shares, excess @ excess, axes=1) + 2.0 * first)


def _is_categorical(y: Any) -> bool:
    series = nw.from_native(y, series_only=True, pass_through=True)
    return isinstance(series, nw.Series) and series.dtype in (nw.Categorical, nw.Enum)


def _unit_rows(rows: FloatArray) -> FloatArray:
    """Rows of length one whose largest entry is positive: an eigenvector's own sign is arbitrary."""
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True) * np.sign(largest))


def _orthonormal_rows(rows: FloatArray) -> FloatArray:
    """Gram-Schmidt, in order, keeping each row's side."""
    q, r = np.linalg.qr(rows.T)
    return np.asarray((q * np.where(np.diag(r) < 0, -1.0, 1.0)).T)
