"""Exact slice statistics for the non-private estimators: slices of y, moments per slice, whitening."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.errors import InputError
from sfumato.settings.central import one_blas_thread
from sfumato.steps.sparsity import eliminate
from sfumato.steps.subspace import orthonormal_rows
from sfumato.typing import FloatArray, IntArray, is_whole

EPS = float(np.finfo(np.float64).eps)
ROWS_AT_A_TIME = 16_384
# Narrow products are over before threads have met; on a busy machine the meeting costs 50 times the product.
THREADS_PAY_FROM = 128


@dataclass(frozen=True, slots=True)
class Slices:
    """Slice by slice, with H slices: shares (H,), means (H, r) and raw second moments (H, r, r) or None."""

    shares: FloatArray
    means: FloatArray
    seconds: FloatArray | None

    def whitened(self, W: FloatArray) -> "Slices":
        seconds = None if self.seconds is None else W.T @ self.seconds @ W
        return Slices(self.shares, self.means @ W, seconds)


def slice_rows(y: Any, n_slices: int, *, categorical: bool = False) -> list[IntArray]:
    """Row numbers of each slice of y, as R's `dr.slices` cuts them (`SIR` says how).

    >>> [rows.tolist() for rows in slice_rows([5.0, 1.0, 1.0, 1.0, 2.0, 9.0, 7.0, 8.0], 3)]
    [[1, 2, 3], [0, 4], [5, 6, 7]]
    """
    y = np.asarray(y)
    if y.dtype == object:
        y = np.asarray(y.tolist())
    order = np.argsort(y)
    ranked = y[order]
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]) + 1, len(y))
    if len(ends) > n_slices and not categorical and y.dtype.kind not in "bSU":
        ends = _closing(ends, len(y), len(y) // n_slices)
    # Sorted row numbers read X front to back, and make the sums independent of how ties were ordered.
    return [np.sort(rows) for rows in np.split(order, ends[:-1])]


def _closing(ends: IntArray, n: int, size: int) -> IntArray:
    """Ends of runs of equal values at which a slice closes: the first at or after `size` rows."""
    closed, end = [], 0
    while end < n - 2:  # a last slice of one or two rows joins the one before
        end = int(ends[min(int(np.searchsorted(ends, end + size)), len(ends) - 1)])
        closed.append(end)
    return np.array([*closed[:-1], n])


def moments(X: FloatArray, rows: list[IntArray], keep: bool) -> tuple[FloatArray, FloatArray, Slices]:
    """Mean, covariance and slices, all about the mean: raw sums would cancel when means dwarf deviations."""
    n, p = X.shape
    mean = X.mean(axis=0)
    sums, seconds = np.zeros((len(rows), p)), np.zeros((len(rows) if keep else 1, p, p))
    with one_blas_thread() if p < THREADS_PAY_FROM else nullcontext():
        for h, members in enumerate(rows):
            for start in range(0, len(members), ROWS_AT_A_TIME):
                block = X[members[start : start + ROWS_AT_A_TIME]]
                block -= mean
                sums[h] += block.sum(axis=0)
                seconds[h if keep else 0] += block.T @ block
    # The mean above carries rounding; the second pass knows by how much (Chan, Golub and LeVeque 1983).
    drift = sums.sum(axis=0) / n
    covariance = seconds.sum(axis=0) / n - np.outer(drift, drift)
    counts = np.array([len(members) for members in rows], dtype=np.float64)
    means = sums / counts[:, None]
    if keep:
        seconds /= counts[:, None, None]
        seconds += drift[:, None] * drift - means[:, :, None] * drift - drift[:, None] * means[:, None, :]
    return mean + drift, covariance, Slices(counts / n, means - drift, seconds if keep else None)


def whitener(covariance: FloatArray, mean: FloatArray, n: int) -> FloatArray:
    """W (p, rank) with W' covariance W = I, on the columns that vary and the range they span."""
    variance = np.maximum(np.diag(covariance), 0.0)
    varies = np.flatnonzero(variance > (4.0 * EPS * mean) ** 2)
    if len(varies) == 0:
        raise InputError("X has no column that varies; give at least one.")
    scale = np.sqrt(variance[varies])
    correlation = covariance[np.ix_(varies, varies)] / np.outer(scale, scale)
    values, vectors = eigh(correlation)
    # Sums of n rounded terms wander by about sqrt(n) roundings, in each of p columns.
    kept = values > values[-1] * EPS * len(values) * np.sqrt(n)
    W = np.zeros((len(mean), int(kept.sum())))
    W[varies] = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    return W


