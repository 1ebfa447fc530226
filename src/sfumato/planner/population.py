"""Population: what is assumed about people who have not been asked yet."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.typing import FloatArray

POINTS = 1500
_BOX = 3.0
"""Assumed half width of the bounds, in standard deviations of a feature."""


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Points that stand for a population: what the response says about an index of k normal coordinates.

    Attributes
    ----------
    index : ndarray of shape (m, k)
        Coordinates of x along the true directions, standardised (uncorrelated, variance one).
    ranks : ndarray of shape (m,)
        Rank of the response of each point, in (0, 1).
    mixing : ndarray of shape (p, p)
        x, in half widths of its bounds, is ``mixing @ w`` with standard normal w whose first k entries are the index.
    directions : ndarray of shape (k, p)
        The true directions, in half widths.

    Notes
    -----
    x is taken to be normal, so that everything in it that is orthogonal to the index is independent of index and
    response: that independence is what makes the loss computable. Clipping at three standard deviations changes
    little.
    """

    index: FloatArray
    ranks: FloatArray
    mixing: FloatArray
    directions: FloatArray

    @property
    def n_features(self) -> int:
        """Number of features p."""
        return len(self.mixing)

    @property
    def n_directions(self) -> int:
        """Number of directions k."""
        return len(self.directions)

    @classmethod
    def typical(
        cls, n_features: int, n_directions: int = 1, signal: float = 0.5, seed: int = 0, points: int = POINTS
    ) -> "Population":
        """Independent features and a response of which the directions explain the part `signal` (R squared).

        One direction: a response that grows with the index. More: the angle of the first two coordinates, which
        shows two directions of about equal strength (further ones are counted, `forecast` says how).
        """
        if not 0.0 < signal <= 1.0:
            raise InputError(f"signal must be above 0 and at most 1, got {signal!r}; 0.5 is typical.")
        k = min(n_directions, 2, n_features)
        rng = np.random.default_rng(seed)
        index, noise = rng.standard_normal((points, k)), rng.standard_normal((points, k))
        noisy = np.sqrt(signal) * index + np.sqrt(1.0 - signal) * noise
        y = noisy[:, 0] if k == 1 else np.arctan2(noisy[:, 1], noisy[:, 0])
        return cls(index, _ranks(y), np.eye(n_features) / _BOX, np.eye(k, n_features))

    @classmethod
    def of(cls, x: ArrayLike, y: ArrayLike, directions: ArrayLike, half_width: float = 1.0) -> "Population":
        """From public or simulated records with known directions: a study to come "like this one".

        Only their covariance, the response and the index are used; the number of records does not matter.
        """
        table = np.asarray(x, dtype=np.float64) / half_width
        table = table - table.mean(axis=0)
        b = np.atleast_2d(np.asarray(directions, dtype=np.float64))
        values, vectors = np.linalg.eigh(table.T @ table / len(table))
        values = np.maximum(values, 1e-12 * values[-1])
        root = (vectors * np.sqrt(values)) @ vectors.T
        across, _ = np.linalg.qr(np.column_stack([root @ b.T, np.eye(len(root))]))
        mixing = root @ across[:, : len(root)]
        index = (table @ np.linalg.inv(mixing).T)[:, : len(b)]
        return cls(index, _ranks(np.asarray(y, dtype=np.float64)), mixing, b)


def clipped_second_moment(w: FloatArray, clip: FloatArray, k: int) -> FloatArray:
    """Mean of ``clip^2 w w^T``; w is standard normal, and its first k entries are the index.

    The points' own second moment is known to be the identity: a control variate. Between index and rest it is
    zero by symmetry, and so is the mean of the rest in every slice: an error of the points in one of them alone
    would look like a tilt of the directions that no number of records mends.
    """
    kept = float((clip**2).mean())
    second: FloatArray = (w.T * (clip**2 - kept)) @ w / len(w) + kept * np.eye(w.shape[1])
    second[:k, k:] = 0.0
    second[k:, :k] = 0.0
    return second


def _ranks(y: FloatArray) -> FloatArray:
    return (np.argsort(np.argsort(y, kind="stable"), kind="stable") + 0.5) / len(y)
