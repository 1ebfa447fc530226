"""Reading noisy histograms."""

import numpy as np

from sfumato.release import Release
from sfumato.typing import FloatArray


def quantile(counts: FloatArray, upper_edges: FloatArray, level: float) -> float:
    """Upper edge of the bin in which the `level` quantile falls; the last edge if no count is positive.

    >>> quantile(np.array([5.0, 3.0, -1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0]), 0.6)
    2.0
    """
    positive = np.maximum(counts, 0.0)
    reached = np.flatnonzero(np.cumsum(positive) >= level * positive.sum())
    index = int(reached[0]) if positive.sum() > 0 and len(reached) else len(upper_edges) - 1
    return float(upper_edges[index])


def standing_out(release: Release, factor: float = 3.0) -> FloatArray:
    """Counts that exceed `factor` times their known noise; the others are set to zero."""
    return np.where(release.value > factor * release.noise_std, release.value, 0.0)


def kept_share(lengths: Release, radii: FloatArray, radius: float) -> float:
    """Share of the second moment that clipping at `radius` leaves, from a released histogram of lengths.

    Only bins that stand out of the noise count: under generous bounds the longest lengths are all noise, and
    squared they would outweigh the rest.

    >>> kept_share(Release(np.array([1.0, 1.0]), np.zeros(2)), np.array([1.0, 2.0]), 1.0)
    0.4
    """
    weight = standing_out(lengths, 4.0)
    whole = float(weight @ radii**2)
    return float(weight @ np.minimum(radii, radius) ** 2) / whole if whole > 0 else 1.0
