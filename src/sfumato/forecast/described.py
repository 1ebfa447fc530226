"""The population that releases describe: points whose clipped moments, lengths and responses are the released ones.

Before data a population is assumed; after a fit its releases say much about it. Points are made that would have
released about the same, so that the fit can be made again on a stand-in for them (`StandIn`) as often as one likes.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.forecast.evidence import Evidence
from sfumato.forecast.populations import POINTS
from sfumato.records import Records
from sfumato.steps.links import Links
from sfumato.steps.noisy_histograms import kept_share, likely_counts
from sfumato.steps.symmetric import noise_edge, upper_to_full, without_noise
from sfumato.typing import FloatArray, IntArray

ROUNDS = 8
STRONGEST = 0.97
"""Most of a function of y that x is believed to explain: something has to be left for the points to differ in."""
LEAST, HIDDEN = 0.5, 0.1
"""Least variance of a direction of x, as part of what noise alone may show: as much as is likely, and as little as
a fit may still see something of."""
SHAPE, SHARP = 3.0, 0.5
"""Of the gamma distribution of a skewed coordinate, usually and for a test. Skewness, which no release tells, lets
clipping take more from one end of y than from the other, and looks like a dependence. A test that takes x for more
skewed than it is announces less; one that takes it for less announces what is not there."""


@dataclass(frozen=True, slots=True)
class Described:
    """Points, the part of each linked function of y that they explain, and their covariance (p, p)."""

    points: Records
    explained: FloatArray
    covariance: FloatArray


def describe(
    evidence: Evidence,
    rng: np.random.Generator,
    links: Links | None = None,
    slopes: FloatArray | None = None,
    shape: float = SHAPE,
    least: float = LEAST,
) -> Described:
    """Points that the releases describe, with y depending on x by some links (none: not at all).

    Whitened x is the inverse mean of its bin of y, a linear function of the linked functions, plus a residual that
    averages to zero on *every* bin: what is not linked vanishes exactly, however many records the points stand for.
    Mean, covariance and lengths are then moved, in a few rounds, until the clipped moments are the released ones.

    Parameters
    ----------
    evidence : Evidence
    rng : Generator
    links : Links, optional
    slopes : ndarray of shape (p, r), optional
        Of the linked functions on x, if not those that the fit found.
    shape : float
        How skewed the coordinates are, less for larger values.
    least : float
        Least variance of a direction, as part of what noise alone may show.
    """
    target, covariance = _clipped_moments(evidence, least)
    p, size = len(target), max(POINTS, 20 * len(target))
    place = _bins(evidence.ranks.probabilities, size, rng)
    functions = np.zeros((size, 0)) if links is None else links.functions[place]
    functions = functions - functions.mean(axis=0)
    if slopes is None:
        slopes = np.zeros((p, 0)) if links is None else evidence.slopes(links)
    gram = functions.T @ functions / size
    noise = rng.choice([-1.0, 1.0], p) * (rng.gamma(shape, size=(size, p)) - shape) / np.sqrt(shape)
    lengths = _lengths(evidence, size)
    mean, stretch = target.copy(), np.ones(size)
    spread = covariance / max(
        kept_share(likely_counts(evidence.lengths, evidence.n), evidence.radii, evidence.radius), 0.05
    )
    for left in reversed(range(ROUNDS)):
        residual = _standardised(noise * stretch[:, None], place)
        root = _power(spread, 0.5)
        towards, explained = _inverse_mean(root @ slopes, gram)
        rest = _power(np.eye(p) - towards @ gram @ towards.T, 0.5)
        x = np.clip(mean + (functions @ towards.T + residual @ rest) @ root, -1.0, 1.0)
        if not left:
            break
        shown = _clipped(x, evidence.radius)
        mean = np.clip(mean + target - shown.mean(axis=0), -1.0, 1.0)
        spread = _congruent(spread, np.cov(shown.T, bias=True).reshape(p, p), covariance)
        if lengths is not None and left < ROUNDS - 2:
            stretch = _stretched(stretch, np.linalg.norm(x, axis=1), lengths)
    return Described(Records(x, _responses(evidence, place)), explained, spread)


def _clipped_moments(evidence: Evidence, least: float) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of clipped records, in half widths, the known noise taken out of the eigenvalues."""
    p, n = len(evidence.whitening.mean), evidence.n
    mean = np.clip(evidence.moments.value[:p] / n, -1.0, 1.0)
    values, vectors = np.linalg.eigh(upper_to_full(evidence.moments.value[p:] / n, p) - np.outer(mean, mean))
    edge = noise_edge(float(evidence.moments.noise_std[p]) / n, p)
    seen = np.maximum(without_noise(values, edge), max(least * edge, 1e-12))
    return mean, np.asarray((vectors * seen) @ vectors.T)


