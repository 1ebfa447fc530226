"""Discriminants on a crowd: known noise on class sizes, class sums and the second moment."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.iterate.discriminant import discriminate
from sfumato.iterate.ranks import MOST_CLASSES, find_ranks
from sfumato.iterate.shape import rough_shape
from sfumato.planner.crowd import Crowd, normal_points
from sfumato.planner.law import BOX, Law
from sfumato.records import Records, Response
from sfumato.solve.spectral import directions_in_x
from sfumato.solve.subspace import subspace_distance
from sfumato.solve.symmetric import inverse_root
from sfumato.typing import FloatArray

TWO_CLASSES = Response(3)
"""Declared, so that the last code is that of all others."""


@dataclass(frozen=True, slots=True)
class Groups(Law):
    """Classes of equal size, equally spaced along one direction of which they explain the part `signal`.

    `response` says how many they are; two, if their names were not declared.
    """

    meaning: ClassVar[str] = "how much of it the classes explain"

    response: Response = TWO_CLASSES

    @property
    def n_classes(self) -> int:
        """Classes that exist; of declared ones the last code is that of all others."""
        known = 2 if self.response.hashed else (self.response.categories or 3) - 1
        return min(max(known, 2), MOST_CLASSES)

    def points(self, rng: np.random.Generator) -> Records:
        """Either side of every class, and its mirror image: means are exact, and a cut by length keeps them so."""
        h = self.n_classes
        w = np.concatenate([half := normal_points(self.n_features, rng, h), half])
        code, side = np.arange(len(w)) % h, np.repeat([1.0, -1.0], len(half))
        place = np.arange(h) - (h - 1) / 2.0
        index = np.sqrt(self.signal) * (place / place.std())[code]
        index += np.sqrt(1.0 - self.signal) * side * np.abs(w[:, 0, 0])
        mirrored = w[:, :, 0] < 0
        w[:, :, 0] = index[:, None] * np.where(mirrored, -1.0, 1.0)
        y = np.where(mirrored, h - 1 - code[:, None], code[:, None])
        return Records(w.reshape(-1, self.n_features) / BOX, y.ravel())

    def private(self, crowd: Crowd) -> float:
        n = float(crowd.n)
        ranks = find_ranks(crowd, self.response)
        whitening = rough_shape(crowd, self.grid, n, 1.0)
        codes = ranks.bins.count if self.response.hashed else ranks.bins.count - 1
        fit = discriminate(crowd, whitening, ranks, codes, n, 1)
        return self._distance(fit.coefficients, fit.root @ whitening.matrix)

    def plain(self, crowd: Crowd) -> float:
        one_hot = np.eye(self.n_classes)[crowd.points.y.astype(int)] * crowd.counts[:, None]
        sums = one_hot.T @ crowd.points.x
        share = one_hot.sum(axis=0) / crowd.n
        means = sums / crowd.n - np.outer(share, sums.sum(axis=0) / crowd.n)
        root = inverse_root(crowd.covariance(), 1e-12)
        return self._distance(root @ (means.T / np.sqrt(np.maximum(share, 1e-12))), root)

    def _distance(self, coefficients: FloatArray, to_z: FloatArray) -> float:
        return subspace_distance(directions_in_x(coefficients, 0.0, to_z, 1).directions, np.eye(1, self.n_features))
