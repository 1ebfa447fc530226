"""Histograms: each record adds one count to one bin (or one per feature).

The common proof: a record's contribution is a 0/1 vector with exactly `m` ones (m = 1, or p for one histogram
per feature), so its length is sqrt(m), and two records differ in at most 2m places by 1, so the diameter is
sqrt(2 m). Both are attained.
"""

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum, squared_norms
from sfumato.typing import FloatArray, IntArray, Relation

REACH = 3.0
"""The picture shows three standard deviations to each side; the outermost columns hold everything beyond."""
OCTAVES = 40
"""Numbers are told apart between 2**-40 and 2**40 in absolute value; beyond, they share the end bins."""
OCTAVE_BINS = 4 * OCTAVES + 3


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Bins:
    """Half-open bins of the real line, ``[edge_i, edge_i+1)``, with open ends: ``len(edges) + 1`` of them.

    Without edges (`categories` given) y already is a category code and is its own bin.
    """

    edges: FloatArray
    categories: int | None = None

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.edges) + 1 if self.categories is None else self.categories

    def index(self, records: Records) -> NDArray[np.int16]:
        """Bin of each record's y; comparisons only, so exact."""
        return records.derive(self, lambda: self._index(records.y))

    def _index(self, y: FloatArray | IntArray) -> NDArray[np.int16]:
        if self.categories is not None:
            return y.astype(np.int16)
        return np.searchsorted(self.edges, y, side="right").astype(np.int16)


class Histogram(BoundedSum):
    """Each record adds one count to one bin: norm 1, diameter sqrt(2), and 1 or 2 in L1; any bin moves by 1.

    Two bins move apart by 1 where a record comes or goes, by 2 where it changes from one to the other.
    """

    __slots__ = ()

    @property
    def norm(self) -> float:
        return 1.0

    @property
    def diameter(self) -> float:
        return float(np.sqrt(2.0))

    def l1_sensitivity(self, relation: Relation) -> float:
        return 2.0 if relation == "replace" else 1.0

    def peak(self, relation: Relation) -> float:
        return 1.0

    def spread(self, relation: Relation) -> float:
        return self.l1_sensitivity(relation)


@dataclass(frozen=True, slots=True)
class ResponseHistogram(Histogram):
    """Counts of y in public (or already released) bins: one 1 per record, norm 1, diameter sqrt(2)."""

    bins: Bins

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.bins.count,)

    @property
    def describe(self) -> str:
        return f"histogram of the response, {self.bins.count} bins"

    def of(self, records: Records) -> IntArray:
        return np.bincount(self.bins.index(records), minlength=self.bins.count)


class LengthHistogram(Histogram):
    """Counts of lengths in bins that grow by 2**(1/4)."""

    __slots__ = ()

    BINS = 64

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.BINS,)


@dataclass(frozen=True, slots=True)
class NormHistogram(LengthHistogram):
    """Counts of the length of a record, on the grid, in bins that grow by 2**(1/4): norm 1, diameter sqrt(2).

    Lengths are squared lengths of integers, exact; the bin edges are fixed numbers relative to ``sqrt(p)`` half
    widths, the longest a record can be.
    """

    source: Grid

    @property
    def radii(self) -> FloatArray:
        """Upper edge of each bin, in half widths."""
        longest = np.sqrt(self.source.n_features)
        return np.asarray(longest * 2.0 ** (np.arange(1 - self.BINS, 1) / 4.0))

    @property
    def describe(self) -> str:
        return f"histogram of the record lengths, {self.BINS} bins"

    def of(self, records: Records) -> IntArray:
        edges = (self.radii[:-1] * 2.0**self.source.bits) ** 2
        index = np.searchsorted(edges, squared_norms(self.source.integers(records.x)))
        return np.bincount(index, minlength=self.BINS)


class FeatureHistograms(BoundedSum):
    """One histogram per feature, so p ones per record: norm sqrt(p), diameter sqrt(2 p)."""

    __slots__ = ()

    @property
    def norm(self) -> float:
        return float(np.sqrt(self.shape[0]))

    @property
    def diameter(self) -> float:
        return float(np.sqrt(2.0 * self.shape[0]))


@dataclass(frozen=True, slots=True)
class OctaveHistograms(FeatureHistograms):
    """One histogram per feature over signed octaves ``+-[2**(k-1), 2**k)``: norm sqrt(p), diameter sqrt(2 p)."""

    n_features: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_features, OCTAVE_BINS)

    @property
    def describe(self) -> str:
        return f"histogram of the order of magnitude of each feature, {OCTAVE_BINS} bins"

    def of(self, records: Records) -> IntArray:
        octave = _octave_of(records.x)
        octave += _first_bin(self.shape)
        return _counts(octave, self.shape)


