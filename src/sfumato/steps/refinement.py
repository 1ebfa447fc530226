"""Functions of the response without what x has nothing to do with.

The functions f that a descent regresses on x are made of what its first step saw: slopes of a dozen cosines, in noise.
Whatever is wrong with them, R, stays in every residual, where it is paid for twice: the sample scatters more, and noise
is tied to the size of residuals. Given y, the mean of the residual ``e = f - C^T z`` tells it. Of the functions x can
move with, F, the mean of ``C^T z`` given y holds combinations alone, so ``f - E[e | y]`` holds F without R, however far
the coefficients C are from their end. (The step that Breiman and Friedman's alternating conditional expectations take.)
"""

import numpy as np

from sfumato.release import Release
from sfumato.typing import FloatArray

BELIEVED = 4.0
"""A correction is believed beyond so many variances of its noise."""
SLIGHT = 0.3
"""A function of which x explains less than this is left as it is: its correction would be noise over little."""


def refine(
    functions: FloatArray, probabilities: FloatArray, smooth: FloatArray, moved: Release, weight: float, error: float
) -> FloatArray:
    """The functions (bins, k) turned to those that x was seen to move with.

    Parameters
    ----------
    functions : ndarray of shape (bins, k)
        Values on bins of y that have these `probabilities`.
    smooth : ndarray of shape (bins, m)
        Functions of y that corrections are made of, orthonormal.
    moved : Release
        ``sum g(y) e^T`` (m, k): by how much residuals move with each of them.
    weight : float
        Number of records times what clipping left of the sum.
    error : float
        Sampling error of a mean residual.

    Returns
    -------
    ndarray of shape (bins, k)
        The functions projected on ``f + V``, where V is what the means of ``C^T z`` have across the functions, over
        what they have along them. A projection leaves the slopes on z as they are where it leaves out what has none:
        coefficients and targets stay what they were.

    Examples
    --------
    One record in each of four bins; x moves with a line, and the function is bent.

    >>> line, bend = np.array([-3.0, -1.0, 1.0, 3.0]) / 5**0.5, np.array([1.0, -1.0, -1.0, 1.0])
    >>> f = (line + 0.5 * bend)[:, None]
    >>> residual = f - 0.8 * line[:, None]  # the coefficients stand at 0.8 of their end
    >>> smooth, each = np.stack([line, bend], axis=1), np.full(4, 0.25)
    >>> moved = Release(smooth.T @ residual, np.zeros((2, 1)))
    >>> np.round(refine(f, each, smooth, moved, 4.0, 0.0)[:, 0] / line, 6)
    array([1., 1., 1., 1.])
    """
    p = probabilities[:, None]
    gram = functions.T @ (p * functions)
    mean = smooth @ (moved.value / weight)
    along = np.linalg.lstsq(gram, functions.T @ (p * mean), rcond=1e-9)[0]
    across = smooth.T @ (p * (functions @ along - mean))
    u, kept, vt = np.linalg.svd(np.eye(len(gram)) - along)
    back = (vt.T * np.where(kept > SLIGHT, 1.0 / np.maximum(kept, SLIGHT), 0.0)) @ u.T
    noise = np.hypot(float(moved.noise_std.max()) / weight, error) * np.linalg.norm(back, axis=0)
    wrong = across @ back
    wrong *= np.maximum(0.0, 1.0 - BELIEVED * noise**2 / np.maximum(wrong**2, 1e-300))
    told, root = functions + smooth @ wrong, np.sqrt(p)
    return np.asarray(told @ np.linalg.lstsq(root * told, root * functions, rcond=1e-9)[0])
