"""Histograms: each record adds one count to one bin (or one per feature).

The common proof: a record's contribution is a 0/1 vector with exactly `m` ones (m = 1, or p for one histogram
per feature), so its length is sqrt(m), and two records differ in at most 2m places by 1, so the diameter is
sqrt(2 m). Both are attained.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.blocks import along, blocks, side_by_side
from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.statistics.lookup import places
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
        return places(self.edges, y, "right").astype(np.int16)


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
        lengths = np.empty(len(records))
        for here, x in self.source.blocks(records.x):
            lengths[here] = squared_norms(x)
        return np.bincount(places(edges, lengths), minlength=self.BINS)


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
        first = _first_bin(self.shape)
        return _counts(self.shape, (_octave_of(part) + along(first, part) for part in _parts(records.x)))


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
            scale: FloatArray = self.bins / (self.upper - self.lower)
            first = np.add(_first_bin(self.shape), 1.0, dtype=np.float64)
            return _counts(self.shape, (self._bin(part, scale, first) for part in _parts(records.x)))

    def _bin(self, x: FloatArray, scale: FloatArray, first: FloatArray) -> NDArray[np.int32]:
        position = x - along(self.lower, x)
        position *= along(scale, x)
        np.clip(position, -1, self.bins, out=position)
        position += along(first, x)  # not negative any more: the conversion to integers is a floor
        return position.astype(np.int32)


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
        first = _first_bin(self.shape) - _LEAST_EXPONENT
        with np.errstate(over="ignore"):
            return _counts(self.shape, (self._bin(part, first) for part in _parts(records.x)))

    def _bin(self, x: FloatArray, first: IntArray) -> IntArray:
        distance = x - along(self.middle, x)
        np.abs(distance, out=distance)
        distance *= distance >= along(self.step, x)  # every number takes the same time, however many are near
        np.clip(distance, 2.0 ** (-OCTAVES - 1), 2.0**OCTAVES, out=distance)
        octave = distance.view(np.int64)
        octave >>= _FRACTION_BITS
        octave += along(first, x)
        return octave


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
        column = places(inner, position, "right")
        cell = column * self.n_groups + self.group_of[self.bins.index(records)]
        return np.bincount(cell, minlength=self.columns * self.n_groups).reshape(self.shape)


_FRACTION_BITS = 52
_LEAST_EXPONENT = 1023 - OCTAVES - 1
"""Of a float64: the bits below its exponent, and the exponent, as they hold it, of numbers just below 2**-40."""
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


def _parts(x: FloatArray) -> Iterator[FloatArray]:
    """A table in pieces that fit the cache, rows side by side."""
    x = np.ascontiguousarray(x)
    return (part for here in blocks(*x.shape) for part in side_by_side(x[here]))


def _counts(shape: tuple[int, ...], pieces: Iterable[IntArray | NDArray[np.int32]]) -> IntArray:
    """Histograms of such bin numbers."""
    total = np.zeros(shape[0] * shape[1], dtype=np.int64)
    for index in pieces:
        total += np.bincount(index.ravel(), minlength=len(total))
    return total.reshape(shape)
