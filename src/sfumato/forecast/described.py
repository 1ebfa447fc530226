"""The population that releases describe: points whose clipped moments, lengths and responses are the released ones.

Before data a population is assumed; after a fit its releases say much about it. Points are made that would have
released about the same, so that the fit can be made again on a stand-in for them (`StandIn`) as often as one likes.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sfumato.forecast.evidence import Evidence
from sfumato.forecast.populations import POINTS
from sfumato.records import Records
from sfumato.steps.links import Links
from sfumato.steps.noisy_histograms import kept_share, likely_counts
from sfumato.steps.symmetric import noise_edge, split_moments, without_noise
from sfumato.typing import FloatArray, IntArray

ROUNDS = 8
STRONGEST = 0.97
"""Most of a function of y that x is believed to explain: something has to be left for the points to differ in."""
LEAST, HIDDEN, FLAT = 0.5, 0.1, 0.02
"""Least variance of a direction of x, as part of what noise alone may show: as much as is likely, as little as a fit
may still see something of, and next to none."""
SHAPE, SHARP = 3.0, 0.5
"""Of the gamma distribution of a skewed coordinate, usually and, at least, for a test. Skewness lets clipping take more
from one end of y than from the other, and looks like a dependence. A test that takes x for more skewed than it is
announces less; one that takes it for less announces what is not there."""
TAMEST, MOST_KURTOSIS = 3.0 + 6.0 / SHARP, 1000.0
"""Of a coordinate as skewed as that, and of events so rare that hardly any point is one."""
OF_CLASSES = 3.0
"""Times the kurtosis that is told, where y has classes: of a rare one clipping leaves less than of the others, and of
features that are long in the same records more than their tails, one by one, let expect."""


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
    tested: bool = False,
    least: float = LEAST,
    flat: bool = False,
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
    tested : bool
        Whether something is tested: features are then as skewed as the releases leave likely.
    least : float
        Least variance of a direction, as part of what noise alone may show.
    flat : bool
        Whether a direction that does not show has next to no variance, as where features add up to a constant.
    """
    p = len(evidence.whitening.mean)
    place = _bins(evidence.ranks.probabilities, max(POINTS, 20 * p), rng)
    if slopes is None:
        slopes = np.zeros((p, 0)) if links is None else evidence.slopes(links)
    functions = np.zeros((len(place), 0)) if links is None else links.functions[place]
    linked = _Linked(Groups.of(place), functions - functions.mean(axis=0), slopes)
    noise, most = _coordinates(evidence, len(place), tested, rng)
    return _moved(evidence, place, linked, noise, _clipped_moments(evidence, least, flat), most)


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """How mean and covariance of a few scores change from group to group of y; overall they are zero and one.

    Attributes
    ----------
    group_of : ndarray of shape (bins,)
        The group of each bin of y.
    directions : ndarray of shape (p, r)
        Of the scores, in half widths; of any length and angles.
    means, covariances : ndarray of shape (groups, r), (groups, r, r)
    """

    group_of: IntArray
    directions: FloatArray
    means: FloatArray
    covariances: FloatArray

    def times(self, factors: FloatArray) -> "Curves":
        """Each score with so many times the changes: 0 is none, a number for each score."""
        one = np.eye(len(factors))
        mixed = np.sqrt(np.outer(factors, factors))
        return replace(self, means=self.means * np.sqrt(factors), covariances=one + mixed * (self.covariances - one))


def describe_curves(
    evidence: Evidence,
    rng: np.random.Generator,
    curves: Curves,
    tested: bool = False,
    least: float = LEAST,
    flat: bool = False,
) -> Described:
    """Points that the releases describe, with scores whose mean and spread depend on y; all else does not.

    The residual has mean zero on every bin and covariance one in every group. Clipping disturbs that by chance, so
    there are more points than elsewhere; what chance is left makes a test announce less. Where something is `tested`
    tails are as heavy as the releases leave likely.
    """
    p, groups = len(evidence.whitening.mean), int(curves.group_of.max()) + 1
    place = _bins(evidence.ranks.probabilities, max(4 * POINTS, 20 * p, 4 * p * groups), rng)
    curved = _Curved(place, curves)
    noise, most = _coordinates(evidence, len(place), tested, rng)
    return _moved(evidence, place, curved, noise, _clipped_moments(evidence, least, flat), most)


