"""Second-order reduction on a crowd: known noise on sums and second moments by slice."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from sfumato.iterate.ranks import find_ranks
from sfumato.iterate.second_order import Kernel, second_order
from sfumato.iterate.shape import rough_shape
from sfumato.planner.crowd import Crowd, normal_points
from sfumato.planner.law import BOX, WIDEST, Law
from sfumato.records import Records, Response
from sfumato.solve.spectral import directions_in_x
from sfumato.solve.subspace import subspace_distance
from sfumato.solve.symmetric import inverse_root
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray

MOST_MOMENTS = 1000
"""Slices times features for which a forecast is quick."""
_POOL = 20_000


@dataclass(frozen=True, slots=True)
class Even(Law):
    """Independent normal features and a numeric response that depends on one direction evenly, through its square.

    What slice means cannot see; the square explains the part `signal` of the response.
    """

    meaning: ClassVar[str] = "how much of y its square explains"

    kernel: Kernel = "save"
    n_slices: int = 5

    @property
    def quick(self) -> bool:
        return 1 < self.n_features <= WIDEST and self.n_features * self.n_slices <= MOST_MOMENTS

    def points(self, rng: np.random.Generator) -> Records:
        """As many rows in every slice, and in each of them the variance of every other coordinate is 1."""
        w = normal_points(self.n_features, rng, self.n_slices)
        for rows in np.split(np.arange(len(w)), self.n_slices):
            w[rows] /= np.sqrt((w[rows] ** 2).mean(axis=(0, 1)))
        w[:, :, 0] = np.sign(w[:, :, 0]) * self._sizes(len(w))[:, None]
        rank = (rng.permuted((np.arange(len(w)) + 0.5).reshape(self.n_slices, -1), axis=1) / len(w)).ravel()
        return Records(w.reshape(-1, self.n_features) / BOX, np.repeat(ndtri(rank), w.shape[1]))

    def _sizes(self, rows: int) -> FloatArray:
        """Of the index, equally likely ones in every slice of the response, the lowest slice first."""
        rng = np.random.default_rng(0)
        size = np.abs(rng.standard_normal(_POOL))
        y = np.sqrt(self.signal / 2.0) * size**2 + np.sqrt(1.0 - self.signal) * rng.standard_normal(_POOL)
        slices = [np.sort(inside) for inside in np.array_split(size[np.argsort(y)], self.n_slices)]
        pieces = (piece for inside in slices for piece in np.array_split(inside, rows // self.n_slices))
        return np.array([np.sqrt((piece**2).mean()) for piece in pieces])

    def private(self, crowd: Crowd) -> float:
        return self._distance(crowd, rough_shape(crowd, self.grid, float(crowd.n), 1.0))

    def plain(self, crowd: Crowd) -> float:
        root = inverse_root(crowd.covariance(), 1e-12)
        exact = Whitening(self.grid, root, np.zeros(self.n_features), 30.0 * float(np.sqrt(self.n_features)))
        return self._distance(replace(crowd, silent=True), exact)

    def _distance(self, crowd: Crowd, whitening: Whitening) -> float:
        n = float(crowd.n)
        ranks = find_ranks(crowd, Response())
        fit = second_order(crowd, whitening, ranks, n, 1, self.kernel, self.n_slices)
        found = directions_in_x(fit.coefficients, 0.0, fit.root @ whitening.matrix, 1)
        return subspace_distance(found.directions, np.eye(1, self.n_features))
