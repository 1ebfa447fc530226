"""Links: which functions of y move with which directions of x, strongest first."""

from dataclasses import dataclass

import numpy as np

from sfumato.steps.subspace import unit_rows
from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Links:
    """How functions of y depend on whitened x, strongest first: function j has the slope ``strengths_j axes_j`` on z.

    Attributes
    ----------
    strengths : ndarray of shape (r,)
        Singular values.
    axes : ndarray of shape (p, r)
        Directions in z.
    functions : ndarray of shape (bins, r)
        Values of each function on the bins of y.
    """

    strengths: FloatArray
    axes: FloatArray
    functions: FloatArray

    @property
    def slopes(self) -> FloatArray:
        """Slope of each function on z, a column each."""
        return self.axes * self.strengths

    def explained(self, probabilities: FloatArray) -> FloatArray:
        """Part of the variance of each function that x explains, as it comes: noise included, not clipped."""
        variance = probabilities @ (self.functions - probabilities @ self.functions) ** 2
        return np.divide(self.strengths**2, variance, out=np.zeros_like(variance), where=variance > 1e-12)


def links_of(coefficients: FloatArray, table: FloatArray) -> Links:
    """The links in coefficients (p, q) of the regression of the functions in `table` (bins, q) on z.

    >>> links = links_of(np.diag([1.0, 3.0]), np.array([[1.0, 0.5], [-1.0, 0.5]]))
    >>> links.strengths, np.abs(links.functions[:, 0])
    (array([3., 1.]), array([0.5, 0.5]))
    """
    u, s, vt = np.linalg.svd(coefficients, full_matrices=False)
    return Links(s, u, table @ vt.T)


def unit_directions(links: Links, to_z: FloatArray, signs: FloatArray) -> FloatArray:
    """The axes of the first links, mapped back through ``z = to_z x``: a unit row (p,) for each of `signs`.

    The axes are orthonormal for the released covariance, so the scores along the rows are uncorrelated under it; the
    rows themselves are orthogonal only where features have the same scale and are uncorrelated.
    """
    return unit_rows((to_z.T @ links.axes[:, : len(signs)]).T * signs[:, None])


def signs_of(links: Links, probabilities: FloatArray, k: int, ordered: bool) -> FloatArray:
    """The sign of each of the first k axes with which y rises along it; +1 or -1.

    Along axis j the mean of z moves with function j of y. An ordered y rises where that function grows with its ranks.
    Classes are taken in their order: the first one that lies off the middle by half a standard deviation, or half as
    far as one of its share can lie, or else the farthest one, is put below it; so of two classes the second has the
    larger scores, however rare it is.

    >>> table = np.array([[1.0], [0.0], [-1.0]])
    >>> signs_of(links_of(np.array([[2.0]]), table), np.full(3, 1 / 3), 1, ordered=True).item() in (-1.0, 1.0)
    True
    """
    functions = links.functions[:, :k] - probabilities @ links.functions[:, :k]
    if ordered:
        ranks = np.cumsum(probabilities) - probabilities / 2.0
        rising = (probabilities * ranks) @ functions
    else:
        used = np.where(probabilities[:, None] > 0, functions, 0.0)
        spread = np.sqrt(np.maximum(probabilities @ used**2, 1e-300))
        can = np.sqrt(np.maximum(1.0 - probabilities, 0.0) / np.maximum(probabilities, 1e-300))
        off = np.abs(used) >= 0.5 * np.minimum(1.0, can)[:, None] * spread
        place = np.where(off.any(axis=0), off.argmax(axis=0), np.abs(used).argmax(axis=0))
        rising = -used[place, np.arange(used.shape[1])]
    return np.where(rising < 0, -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Directions (k, p), orthonormal rows; their standard errors from the known noise; singular values."""

    directions: FloatArray
    standard_errors: FloatArray
    singular_values: FloatArray


def directions_in_x(coefficients: FloatArray, noise_std: float, to_z: FloatArray, k: int) -> Spectrum:
    """Leading left singular vectors of C, mapped back through ``z = to_z x``, orthonormalised in order.

    The noise of C moves a singular vector in every orthogonal direction by ``noise_std / singular value`` (first
    order); the map carries that to x, and what orthonormalising leaves of a direction is scaled up with its error.
    """
    u, s, _ = np.linalg.svd(coefficients, full_matrices=False)
    raw = to_z.T @ u[:, :k]
    length = np.linalg.norm(raw, axis=0)
    q, r = np.linalg.qr(raw / length)
    directions = (q * np.where(r.diagonal() < 0, -1.0, 1.0)).T
    spread = np.linalg.norm(to_z, axis=0)
    relative = noise_std / np.maximum(s[:k], noise_std)
    left = np.maximum(np.abs(r.diagonal()), 1e-12)
    return Spectrum(directions, np.outer(relative / (length * left), spread), s)
