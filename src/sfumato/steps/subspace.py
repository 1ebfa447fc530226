"""How far apart two subspaces are, the loss in every table of this library; and directions as rows of length one."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import subspace_angles

from sfumato.errors import InputError
from sfumato.typing import FloatArray


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows of length one.

    >>> unit_rows(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def orthonormal_rows(rows: FloatArray) -> FloatArray:
    """Gram-Schmidt, in order, keeping each row's side."""
    q, r = np.linalg.qr(rows.T)
    return np.asarray((q * np.where(np.diag(r) < 0, -1.0, 1.0)).T)


def subspace_distance(A: ArrayLike, B: ArrayLike) -> float:
    """Distance ||P_A - P_B||_F between the subspaces that two sets of directions span.

    P_A is the orthogonal projection onto the span of the rows of `A`, so the distance depends on the spans
    only: neither on scale, sign or order of the directions nor on which basis was chosen.

    Parameters
    ----------
    A, B : array-like, (k, p) or (p,)
        Spanning directions as rows, like `directions_`; one vector is one direction. The numbers of
        directions may differ; the number of features p may not. Directions that depend on others add nothing.

    Returns
    -------
    float
        Between 0 (equal) and sqrt(k_A + k_B) (orthogonal), with k the dimension of each span; at least
        sqrt(|k_A - k_B|).

    Notes
    -----
    The usual formula sqrt(k_A + k_B - 2 ||Q_A' Q_B||_F^2) cancels and cannot tell distances below 1e-8 from
    zero. The same number is the length of what either basis leaves outside the other span, and that form
    keeps its digits down to 1e-15.

    Examples
    --------
    >>> subspace_distance([1, 0, 0], [-5, 0, 0])
    0.0
    >>> round(subspace_distance([[1, 0, 0], [0, 1, 0]], [0, 0, 1]) ** 2, 12)
    3.0
    """
    a, b = _bases(A, B)
    product = a.T @ b
    outside_b, outside_a = a - b @ product.T, b - a @ product
    return float(np.hypot(np.linalg.norm(outside_b), np.linalg.norm(outside_a)))


def principal_angles(A: ArrayLike, B: ArrayLike) -> FloatArray:
    """Principal angles between two subspaces, in radians, the smallest first.

    Parameters
    ----------
    A, B : array-like, (k, p) or (p,)
        Spanning directions as rows, as in `subspace_distance`.

    Returns
    -------
    ndarray, (min(k_A, k_B),)
        Angles between 0 and pi/2. For equal dimensions `subspace_distance` is sqrt(2) times the length of
        their sines.

    Notes
    -----
    Small angles come from sines and large ones from cosines (Knyazev and Argentati 2002, as in scipy), so
    both keep their digits.

    Examples
    --------
    >>> import numpy as np
    >>> np.degrees(principal_angles([[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 1]])).round(6)
    array([ 0., 45.])
    """
    a, b = _bases(A, B)
    angles: FloatArray = subspace_angles(a, b)[::-1]
    return angles


def _bases(A: ArrayLike, B: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Orthonormal columns that span the rows of each argument."""
    a, b = _orthonormal(A, "A"), _orthonormal(B, "B")
    if len(a) != len(b):
        raise InputError(
            f"A and B must have the same number of features, got {len(a)} and {len(b)}; directions are rows."
        )
    return a, b


def _orthonormal(directions: ArrayLike, name: str) -> FloatArray:
    rows = np.atleast_2d(np.asarray(directions, dtype=np.float64))
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(f"{name} must be a (k, p) array with one direction per row, got shape {rows.shape}.")
    if not np.isfinite(rows).all():
        raise InputError(f"{name} has missing or infinite entries; give finite directions.")
    # Directions are lines: a short one counts as much as a long one, so each is scaled before rank is judged
    # (by its largest entry first: the square of 1e-200 is zero).
    largest = np.abs(rows).max(axis=1)
    rows = rows[largest > 0] / largest[largest > 0, None]
    if len(rows) == 0:
        raise InputError(f"{name} has only zero rows and spans nothing; give a non-zero direction.")
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    rank = int((sizes > max(rows.shape) * np.finfo(np.float64).eps * sizes[0]).sum())
    return np.asarray(basis[:rank].T, dtype=np.float64)
