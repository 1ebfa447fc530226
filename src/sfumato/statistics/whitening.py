"""The released linear map that makes records roughly spherical, applied to integers exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.blocks import pieces
from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.sums import column_squares, round_within, shrinkage
from sfumato.typing import FloatArray

CAP_UNITS = 2.0**15 - 1.0
"""Grid units of the longest whitened record: 16 bits with the sign."""

_WORST = 1e12
"""Condition from which on an inverse is mostly rounding."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Whitening:
    """``z = W (x - mean)``, clipped radially to `cap`, as integers; with a constant column for the intercept.

    Parameters
    ----------
    source : Grid
        Integer grid of x, in half widths.
    matrix : ndarray of shape (p, p)
        W, acting on half widths; rounded to `integer_matrix`, and *that* is the map (`exact_matrix`).
    mean : ndarray of shape (p,)
        Released centre, in half widths.
    cap : float
        Longest z kept. Clipping along the radius keeps spherical symmetry, and with it the linearity
        condition sufficient dimension reduction rests on; clipping coordinates would not.

    Notes
    -----
    x and W are integers of so few bits that their products and sums stay below 2**53: the matrix product is
    exact whatever the shape of the chunk, so a record's z does not depend on its neighbours.
    """

    source: Grid
    matrix: FloatArray
    mean: FloatArray
    cap: float

    @property
    def unit(self) -> float:
        """Grid units per unit of z, an integer: the value of the constant column."""
        return float(np.floor(CAP_UNITS / max(self.cap, 1.0)))

    @property
    def integer_matrix(self) -> FloatArray:
        """W in units of `matrix_unit`."""
        return np.rint(self.matrix / self.matrix_unit)

    @property
    def matrix_unit(self) -> float:
        """Resolution of W: its largest entry has as many bits as exactness leaves."""
        bits = 51 - self.source.bits - len(self.mean).bit_length()
        return float(np.abs(self.matrix).max()) / 2.0**bits

    @property
    def exact_matrix(self) -> FloatArray:
        """The map as applied, acting on half widths."""
        return self.integer_matrix * self.matrix_unit

    @property
    def inverse(self) -> FloatArray:
        """The way back from z to half widths: the inverse of the map as applied, where it has one to speak of.

        A pseudo-inverse takes five times as long, half of a fit of 1,000 features.
        """
        matrix = self.exact_matrix
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            return np.asarray(np.linalg.pinv(matrix), dtype=np.float64)
        condition = np.abs(matrix).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
        return np.asarray(inverse if condition < _WORST else np.linalg.pinv(matrix), dtype=np.float64)

    def integers(self, records: Records) -> FloatArray:
        """Whitened integer rows (n, p + 1); the last column is the constant `unit`."""
        return self._whitened(records).columns.T.astype(np.float64)

    def blocks(self, records: Records, least: int) -> Iterator[tuple[slice, FloatArray, NDArray[np.uint32]]]:
        """At least so many records at a time: which, their whitened integers (p + 1, rows), and their squared lengths.

        A record is a column: long rows are faster to work on.
        """
        whitened = self._whitened(records)
        for here in pieces(len(records), least):
            yield here, whitened.columns[:, here].astype(np.float64), whitened.squares[here]

    def _whitened(self, records: Records) -> "_Whitened":
        return records.derive(self, lambda: self._compute(records))

    def _compute(self, records: Records) -> "_Whitened":
        p, n = len(self.mean), len(records)
        matrix, scale = self.integer_matrix, self.matrix_unit * self.unit / 2.0**self.source.bits
        mean = np.rint(np.clip(self.mean, -1.0, 1.0) * 2.0**self.source.bits)
        shift = (matrix @ mean)[:, None]
        reach = scale * 2.0 ** (self.source.bits + 1) * np.abs(matrix).sum(axis=1).max()
        found = _Whitened(np.full((p + 1, n), self.unit, dtype=np.int16), np.empty(n, dtype=np.uint32))
        for here, x in self.source.blocks(records.x):
            z = matrix @ x.T
            z -= shift
            z *= scale
            round_within(z, p, reach)
            z *= shrinkage(column_squares(z), self.cap * self.unit)
            np.trunc(z, out=z)
            found.columns[:-1, here] = z
            found.squares[here] = column_squares(z) + self.unit**2
        return found


class _Whitened(NamedTuple):
    """Whitened records as they are kept, a column each; the square of its length is below 2 * CAP_UNITS**2 < 2**31."""

    columns: NDArray[np.int16]
    squares: NDArray[np.uint32]
