"""Sliced inverse regression over sites (He, Zhang and Chen 2023): as printed, to reproduce their tables, and mended.

`fsir_paper` is FSIR-IID and FSIR-MVG, `ccmd` their filter of features, all to the letter. None has the guarantee it
states; see docs/explanation/errata.md. So nothing of these goes through the door, and the ledger that comes back says
"no guarantee" with the reason.

`fsir_iid` is FSIR-IID mended so that its guarantee holds: slice sums and second moment of records clipped to a public
radius, in one round; the server adds them, repairs the covariance once and solves ``Sigma^-1 U``. Against the printed
algorithm: the sensitivity is that of sums (2 r, not 2 r / n_0 with the private size of the smallest slice), the noise
is the exact Gaussian mechanism's, both parts share one budget, covariances are averaged rather than squared, and
slices come from a private release.

`fsir_shaped` is what FSIR-MVG wants, safely. The paper shapes the noise of the slice means by the singular vectors of
those means, which are private: its Theorem 3 does not cover it. Here a first release tells the vectors. In their
coordinates, divided by the root of the singular values, a second release gets equal noise everywhere: back in x it is
large along the leading vectors, where it does not turn the subspace, and small across them. Both releases are bounded
sums, so the guarantee is that of any plan; and as both are known with their noise, they are averaged by precision.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.bounds import Grid
from sfumato.errors import PrivacyWarning
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import NoGuarantee
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.privacy.plan import Line
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.picture import groups
from sfumato.steps.ranks import Ranks
from sfumato.steps.symmetric import inverse_root, noise_edge, split_moments
from sfumato.typing import FloatArray, IntArray

REASONS = {
    "ccmd": "which features a site names is a function of its records without any noise.",
    "iid": "the noise is scaled by the private size of the smallest slice, and slices are sample quantiles.",
    "mvg": "the covariance of the noise is built from the singular vectors of the private matrix itself.",
}
LARGEST = 3.0
"""Noise that `fsir_shaped` adds along the leading vector is at most this many times that across it."""


def fsir_paper(
    sites: Sequence[tuple[FloatArray, IntArray]],
    k: int,
    slices: int,
    epsilon: float,
    delta: float,
    mechanism: Literal["iid", "mvg"],
    *,
    truncation: float = 3.0,
    smallest: int | None = None,
    normalised: bool = False,
    rng: np.random.Generator,
) -> tuple[FloatArray, Ledger]:
    """Directions (k, p) from ``(x, slice of y)`` at each site, and a ledger that claims nothing.

    The truncation level is not printed; 3 keeps 99.7 % of standard normal coordinates. The noise is scaled by n_0, the
    size of the `smallest` slice, which is counted at each site unless it is given. Algorithm 2 divides its ratios by
    the sum of the singular values; `normalised`, by that of their inverses, as its own bound needs. Covariances get
    the noise of Lemma 1 (with the square root its second statement has) and are averaged: the printed merge squares
    them.
    """
    warning = f"FSIR-{mechanism.upper()} as printed gives no privacy: {REASONS[mechanism]}"
    warnings.warn(warning, PrivacyWarning, stacklevel=2)
    total = sum(len(x) for x, _ in sites)
    p = sites[0][0].shape[1]
    means, covariance = np.zeros((p, slices)), np.zeros((p, p))
    for x, slice_of in sites:
        weight = len(x) / total
        least = max(int(np.bincount(slice_of, minlength=slices).min()), 1) if smallest is None else smallest
        options = (mechanism, truncation, least, normalised)
        means = means + weight * _means(x, slice_of, slices, epsilon, delta, *options, rng)
        covariance = covariance + weight * _covariance(x, epsilon, delta, rng)
    u = np.linalg.svd(means, full_matrices=False)[0][:, :k]
    directions = np.linalg.qr(np.linalg.pinv(covariance) @ u)[0].T
    ledger = Ledger(Budget.approximate(epsilon, delta), "replace")
    event = NoGuarantee(REASONS[mechanism])
    ledger.record(Entry("slice means as printed", f"FSIR-{mechanism.upper()}", event, 0.0, 0.0, 1.0, "replace"))
    return np.asarray(directions), ledger


def _means(
    x: FloatArray,
    slice_of: IntArray,
    slices: int,
    epsilon: float,
    delta: float,
    mechanism: str,
    truncation: float,
    smallest: int,
    normalised: bool,
    rng: np.random.Generator,
) -> FloatArray:
    """Proposition 2 or Algorithm 2 of the paper."""
    n, p = x.shape
    one_hot = np.eye(slices)[slice_of]
    truncated = np.clip(x, -truncation, truncation).T @ one_hot / n
    if mechanism == "iid":
        sensitivity = 2 * truncation * math.sqrt(p) / smallest
        std = sensitivity * math.sqrt(max(math.log(1 / delta), 0.0)) / epsilon
        return np.asarray(truncated + std * rng.standard_normal((p, slices)))
    w, s, _ = np.linalg.svd(truncated, full_matrices=True)
    values = pseudo_values(s, p)
    bound = smallest**2 * epsilon**2 / (8 * truncation**2 * p * math.log(2 / delta))
    ratio = 1.0 / values / ((1.0 / values).sum() if normalised else values.sum())
    noise = w @ (1.0 / np.sqrt(bound * ratio)[:, None] * rng.standard_normal((p, slices)))
    return np.asarray(x.T @ one_hot / n + noise)


def pseudo_values(singular: FloatArray, p: int) -> FloatArray:
    """Algorithm 2, steps 3 and 5: behind the largest gap singular values (zeros added up to p) are made equal."""
    values = np.zeros(p)
    values[: len(singular)] = singular
    if len(singular) > 1:
        d = int(np.argmax(values[: len(singular) - 1] - values[1 : len(singular)])) + 1
        values[d:] = values[d:].mean()
    return np.maximum(values, 1e-12)


def _covariance(x: FloatArray, epsilon: float, delta: float, rng: np.random.Generator) -> FloatArray:
    """Lemma 1."""
    n, p = x.shape
    inner = max(math.log((p * p + p) / (delta * 2 * math.sqrt(2 * math.pi))), 0.0)
    std = (p + 1) / (n * epsilon) * math.sqrt(2 * inner) + 1 / (n * math.sqrt(epsilon))
    noise = np.triu(rng.standard_normal((p, p))) * std
    centred = x - x.mean(axis=0)
    return np.asarray(centred.T @ centred / n + noise + np.triu(noise, 1).T)


def ccmd(sites: Sequence[tuple[FloatArray, IntArray]], slices: int, threshold: float) -> IntArray:
    """Features that more than half as many (site, slice) pairs as there are sites name, in increasing order.

    A pair names a feature if its sum over the slice, divided by the site's size, is beyond the threshold. "Uploading
    only an index set leaks nothing" does not hold: a deterministic set that is not constant is not private for any
    epsilon and delta < 1 (docs/explanation/errata.md). `PrivateSparseSIR` in `sfumato.federated.simulate` votes
    privately instead.

    >>> rng = np.random.default_rng(0)
    >>> x, half = rng.normal(size=(200, 3)), np.arange(200) % 2
    >>> x[half == 1, 2] += 2.0
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", PrivacyWarning)
    ...     ccmd([(x[:100], half[:100]), (x[100:], half[100:])], slices=2, threshold=0.3)
    array([2])
    """
    warnings.warn(f"The CCMD filter as printed gives no privacy: {REASONS['ccmd']}", PrivacyWarning, stacklevel=2)
    named = np.zeros(sites[0][0].shape[1], dtype=np.int64)
    for x, slice_of in sites:
        means = np.eye(slices)[slice_of].T @ x / len(x)
        named += (np.abs(means) > threshold).sum(axis=0)
    return np.flatnonzero(named > len(sites) / 2)


def fsir_iid(grid: Grid, ranks: Ranks, n: float, radius: float, slices: int, k: int) -> Asking[FloatArray]:
    """Directions (k, p), orthonormal, in the units of x; uses the plan's line "slices".

    Parameters
    ----------
    grid : Grid
        Over bounds of equal width for all features.
    radius : float
        Longest record kept, in the units of x.
    """
    p = grid.n_features
    found = yield from _ask(grid, ranks, np.eye(p) * _scale(grid, radius), n, slices, "slices")
    slice_of, _ = groups(ranks, slices)
    share = np.bincount(slice_of, ranks.probabilities, minlength=found.means.shape[1]).astype(np.float64)
    return _directions(found.means, found.second, share, found.second_std, k)


def _scale(grid: Grid, radius: float) -> float:
    """By which a record of length `radius` becomes one of length sqrt(p), as the integer grid is made for."""
    return float(grid.half_width.max()) * float(np.sqrt(grid.n_features)) / radius


def _directions(means: FloatArray, second: FloatArray, share: FloatArray, noise_std: float, k: int) -> FloatArray:
    """``Sigma^-1 U``, orthonormal, the covariance repaired with its known noise."""
    mean = means.sum(axis=1)
    root = inverse_root(second - np.outer(mean, mean), noise_edge(noise_std, len(means)))
    u = np.linalg.svd(means - np.outer(mean, share), full_matrices=False)[0][:, :k]
    return np.asarray(np.linalg.qr(root @ root @ u)[0].T)


@dataclass(frozen=True, slots=True)
class Sums:
    """Released slice means (p, H) and second moment (p, p) in the coordinates of one release, with their noise."""

    means: FloatArray
    second: FloatArray
    mean_std: float
    second_std: float


def plan_shaped(share: float) -> tuple[Line, ...]:
    """The lines `fsir_shaped` will use."""
    formula = "2 R / R"
    return (
        Line("slices", "slice sums and second moment, equal noise", 0.4 * share, formula),
        Line("shaped slices", "slice sums and second moment, shaped noise", 0.6 * share, formula),
    )


def fsir_shaped(grid: Grid, ranks: Ranks, n: float, radius: float, slices: int, k: int) -> Asking[FloatArray]:
    """Directions (k, p), orthonormal, in the units of x; parameters as in `fsir_iid`."""
    p, scale = grid.n_features, _scale(grid, radius)
    first = yield from _ask(grid, ranks, np.eye(p) * scale, n, slices, "slices")
    vectors, shape = _shape(first)
    # clipped to the same length, so the second release has the same sensitivity; mean squared length p stays p
    matrix = (vectors / shape).T * np.sqrt(p / np.sum(shape**-2.0))
    second = yield from _ask(grid, ranks, matrix * scale, n, slices, "shaped slices")
    back = np.linalg.inv(matrix)
    means = _averaged(vectors, first.means, first.mean_std, back @ second.means, second.mean_std, matrix)
    covariance = (first.second / first.second_std**2 + back @ second.second @ back.T / second.second_std**2) / (
        first.second_std**-2.0 + second.second_std**-2.0
    )
    share = np.full(means.shape[1], 1.0 / means.shape[1])
    return _directions(means, covariance, share, min(first.second_std, second.second_std), k)


def _ask(grid: Grid, ranks: Ranks, matrix: FloatArray, n: float, slices: int, name: str) -> Asking[Sums]:
    p = grid.n_features
    slice_of, edges = groups(ranks, slices)
    query = SlicedMoments(Whitening(grid, matrix, np.zeros(p), float(np.sqrt(p))), ranks.bins, slice_of, len(edges) - 1)
    released = yield from ask(query, name)
    means, second = split_moments(released.value / n, query.n_slices)
    return Sums(means.T, second, float(released.noise_std[0]) / n, float(released.noise_std[means.size]) / n)


def _shape(first: Sums) -> tuple[FloatArray, FloatArray]:
    """Left singular vectors and the relative size of the noise along each: the root of its singular value."""
    vectors, values, _ = np.linalg.svd(first.means, full_matrices=True)
    padded = np.zeros(len(vectors))
    padded[: len(values)] = values
    floor = max(float(padded[0]) / LARGEST**2, 1e-12)
    return vectors, np.sqrt(np.maximum(padded, floor) / floor)


def _averaged(
    vectors: FloatArray, one: FloatArray, one_std: float, other: FloatArray, other_std: float, matrix: FloatArray
) -> FloatArray:
    """Both estimates averaged by precision, vector by vector, where the noise of both is uncorrelated."""
    lengths = np.linalg.norm(matrix, axis=1)  # row j measures along vector j, this many times enlarged
    precision = (lengths / other_std) ** 2
    weight = (precision / (precision + one_std**-2.0))[:, None]
    return np.asarray(vectors @ ((1.0 - weight) * (vectors.T @ one) + weight * (vectors.T @ other)))
