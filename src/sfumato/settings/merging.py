"""What a server makes of the sites' releases: weighted sums. Nothing here costs privacy."""

from collections.abc import Sequence

import numpy as np

from sfumato.release import Release
from sfumato.sums import BoundedSum

_ALIKE = 1e-6
"""Weights that differ by less are one: sites of one size, or without noise, add up to the pooled sum exactly."""


def worth(query: BoundedSum, release: Release) -> float:
    """How many records the noise of a release is worth: its variance over that of one record's largest contribution.

    >>> from sfumato.statistics.histograms import Bins, ResponseHistogram
    >>> worth(ResponseHistogram(Bins(np.zeros(0))), Release(np.zeros(1), np.full(1, 5.0)))
    25.0
    """
    scaled = release.noise_std / query.grid * query.weights  # in the norm that bounds one record
    return float(np.sum(np.broadcast_to(scaled, query.shape) ** 2) / query.norm**2)


def weights_of(sizes: Sequence[int | None], noise: float) -> list[float]:
    """What each site's sum counts, one for the site that counts most.

    The mean over n_k records has a variance of 1 / n_k + noise / n_k^2 (in units of one record's), and means are best
    weighted by the inverse of it: a *sum* counts ``n_k / (n_k + noise)``. Without noise all sums count alike, which is
    pooling; under heavy noise a small site counts by its size. Private sizes: all alike.

    >>> [round(weight, 4) for weight in weights_of([1000, 1000, 10], 1000.0)]
    [1.0, 1.0, 0.0198]
    >>> weights_of([1000, 10], 0.0)
    [1.0, 1.0]
    """
    raw = [1.0 if size is None else size / (size + noise) for size in sizes]
    most = max(raw)
    return [1.0] * len(raw) if min(raw) > (1.0 - _ALIKE) * most else [each / most for each in raw]


def scaled(release: Release, factor: float) -> Release:
    """Value and noise alike times a public factor."""
    return release if factor == 1.0 else Release(release.value * factor, release.noise_std * factor)
