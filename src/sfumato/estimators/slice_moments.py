"""Exact slice statistics for the non-private estimators: slices of y, moments per slice, whitening."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import eigh
from threadpoolctl import ThreadpoolController

from sfumato.errors import InputError
from sfumato.typing import FloatArray, IntArray

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

    Examples
    --------
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


def _blocks(X: FloatArray, rows: IntArray, mean: FloatArray) -> Iterator[FloatArray]:
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        block = X[rows[start : start + ROWS_AT_A_TIME]]
        block -= mean
        yield block


@cache
def _controller() -> Any:
    """Finding the BLAS libraries takes longer than fitting a small table; do it once."""
    return ThreadpoolController()


def moments(X: FloatArray, rows: list[IntArray], keep: bool) -> tuple[FloatArray, FloatArray, Slices]:
    """Mean, covariance and slices, all about the mean: raw sums would cancel when means dwarf deviations."""
    n, p = X.shape
    mean = X.mean(axis=0)
    sums, seconds = np.zeros((len(rows), p)), np.zeros((len(rows) if keep else 1, p, p))
    with _controller().limit(limits=1 if p < THREADS_PAY_FROM else None, user_api="blas"):
        for h, members in enumerate(rows):
            for block in _blocks(X, members, mean):
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
