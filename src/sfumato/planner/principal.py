"""Principal components on a crowd: known noise on the rough and on the refined covariance."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.iterate.principal import Method, principal
from sfumato.planner.crowd import Crowd, normal_points
from sfumato.planner.law import BOX, Law
from sfumato.records import Records
from sfumato.solve.rotated import descending
from sfumato.solve.subspace import subspace_distance
from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Spiked(Law):
    """Normal records whose components stand out of equal variances: the spiked covariance model (Johnstone 2001).

    The components have variance ``1 + signal p / (k (1 - signal))`` and all others 1: what stands out is the part
    `signal` of the whole variance.

    Examples
    --------
    >>> Spiked(8, 2, 0.5).variances
    array([5., 5., 1., 1., 1., 1., 1., 1.])
    """

    meaning: ClassVar[str] = "how much of the variance of x they explain"

    @property
    def variances(self) -> FloatArray:
        """Eigenvalues of the covariance, largest first."""
        p, k = self.n_features, self.n_directions
        spike = self.signal * p / (k * (1.0 - self.signal))
        return np.concatenate([np.full(k, 1.0 + spike), np.ones(p - k)])

    def points(self, rng: np.random.Generator) -> Records:
        scale = np.sqrt(self.variances / self.variances[0]) / BOX
        x = normal_points(self.n_features, rng).reshape(-1, self.n_features) * scale
        return Records(x, np.zeros(len(x)))

    def private(self, crowd: Crowd) -> float:
        method: Method = "refined" if any(line.name == "refined" for line in crowd.plan.lines) else "one-shot"
        found = principal(crowd, self.grid, crowd.n_public, self.n_directions, method)
        return self._distance(found.vectors)

    def plain(self, crowd: Crowd) -> float:
        return self._distance(descending(crowd.covariance())[1])

    def _distance(self, vectors: FloatArray) -> float:
        k = self.n_directions
        return subspace_distance(vectors[:, :k].T, np.eye(k, self.n_features))
