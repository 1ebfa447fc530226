"""Sharper directions from labels that are already public: least squares over a polynomial of the index.

SIR weighs every record by its distance along the direction. Where the label depends on the index mostly near a
few places (a step, say) most of the information sits there. The profile least-squares fit of
``label ~ g(U^T z)``, g a polynomial, finds it; with degree 1 and two labels it *is* SIR. Pure post-processing.
"""

from itertools import product

import numpy as np
from numpy.polynomial import hermite_e

from sfumato.typing import FloatArray, IntArray

DEGREES = {1: (3, 7), 2: (3, 5), 3: (3,)}
MOST_UNKNOWNS = 300
_FAR = 3.5
"""The index is cut here, in standard deviations: a polynomial must not chase its own tails."""


def refine(z: FloatArray, labels: FloatArray, start: FloatArray) -> FloatArray:
    """Orthonormal U (p, k), from a start with the same shape; the degree is chosen by BIC, "no change" included.

    Parameters
    ----------
    z : ndarray of shape (n, p)
        Whitened features.
    labels : ndarray of shape (n, h)
        Scaled, centred indicators of the (randomised) labels.
    start : ndarray of shape (p, k)
        Orthonormal columns, usually SIR's.
    """
    n, p = z.shape
    k, h = start.shape[1], labels.shape[1]
    if k not in DEGREES or p * k > MOST_UNKNOWNS or n < 20 * p * k:
        return start
    best, least = start, _criterion(_Fit(z, labels, start, 1), h)
    for degree in DEGREES[k]:
        fit = _descend(_Fit(z, labels, start, degree))
        if (value := _criterion(fit, h)) < least:
            best, least = fit.u, value
    return best


class _Fit:
    """The best polynomial for given directions, and how well it fits."""

    def __init__(self, z: FloatArray, labels: FloatArray, u: FloatArray, degree: int) -> None:
        self.z, self.labels, self.u, self.degree = z, labels, u, degree
        values, self.slopes = _features(np.clip(z @ u, -_FAR, _FAR), degree)
        gram = values.T @ values
        gram[np.diag_indices_from(gram)] += 1e-9 * len(z)
        self.size = len(gram)
        self.weights = np.linalg.solve(gram, values.T @ labels)
        self.residual = labels - values @ self.weights
        self.loss = float((self.residual**2).sum())

    def moved(self, step: FloatArray) -> "_Fit":
        u, _ = np.linalg.qr(self.u + step)
        return _Fit(self.z, self.labels, u, self.degree)

    def gauss_newton(self) -> FloatArray:
        """The step that would be best if g were linear in the change of U; only across U, along it nothing moves."""
        p, k = self.u.shape
        across = self.z - (self.z @ self.u) @ self.u.T
        slope = [d @ self.weights for d in self.slopes]
        right = np.concatenate([across.T @ (s * self.residual).sum(axis=1) for s in slope])
        left = np.empty((k * p, k * p))
        for a, b in product(range(k), repeat=2):
            weight = (slope[a] * slope[b]).sum(axis=1)
            left[a * p : (a + 1) * p, b * p : (b + 1) * p] = across.T @ (across * weight[:, None])
        solved, *_ = np.linalg.lstsq(left, right, rcond=1e-8)
        return np.asarray(solved.reshape(k, p).T)


def _descend(fit: _Fit, steps: int = 4) -> _Fit:
    """Gauss-Newton with halving; stops where the fit stops improving."""
    for _ in range(steps):
        step = fit.gauss_newton()
        for part in (1.0, 0.5, 0.25, 0.1):
            new = fit.moved(part * step)
            if new.loss < fit.loss:
                break
        else:
            return fit
        gain, fit = fit.loss - new.loss, new
        if gain < 1e-6 * fit.loss:
            break
    return fit


def _criterion(fit: _Fit, h: int) -> float:
    """Schwarz's criterion; the directions count the same for every degree and are left out."""
    n = len(fit.z)
    return float(n * h * np.log(max(fit.loss, 1e-300) / (n * h)) + np.log(n) * fit.size * (h - 1))


def _features(t: FloatArray, degree: int) -> tuple[FloatArray, list[FloatArray]]:
    """Normalised Hermite polynomials of total degree up to `degree`, and their derivatives along each axis."""
    k = t.shape[1]
    scale = np.sqrt(np.cumprod([1.0, *range(1, degree + 1)]))
    one: list[FloatArray] = [np.asarray(hermite_e.hermevander(t[:, axis], degree) / scale) for axis in range(k)]
    powers = [np.array(e) for e in product(range(degree + 1), repeat=k) if sum(e) <= degree]
    values = np.stack([_term(one, e) for e in powers], axis=1)
    slopes = []
    for axis in range(k):
        lower = [e - (np.arange(k) == axis) for e in powers]
        columns = [np.sqrt(e[axis]) * _term(one, np.maximum(d, 0)) for e, d in zip(powers, lower, strict=True)]
        slopes.append(np.stack(columns, axis=1))
    return values, slopes


def _term(one: list[FloatArray], powers: IntArray) -> FloatArray:
    return np.asarray(np.prod([column[:, e] for column, e in zip(one, powers, strict=True)], axis=0))
