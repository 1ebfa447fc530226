"""Mechanisms that break their promise, each as it was met in papers or libraries: an audit must catch all of them.

An audit that never fails proves nothing. Each control claims the privacy its makers claim (or would), on the pair of
neighbours that shows best why the claim is false.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.audit.blackbox import Claim
from sfumato.audit.cases import queries, release_of, worst_pair
from sfumato.privacy.budget import Budget
from sfumato.privacy.noise import Noise, rounded_gaussian
from sfumato.records import Records
from sfumato.typing import FloatArray

BUDGET = Budget.approximate(1.0, 1e-6)


@dataclass(frozen=True, slots=True)
class Control:
    """A broken mechanism, its claim, a telling pair of data sets, and what is wrong."""

    name: str
    mechanism: Callable[[Records, Noise], FloatArray]
    d: Records
    d_prime: Records
    claimed: Claim
    why: str


def controls() -> list[Control]:
    """All negative controls."""
    return [half_noise(), mvg(), index_filter(), bounds_from_data(), noise_before_clipping()]


def half_noise() -> Control:
    """The right mechanism with half the noise."""
    query = queries()["histogram of the response"]
    pair = worst_pair(query, "replace")
    mechanism = release_of(query, "replace", 2.0 * BUDGET.mu())
    return Control("noise halved", mechanism, pair.d, pair.d_prime, BUDGET.mu(), "half the noise the claim needs")


def mvg() -> Control:
    """Multivariate Gaussian noise of the FSIR paper (algorithm 2): its covariance comes from the private matrix.

    The ratio vector is normalised here so that the paper's own condition (4) on the noise holds.
    """
    epsilon, delta, radius = 1.0, 1e-6, 1.0

    def mechanism(records: Records, noise: Noise) -> FloatArray:
        means = _slice_means(records, radius)
        left, sizes, _ = np.linalg.svd(means)
        bound = len(records) ** 2 * epsilon**2 / (8 * radius**2 * means.shape[0] * math.log(2 / delta))
        inverse = 1.0 / np.maximum(sizes, 1e-9)
        std = 1.0 / np.sqrt(bound * inverse / np.linalg.norm(inverse))
        return np.asarray((means + left @ (std[:, None] * _normal(noise, means.shape))).ravel())

    base = np.full((20, 2), 1e-3) * np.array([[1.0, -1.0], [1.0, 1.0]] * 10)
    one = np.vstack([base[:-1], [[1.0, 0.0]]])
    y = np.array([0.0, 1.0] * 10)
    why = "the noise's shape is computed from the data"
    return Control(
        "noise shaped by the data (MVG)", mechanism, Records(base, y), Records(one, y), (epsilon, delta), why
    )


def index_filter() -> Control:
    """Publishing which features pass a threshold, without noise (CCMD filter, FSIR paper, algorithm 3)."""

    def mechanism(records: Records, noise: Noise) -> FloatArray:
        return np.asarray((np.abs(_slice_means(records, 1.0)).max(axis=1) > 0.02).astype(float))

    x = np.zeros((20, 2))
    other = np.vstack([x[:-1], [[1.0, 0.0]]])
    y = np.array([0.0, 1.0] * 10)
    why = "a non-constant output without noise has no privacy at all"
    return Control("index set without noise (CCMD)", mechanism, Records(x, y), Records(other, y), (1.0, 1e-6), why)


def bounds_from_data() -> Control:
    """Bounds taken as minimum and maximum of the data, then the right noise for them."""

    def mechanism(records: Records, noise: Noise) -> FloatArray:
        width = np.ptp(records.x, axis=0)  # one record moves the sum by no more, or so it seems
        std = np.linalg.norm(width) / BUDGET.mu()
        return np.asarray(records.x.sum(axis=0) + std * _normal(noise, (records.x.shape[1],)))

    x = np.linspace(-1.0, 1.0, 20)[:, None] * np.ones((1, 2))
    other = np.vstack([x[:-1], [[50.0, 1.0]]])
    y = np.zeros(20)
    why = "the scale of the noise tells the largest record"
    return Control("bounds read from the data", mechanism, Records(x, y), Records(other, y), BUDGET.mu(), why)


def noise_before_clipping() -> Control:
    """Noise for clipped records added to the sum of raw ones, and the result clipped afterwards."""
    std = round(2.0 / BUDGET.mu() * 2**20)

    def mechanism(records: Records, noise: Noise) -> FloatArray:
        noisy = records.x.sum(axis=0) + rounded_gaussian(noise, std, records.x.shape[1]) / 2**20
        return np.asarray(np.clip(noisy, -len(records), len(records)))

    x = np.zeros((20, 2))
    other = np.vstack([x[:-1], [[10.0, 10.0]]])
    y = np.zeros(20)
    why = "a record outside the bounds counts in full"
    return Control("noise before clipping", mechanism, Records(x, y), Records(other, y), BUDGET.mu(), why)


def _slice_means(records: Records, radius: float) -> FloatArray:
    """The p x 2 matrix of slice sums over n, records clipped to the radius."""
    length = np.linalg.norm(records.x, axis=1, keepdims=True)
    x = records.x * np.minimum(1.0, radius / np.maximum(length, 1e-300))
    return np.stack([x[records.y == h].sum(axis=0) / len(x) for h in (0.0, 1.0)], axis=1)


def _normal(noise: Noise, shape: tuple[int, ...]) -> FloatArray:
    return rounded_gaussian(noise, 2**30, shape) / 2.0**30