def _coordinates(
    evidence: Evidence, size: int, tested: bool, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray | float]:
    """Coordinates of points, and the most that features may vary in half widths, if they have such tails."""
    if not tested:
        return skewed(size, len(evidence.whitening.mean), SHAPE, rng), np.inf
    kurtosis, farthest = possible_kurtosis(evidence, rng)
    return heavy(size, kurtosis, rng), np.where(kurtosis > TAMEST, farthest**2 / kurtosis, np.inf)


def skewed(size: int, p: int, shape: FloatArray | float, rng: np.random.Generator) -> FloatArray:
    """Independent coordinates of variance one, skewed to either side."""
    return rng.choice([-1.0, 1.0], p) * rising(size, p, shape, rng)


def rising(size: int, p: int, shape: FloatArray | float, rng: np.random.Generator) -> FloatArray:
    """The same, all skewed to the same side."""
    return np.asarray((rng.gamma(shape, size=(size, p)) - shape) / np.sqrt(shape))


def heavy(size: int, kurtosis: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The same with tails as heavy as that, for a test: how far second moments vary by chance depends on fourth
    moments, and how much clipping looks like a dependence on skewness.

    What has heavier tails than the most skewed coordinate is taken for a rare event: of all with its kurtosis it is
    what clipping tames least. None is taken for tamer than in other tests. All are skewed to the same side, as
    amounts and counts are: to either side they would make up for each other.
    """
    part = 1.0 / (kurtosis + 3.0)
    happened = rng.permuted(np.arange(size)[:, None] < np.maximum(np.rint(size * part), 1.0), axis=0)
    events = (happened - part) / np.sqrt(part * (1.0 - part))
    return np.where(kurtosis > TAMEST, events, rising(size, len(part), SHARP, rng))


def possible_kurtosis(evidence: Evidence, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Of each feature, by the released distances or, where less, the most that its variance leaves in its box; and how
    far a record can be from the mean.

    The most is when all records but a few are at one place and these as far away as the box allows.
    """
    mean, covariance = _clipped_moments(evidence, HIDDEN)
    kept = kept_share(likely_counts(evidence.lengths, evidence.n), evidence.radii, evidence.radius)
    farthest = evidence.whitening.source.reach + np.abs(mean)
    most = farthest**2 * max(kept, 0.05) / covariance.diagonal()
    if evidence.reading is not None:
        classes = not evidence.ranks.is_ordered and evidence.ranks.functions is None
        most = np.minimum(most, (OF_CLASSES if classes else 1.0) * evidence.reading.kurtosis_again(rng))
    return np.minimum(most, MOST_KURTOSIS), farthest


class _Pattern(Protocol):
    """How points depend on y."""

    def residual(self, noise: FloatArray) -> FloatArray:
        """What does not depend on y, of covariance one."""

    def spread(self, residual: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points of mean zero and a covariance of which the root is given; what x explains."""


def _moved(
    evidence: Evidence,
    place: IntArray,
    pattern: _Pattern,
    noise: FloatArray,
    moments: tuple[FloatArray, FloatArray],
    most: FloatArray | float = np.inf,
) -> Described:
    """Points of a pattern, their lengths moved to those released, and mean and covariance, once they are clipped, to
    these `moments`; no variance becomes larger than `most`.
    """
    target, covariance = moments
    lengths = lengths_of(evidence, len(place))
    mean, stretch = target.copy(), np.ones(len(place))
    spread = covariance / max(
        kept_share(likely_counts(evidence.lengths, evidence.n), evidence.radii, evidence.radius), 0.05
    )
    residual = pattern.residual(noise)
    for left in reversed(range(ROUNDS)):
        points, explained = pattern.spread(residual, power_of(spread, 0.5))
        x = np.clip(mean + points, -1.0, 1.0)
        if not left:
            break
        long = np.linalg.norm(x, axis=1)
        shown = x * np.minimum(1.0, evidence.radius / np.maximum(long, 1e-300))[:, None]
        middle = shown.mean(axis=0)
        have = shown.T @ shown / len(shown) - np.outer(middle, middle)
        mean = np.clip(mean + target - middle, -1.0, 1.0)
        spread = _at_most(_congruent(spread, have, covariance), most)
        if lengths is not None and left < ROUNDS - 2:
            stretch = stretched(stretch, long, lengths)
            residual = pattern.residual(noise * stretch[:, None])
    return Described(Records(x, _responses(evidence, place)), explained, spread)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Points by their bins of y: what is asked about again and again, worked out once.

    >>> Groups.of(np.array([7, 3, 7])).centred(np.array([[1.0], [5.0], [3.0]])).ravel()
    array([-1.,  0.,  1.])
    """

    place: IntArray
    member: FloatArray

    @classmethod
    def of(cls, place: IntArray) -> "Groups":
        """The groups of points in these bins."""
        used, place = np.unique(place, return_inverse=True)
        member = np.zeros((len(used), len(place)))
        member[place, np.arange(len(place))] = 1.0
        return cls(place, member)

    def centred(self, residual: FloatArray) -> FloatArray:
        """Without the mean of each bin."""
        means = (self.member @ residual) / self.member.sum(axis=1)[:, None]
        return np.asarray(residual - means[self.place])

    def standardised(self, residual: FloatArray) -> FloatArray:
        """Residuals whose mean vanishes on every bin and whose covariance is the identity."""
        residual = self.centred(residual)
        return np.asarray(residual @ power_of(residual.T @ residual / len(residual), -0.5))


class _Linked:
    """Functions of y (points, r) of mean zero that have slopes (p, r) on x."""

    def __init__(self, groups: Groups, functions: FloatArray, slopes: FloatArray) -> None:
        gram = functions.T @ functions / len(functions)
        self._groups, self._functions = groups, functions
        self._slopes, self._root, self._sizes = slopes @ np.linalg.pinv(gram), power_of(gram, 0.5), gram.diagonal()

    def residual(self, noise: FloatArray) -> FloatArray:
        return self._groups.standardised(noise)

    def spread(self, residual: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean of whitened x is ``towards`` times the functions, and ``I - towards gram towards'`` is left to the
        residual. That is the identity but for a few axes, of which a thin matrix tells.
        """
        towards = root @ self._slopes
        axes, size, _ = np.linalg.svd(towards @ self._root, full_matrices=False)
        shrink = np.sqrt(STRONGEST) / max(float(size.max(initial=0.0)), np.sqrt(STRONGEST))
        rest = root + (axes * (np.sqrt(1.0 - (shrink * size) ** 2) - 1.0)) @ (axes.T @ root)
        explained = (shrink * towards) ** 2 * self._sizes
        return self._functions @ (shrink * towards.T @ root) + residual @ rest, explained.sum(axis=0)


class _Curved:
    """Scores whose mean and covariance depend on the group of a point."""

    def __init__(self, place: IntArray, curves: Curves) -> None:
        self._groups, self._group, self._curves = Groups.of(place), curves.group_of[place], curves
        self._roots = {group: power_of(curves.covariances[group], 0.5) for group in np.unique(self._group)}

    def residual(self, noise: FloatArray) -> FloatArray:
        return _standardised_by_group(noise, self._groups, self._group)

    def spread(self, residual: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
        axes = root @ self._curves.directions
        axes = axes @ power_of(axes.T @ axes, -0.5)
        inside = residual @ axes
        curved = np.empty_like(inside)
        for group, spread in self._roots.items():
            here = self._group == group
            curved[here] = self._curves.means[group] + inside[here] @ spread
        curved -= curved.mean(axis=0)
        curved = curved @ power_of(curved.T @ curved / len(curved), -0.5)
        return residual @ root + (curved - inside) @ (axes.T @ root), np.zeros(axes.shape[1])


def _clipped_moments(evidence: Evidence, least: float, flat: bool = False) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of clipped records, in half widths, the known noise taken out of the eigenvalues.

    Where they are `flat`, what is not more than the noise along an axis is taken for next to none. The edge is what
    noise shows along the worst of all axes, and once it is taken out of the values, most of that is gone: what is left
    well above the noise of one axis, on several axes at a time, the releases do not leave likely to be nothing. Along
    the mean there is also that of the mean, whose square was taken off.
    """
    p, n = len(evidence.whitening.mean), evidence.n
    (mean,), second = split_moments(evidence.moments.value / n)
    mean = np.clip(mean, -1.0, 1.0)
    values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
    of_mean, noise = (float(evidence.moments.noise_std[place]) / n for place in (0, p))
    edge = noise_edge(noise, p)
    seen = without_noise(values, edge)
    hidden = seen < np.hypot(noise, 2.0 * of_mean * (mean @ vectors))
    seen = np.where(flat & hidden, FLAT * edge, np.maximum(seen, least * edge)) + 1e-12
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


def lengths_of(evidence: Evidence, size: int) -> FloatArray | None:
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


def stretched(stretch: FloatArray, have: FloatArray, want: FloatArray) -> FloatArray:
    """Factors by which points are stretched, closer to those that give the wanted lengths, in order."""
    wanted = np.empty(len(want))
    wanted[np.argsort(have)] = want
    stretch = stretch * np.clip(wanted / np.maximum(have, 1e-12), 0.5, 2.0) ** 0.7
    return np.asarray(np.clip(stretch / np.sqrt((stretch**2).mean()), 0.2, 8.0))


def _standardised_by_group(residual: FloatArray, groups: Groups, group: IntArray) -> FloatArray:
    """Residuals whose mean vanishes on every bin and whose covariance is the identity in every group.

    Of a group with hardly more points than coordinates only the mean and the overall size are seen to.
    """
    residual = groups.centred(residual)
    for one in np.unique(group):
        here = np.flatnonzero(group == one)
        inside = residual[here]
        if len(here) > 2 * inside.shape[1]:
            residual[here] = inside @ power_of(inside.T @ inside / len(here), -0.5)
        else:
            residual[here] = inside / max(float(np.sqrt((inside**2).mean())), 1e-12)
    return residual


def _congruent(spread: FloatArray, have: FloatArray, want: FloatArray) -> FloatArray:
    """`spread` moved as the covariance of the clipped points would have to move, by at most a factor of two a step."""
    have = have + 1e-9 * max(float(np.trace(want)), 1e-12) * np.eye(len(have))  # all may be clipped to one place
    root, inverse = powers_of(have, (0.5, -0.5))
    values, vectors = np.linalg.eigh(inverse @ want @ inverse)
    move = root @ ((vectors * np.sqrt(np.clip(values, 0.25, 4.0))) @ vectors.T) @ inverse
    moved = move @ spread @ move.T
    return np.asarray((moved + moved.T) / 2.0)


def _at_most(spread: FloatArray, most: FloatArray | float) -> FloatArray:
    """The covariance of coordinates some of which are shrunk, so that none varies more than that."""
    factor = np.sqrt(np.minimum(1.0, most / np.maximum(spread.diagonal(), 1e-300)))
    return np.asarray(factor[:, None] * spread * factor)


def power_of(matrix: FloatArray, power: float) -> FloatArray:
    """Of a symmetric matrix, eigenvalues raised to a hair above zero."""
    return powers_of(matrix, (power,))[0]


def powers_of(matrix: FloatArray, powers: tuple[float, ...]) -> list[FloatArray]:
    """The same for several powers."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    values = np.maximum(values, 1e-10 * max(values.max(initial=0.0), 1e-300))
    return [np.asarray((vectors * values**power) @ vectors.T) for power in powers]