class _Sliced(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Slice y, sum per slice, whiten, take the eigenvectors of the method's kernel."""

    _needs_second_moments: ClassVar[bool] = True
    _words: ClassVar[tuple[str, ...]] = ()

    def __init__(self, n_directions: int | str | None = None, n_slices: int = 10) -> None:
        self.n_directions = n_directions
        self.n_slices = n_slices

    def fit(self, X: Any, y: Any) -> Self:
        """Find the directions of X (n, p) that explain y (n,); returns the estimator itself."""
        categorical = _is_categorical(y)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self._check_parameters(X.shape[1])
        rows = slice_rows(y, self.n_slices, categorical=categorical)
        self.mean_, self._covariance, slices = moments(X, rows, self._needs_second_moments)
        self.slice_sizes_ = np.array([len(r) for r in rows])
        W = whitener(self._covariance, self.mean_, len(X))
        values, vectors = eigh(self._kernel(slices.whitened(W)))
        # The kernels are positive semidefinite: what is below zero is rounding.
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        k = self._choose(values, len(X), len(rows))
        self.eigenvalues_ = values[:k]
        self.basis_ = _unit_rows((W @ vectors[:, :k]).T)
        self.directions_ = orthonormal_rows(self.basis_)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Coordinates (n, n_directions) of X along `directions_`, centred at `mean_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray((X - self.mean_) @ self.directions_.T)

    def _check_parameters(self, p: int) -> None:
        k, h = self.n_directions, self.n_slices
        if not is_whole(h, 2):
            raise InputError(f"n_slices must be an integer of at least 2, got {h!r}.")
        if k is None or (isinstance(k, str) and k in self._words):
            return
        if not is_whole(k, 1, p):
            words = "".join(f", {word!r}" for word in self._words)
            raise InputError(f"n_directions must be None{words} or an integer from 1 to {p}, got {k!r}.")

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
    _words: ClassVar[tuple[str, ...]] = ("auto",)

    def _choose(self, values: FloatArray, n: int, n_slices: int) -> int:
        visible = max(1, min(len(values), n_slices - 1))
        if self.n_directions is None:
            return visible
        if self.n_directions == "auto":
            k = np.arange(1, visible + 1)
            fit = -n * np.cumsum(np.log(np.maximum(1.0 - values[:visible], EPS)))
            return int(k[np.argmax(fit - np.log(n) * k * (len(values) + n_slices - 1 - k))])
        return super()._choose(values, n, n_slices)

    def sparse_directions(self, penalty: float | None = None) -> FloatArray:
        """`basis_` without the features that do not show, by backward elimination, as unit rows.

        The error of an eigenvector across itself has about the variance ``(1 - lambda) / (n lambda)`` along every
        whitened axis. See `sfumato.steps.sparsity`; `penalty` is for each feature kept, ``k + 2 log p`` by default.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.random.default_rng(0).standard_normal((2000, 4))
        >>> SIR(n_directions=1).fit(x, x[:, 0] + x[:, 1]).sparse_directions().round(1)
        array([[0.7, 0.7, 0. , 0. ]])
        """
        check_is_fitted(self)
        share = np.clip(self.eigenvalues_, EPS, 1.0)
        error = np.sqrt((1.0 - share + EPS) / (share * self.slice_sizes_.sum()))
        inverse = np.linalg.pinv(self._covariance, hermitian=True)
        length = np.sqrt(np.einsum("ki,ij,kj->k", self.basis_, self._covariance, self.basis_))
        errors = np.outer(error / np.maximum(length, EPS), np.sqrt(np.maximum(np.diag(inverse), 0.0)))
        return eliminate(self.basis_, errors, self._covariance, penalty)

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