def _bins(probabilities: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """A bin of y for each point: as many in each as its probability says."""
    levels = (np.arange(size) + rng.random()) / size
    place = np.searchsorted(np.cumsum(probabilities)[:-1], levels * probabilities.sum(), side="right")
    return np.asarray(rng.permutation(place))


def _responses(evidence: Evidence, place: IntArray) -> FloatArray | IntArray:
    """A response in each point's bin."""
    bins = evidence.ranks.bins
    if bins.categories is not None:
        return place.astype(np.int64)
    lowest = np.nextafter(bins.edges[:1], -np.inf)
    return np.asarray(np.concatenate([lowest, bins.edges])[place])


def _lengths(evidence: Evidence, size: int) -> FloatArray | None:
    """Lengths of that many points by the released histogram, in increasing order; None where it shows too little."""
    counts = likely_counts(evidence.lengths, evidence.n)
    if (counts > 0).sum() < 3:
        return None
    ends = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
    lower = evidence.radii / 2.0**0.25
    levels = (np.arange(size) + 0.5) / size
    bin_of = np.minimum(np.searchsorted(ends[1:], levels), len(counts) - 1)
    part = (levels - ends[bin_of]) / np.maximum(ends[bin_of + 1] - ends[bin_of], 1e-12)
    return np.asarray(lower[bin_of] + (evidence.radii - lower)[bin_of] * np.clip(part, 0.0, 1.0))


def _stretched(stretch: FloatArray, have: FloatArray, want: FloatArray) -> FloatArray:
    """Factors by which points are stretched, closer to those that give the wanted lengths, in order."""
    wanted = np.empty(len(want))
    wanted[np.argsort(have)] = want
    stretch = stretch * np.clip(wanted / np.maximum(have, 1e-12), 0.5, 2.0) ** 0.7
    return np.asarray(np.clip(stretch / np.sqrt((stretch**2).mean()), 0.2, 8.0))


def _standardised(residual: FloatArray, place: IntArray) -> FloatArray:
    """Residuals whose mean vanishes on every bin and whose covariance is the identity."""
    used, place = np.unique(place, return_inverse=True)
    member = np.zeros((len(used), len(place)))
    member[place, np.arange(len(place))] = 1.0
    means = (member @ residual) / member.sum(axis=1)[:, None]
    residual = residual - means[place]
    return np.asarray(residual @ _power(residual.T @ residual / len(residual), -0.5))


def _inverse_mean(slopes: FloatArray, gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The map from functions of y to the mean of x, and the part of each that x explains; x has covariance one."""
    towards = slopes @ np.linalg.pinv(gram)
    explained = np.linalg.svd(towards @ gram @ towards.T)[1][: slopes.shape[1]]
    if len(explained) and explained[0] > STRONGEST:
        return towards * np.sqrt(STRONGEST / explained[0]), explained * STRONGEST / explained[0]
    return towards, explained


def _congruent(spread: FloatArray, have: FloatArray, want: FloatArray) -> FloatArray:
    """`spread` moved as the covariance of the clipped points would have to move, by at most a factor of two a step."""
    root, inverse = _power(have, 0.5), _power(have, -0.5)
    values, vectors = np.linalg.eigh(inverse @ want @ inverse)
    move = root @ ((vectors * np.sqrt(np.clip(values, 0.25, 4.0))) @ vectors.T) @ inverse
    moved = move @ spread @ move.T
    return np.asarray((moved + moved.T) / 2.0)


def _power(matrix: FloatArray, power: float) -> FloatArray:
    """Of a symmetric matrix, eigenvalues raised to a hair above zero."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return np.asarray((vectors * np.maximum(values, 1e-10 * max(values[-1], 1e-300)) ** power) @ vectors.T)


def _clipped(x: FloatArray, radius: float) -> FloatArray:
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x * np.minimum(1.0, radius / np.maximum(length, 1e-300)))