@dataclass(frozen=True, slots=True)
class LinearHistograms(FeatureHistograms):
    """One histogram per feature with `bins` equal bins on ``[lower, upper)`` and two open ends.

    Norm sqrt(p), diameter sqrt(2 p). The spans come from earlier releases.
    """

    lower: FloatArray
    upper: FloatArray
    bins: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.lower), self.bins + 2)

    @property
    def describe(self) -> str:
        return f"histogram of each feature on its released span, {self.bins} bins"

    def of(self, records: Records) -> IntArray:
        with np.errstate(over="ignore"):
            position = records.x - self.lower
            position *= self.bins / (self.upper - self.lower)
        np.clip(position, -1, self.bins, out=position)
        position += _first_bin(self.shape) + 1.0  # not negative any more: the conversion to integers is a floor
        return _counts(position.astype(np.int64), self.shape)


@dataclass(frozen=True, slots=True)
class DistanceHistograms(FeatureHistograms):
    """One histogram per feature over octaves of the distance from a middle: norm sqrt(p), diameter sqrt(2 p).

    Bin 0 holds what is nearer than the feature's step, or than 2**-40; bin k is ``[2**(k-41), 2**(k-40))``. The
    distance is one float subtraction and its bin is read off the bits, so a record's bin is an exact function of the
    record; a difference that overflows lies in the last bin, as all large ones do. Middles and steps come from earlier
    releases.
    """

    middle: FloatArray
    step: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.middle), 2 * OCTAVES + 2)

    @property
    def describe(self) -> str:
        return f"histogram of the distance of each feature from its middle, {self.shape[1]} bins"

    def of(self, records: Records) -> IntArray:
        with np.errstate(over="ignore"):
            distance = np.abs(records.x - self.middle)
        octave = _octave_of(distance) - (2 * OCTAVES + 1)
        octave[distance < self.step] = 0
        octave += _first_bin(self.shape)
        return _counts(octave, self.shape)


@dataclass(frozen=True, slots=True)
class ProjectionHistogram(Histogram):
    """Counts on a grid of (z . direction, group of y): each record is in exactly one cell, norm 1, diameter sqrt(2).

    The projection is a product of integers below 2**53, hence exact, and compared with fixed edges.
    """

    whitening: Whitening
    direction: FloatArray
    bins: Bins
    group_of: IntArray
    n_groups: int
    columns: int

    @property
    def edges(self) -> FloatArray:
        """Edges of the columns, in standard deviations of the projection."""
        return np.linspace(-REACH, REACH, self.columns + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.columns, self.n_groups)

    @property
    def describe(self) -> str:
        return f"histogram of first direction and response, {self.columns} x {self.n_groups} cells"

    def of(self, records: Records) -> IntArray:
        z = self.whitening.integers(records)[:, :-1]
        scale = 2.0 ** min(20, 36 - z.shape[1].bit_length())
        position = z @ np.rint(self.direction / np.linalg.norm(self.direction) * scale)
        inner = self.edges[1:-1] * (self.whitening.unit * scale)
        column = np.searchsorted(inner, position, side="right")
        cell = column * self.n_groups + self.group_of[self.bins.index(records)]
        return np.bincount(cell, minlength=self.columns * self.n_groups).reshape(self.shape)


_TOP = 3 if sys.byteorder == "little" else 0
"""Which 16 bits of a float64 hold its sign and exponent (and, below them, four bits of the fraction)."""


def _octaves() -> NDArray[np.uint8]:
    """Octave bin of each pattern of the top 16 bits of a float64 (IEEE 754).

    Reading the bits makes the bin an exact function of the number. Bin ``2 * OCTAVES + 1`` holds zero and what is
    below 2**-40 in absolute value; k bins further up is ``[2**(k-41), 2**(k-40))``, down the same with a minus.
    """
    pattern = np.arange(2**16) >> 4
    exponent = np.clip((pattern & 0x7FF) - 1023 + OCTAVES + 1, 0, 2 * OCTAVES + 1)
    return np.asarray(np.where(pattern & 0x800, -exponent, exponent) + 2 * OCTAVES + 1, dtype=np.uint8)


_OCTAVE_OF = _octaves()


def _octave_of(values: FloatArray) -> IntArray:
    """Octave bin of each number of a table."""
    tops = np.ascontiguousarray(np.ascontiguousarray(values).view(np.uint16)[:, _TOP::4])
    return np.take(_OCTAVE_OF, tops, mode="clip").astype(np.int64)


def octave_edges() -> FloatArray:
    """Edges between octaves (a negative power of two itself falls one bin lower in `OctaveHistograms`)."""
    powers = 2.0 ** np.arange(-OCTAVES, OCTAVES + 1)
    return np.concatenate([-powers[::-1], powers])


def _first_bin(shape: tuple[int, ...]) -> IntArray:
    """Number of each feature's first bin when the histograms of all features lie one after another."""
    features, bins = shape
    return np.arange(features) * bins


def _counts(index: IntArray, shape: tuple[int, ...]) -> IntArray:
    """Histograms of a table of such bin numbers."""
    return np.bincount(index.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
