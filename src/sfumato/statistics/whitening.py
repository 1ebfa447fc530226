"""The released linear map that makes records roughly spherical, applied to integers exactly."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.sums import round_within, shrink_into_ball, squared_norms
from sfumato.typing import FloatArray

CAP_UNITS = 2.0**15
"""Grid units of the longest whitened record."""


@dataclass(frozen=True, slots=True)
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
        return float(np.floor(CAP_UNITS / self.cap))

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

    def integers(self, records: Records) -> FloatArray:
        """Whitened integer rows (n, p + 1); the last column is the constant `unit`."""
        x = self.source.integers(records.x)
        x -= np.rint(np.clip(self.mean, -1.0, 1.0) * 2.0**self.source.bits)
        z = np.empty((len(x), x.shape[1] + 1))
        z[:, :-1] = x @ self.integer_matrix.T
        body = z[:, :-1]
        body *= self.matrix_unit * self.unit / 2.0**self.source.bits
        round_within(body, body.shape[1])
        z[:, :-1] = shrink_into_ball(body, squared_norms(body), self.cap * self.unit)
        z[:, -1] = self.unit
        return z
