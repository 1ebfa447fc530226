"""FSIR with independent noise (He, Zhang and Chen, Algorithm 1), mended so that its guarantee holds.

Slice sums and second moment of records clipped to a public radius, in one round; the server adds them, repairs the
covariance once and solves ``Sigma^-1 U``. Against the printed algorithm: the sensitivity is that of sums (2 r, not
2 r / n_0 with the private size of the smallest slice), the noise is the exact Gaussian mechanism's, both parts share
one budget, covariances are averaged rather than squared, and slices come from a private release.
"""

import numpy as np

from sfumato.bounds import Grid
from sfumato.iterate.picture import groups
from sfumato.iterate.ranks import Ranks
from sfumato.privacy.door import SumDoor
from sfumato.solve.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray


def fsir_iid(curator: SumDoor, grid: Grid, ranks: Ranks, n: float, radius: float, slices: int, k: int) -> FloatArray:
    """Directions (k, p), orthonormal, in the units of x; uses the plan's line "slices".

    Parameters
    ----------
    grid : Grid
        Over bounds of equal width for all features.
    radius : float
        Longest record kept, in the units of x.
    """
    p = grid.n_features
    slice_of, edges = groups(ranks, slices)
    width = float(grid.half_width.max())
    # a record of length `radius` becomes one of length sqrt(p): the scale that the integer grid is made for
    scale = width * float(np.sqrt(p)) / radius
    whitening = Whitening(grid, np.eye(p) * scale, np.zeros(p), float(np.sqrt(p)))
    query = SlicedMoments(whitening, ranks.bins, slice_of, len(edges) - 1)
    released = curator.answer(query, "slices")
    h = query.n_slices
    sums = released.value[: h * p].reshape(h, p).T / n
    second = upper_to_full(released.value[h * p :] / n, p)
    share = np.bincount(slice_of, ranks.probabilities, minlength=h)
    mean = sums.sum(axis=1)
    floor = noise_edge(float(released.noise_std[h * p]) / n, p)
    root = inverse_root(second - np.outer(mean, mean), floor)
    u = np.linalg.svd(sums - np.outer(mean, share), full_matrices=False)[0][:, :k]
    return np.asarray(np.linalg.qr(root @ root @ u)[0].T)
