"""Canonical correlations on a crowd: known noise on the joint covariance, in coordinates that earlier noise bent."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from sfumato.iterate.canonical import joint_pairs
from sfumato.planner.crowd import Crowd, normal_points
from sfumato.planner.law import BOX, WIDEST, Law, useless
from sfumato.records import Records
from sfumato.solve.canonical import Canonical, canonical
from sfumato.solve.subspace import subspace_distance


@dataclass(frozen=True, slots=True)
class Pairs(Law):
    """Two tables of independent normal columns, of which `n_directions` pairs have the squared correlation `signal`.

    `n_features` counts the columns of both tables; the loss is the mean over the tables.
    """

    meaning: ClassVar[str] = "the squared correlation of a pair"

    n_targets: int = 1

    @property
    def useless(self) -> float:
        q, k = self.n_targets, self.n_directions
        return (useless(self.n_features - q, k) + useless(q, k)) / 2.0

    @property
    def quick(self) -> bool:
        q = self.n_targets
        return self.n_features <= WIDEST and self.n_directions < max(q, self.n_features - q)

    def sized(self, n_features: int) -> Self:
        """The same share of the columns in either table."""
        k = self.n_directions
        q = min(max(round(self.n_targets * n_features / self.n_features), k), n_features - k)
        return replace(self, n_features=max(n_features, 2 * k), n_targets=max(q, k))

    def points(self, rng: np.random.Generator) -> Records:
        """Sum and difference of a pair are independent: a cut by length keeps them so."""
        p, k, r = self.n_features - self.n_targets, self.n_directions, np.sqrt(self.signal)
        x = normal_points(self.n_features, rng).reshape(-1, self.n_features)
        both, apart = np.sqrt((1 + r) / 2) * x[:, :k], np.sqrt((1 - r) / 2) * x[:, p : p + k]
        x[:, :k], x[:, p : p + k] = both + apart, both - apart
        return Records(x / BOX, np.zeros(len(x)))

    def private(self, crowd: Crowd) -> float:
        p = self.n_features - self.n_targets
        _, found = joint_pairs(crowd, self.grid, p, float(crowd.n), self.n_directions)
        return self._distance(found)

    def plain(self, crowd: Crowd) -> float:
        p = self.n_features - self.n_targets
        return self._distance(canonical(crowd.covariance(), p, 0.0, crowd.n, self.n_directions))

    def _distance(self, found: Canonical) -> float:
        weights, k = (found.x_weights, found.y_weights), self.n_directions
        return float(np.mean([subspace_distance(w, np.eye(k, w.shape[1])) for w in weights]))
