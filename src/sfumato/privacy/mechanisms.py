"""Mechanisms: how an exact integer sum becomes a release."""

import math

import numpy as np

from sfumato.privacy.events import Gaussian, Laplace, Selection
from sfumato.privacy.noise import Noise, gumbel_argtop, rounded_gaussian, rounded_laplace
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation

FINEST = 2.0**22
"""Noise is drawn on a grid at least this much finer than its own scale, so that rounding the scale up to a whole
number of units costs less than one part in four million."""
_LARGEST_COUNT = 2.0**37
"""But never so fine that the sum of this many records could leave an int64. That binds only for budgets so large
that they protect nobody; the noise is then rounded up by more than the above, never down."""


def gaussian_std(query: BoundedSum, relation: Relation, event: Gaussian) -> FloatArray:
    """Noise of a mu-GDP release of `query`, coordinate by coordinate, in grid units.

    Coordinate j gets ``sensitivity / (mu w_j)``: then the sum over coordinates of ``(difference_j / std_j)^2`` is
    ``mu^2 |difference|_w^2 / sensitivity^2 <= mu^2`` for every pair of neighbours, which is all that Gaussian
    differential privacy asks of additive Gaussian noise.
    """
    return np.asarray(query.sensitivity(relation) / (event.mu * query.weights))


def gaussian(exact: IntArray, query: BoundedSum, relation: Relation, event: Gaussian, noise: Noise) -> Release:
    """The sum plus exact Gaussian noise, on a refined grid.

    The grid of each coordinate is refined by a public power of two and the noise is ``rint(std Z)`` on it: as the
    sum is an integer this equals rounding (sum + std Z), post-processing of the ideal Gaussian mechanism. No float
    of the sum is ever added to a float of noise, so no low bits leak (Mironov 2012).
    """
    std, shift = _refine(gaussian_std(query, relation, event), query)
    noisy = (exact << shift) + rounded_gaussian(noise, std, exact.shape)
    worth: FloatArray = np.ldexp(query.grid, -shift)
    return Release(noisy * worth, std * worth)


def released_std(query: BoundedSum, relation: Relation, event: Gaussian) -> FloatArray:
    """What `gaussian` states as the noise of its release, to the last bit, for whoever gets its value alone.

    >>> from sfumato.statistics.histograms import Bins, ResponseHistogram
    >>> asked = ResponseHistogram(Bins(np.zeros(0))), "add-remove", Gaussian(0.3)
    >>> more = released_std(*asked) / gaussian_std(*asked)
    >>> bool((more > 1).all() and (more < 1 + 1 / FINEST).all())
    True
    """
    std, shift = _refine(gaussian_std(query, relation, event), query)
    return np.asarray(std * np.ldexp(query.grid, -shift))


def laplace(exact: IntArray, query: BoundedSum, relation: Relation, event: Laplace, noise: Noise) -> Release:
    """The sum plus exact Laplace noise of scale ``L1 sensitivity / epsilon`` on every coordinate: pure epsilon."""
    scale, shift = _refine(np.array([query.l1_sensitivity(relation) / event.epsilon]), query)
    noisy = (exact << shift) + rounded_laplace(noise, scale, exact.shape)
    worth: FloatArray = np.ldexp(query.grid, -shift)
    return Release(noisy * worth, math.sqrt(2.0) * scale * worth)


def top(exact: IntArray, query: BoundedSum, relation: Relation, event: Selection, noise: Noise) -> IntArray:
    """Indices of the largest scores under Gumbel noise, best first: the exponential mechanism, picked one by one.

    Adding Gumbel noise of scale b = ``spread / epsilon`` and taking the `picks` largest at once has the law of
    `picks` exponential mechanisms in a row (Durfee and Rogers 2019), each on the scores that are left. Such a pick
    takes j with probability proportional to ``exp(score_j / b)``. If the scores of a neighbour are larger by d_j, the
    log-ratio of the two probabilities is ``d_j / b`` and a constant that is the same for all j (the logarithm of the
    ratio of the two normalising sums): over all j it spans ``(max d - min d) / b``, at most epsilon by the definition
    of the spread. So every pick has bounded range epsilon.
    """
    return gumbel_argtop(noise, query.scores(exact), gumbel_scale(query, relation, event), event.picks)


def gumbel_scale(query: BoundedSum, relation: Relation, event: Selection) -> float:
    """Scale of the Gumbel noise on the scores of `query`, in grid units; its standard deviation is pi / sqrt(6) of it.

    >>> from sfumato.statistics.histograms import Bins, ResponseHistogram
    >>> query = ResponseHistogram(Bins(np.zeros(0)))
    >>> [gumbel_scale(query, relation, Selection(0.1, 1)) for relation in ("replace", "add-remove")]
    [20.0, 10.0]
    """
    return query.spread(relation) / event.epsilon


def _refine(scale: FloatArray, query: BoundedSum) -> tuple[IntArray, IntArray]:
    """Noise scale of each coordinate in refined units, rounded up; and by how many bits its unit is refined."""
    largest = np.maximum(query.norm / query.weights, 1.0)  # entry of one record
    room = np.floor(np.log2(2.0**62 / _LARGEST_COUNT / largest))
    shift = np.clip(np.ceil(np.log2(FINEST / scale)), 0.0, np.maximum(room, 0.0)).astype(np.int64)
    units = np.ceil(scale * 2.0**shift).astype(np.int64)
    return np.broadcast_to(units, query.shape), np.broadcast_to(shift, query.shape)
