"""One draw of everything random in a fit: what is not known before, but whose law is."""

from dataclasses import dataclass

import numpy as np

from sfumato.planner.population import Population
from sfumato.privacy.events import Gaussian
from sfumato.privacy.mechanisms import gaussian_std
from sfumato.privacy.plan import Plan
from sfumato.solve.spectral import directions_in_x
from sfumato.solve.subspace import subspace_distance
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, Relation


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One draw of everything random: a population with the rest of w, and the sampling error of n records."""

    population: Population
    plan: Plan
    relation: Relation
    n: float
    w: FloatArray
    sampling: FloatArray
    rng: np.random.Generator

    def std(self, query: BoundedSum, name: str) -> FloatArray:
        """Noise of the plan's line, per record, as the door will add it."""
        event = self.plan.line(name).event
        assert isinstance(event, Gaussian)
        return np.asarray(gaussian_std(query, self.relation, event) * query.grid / self.n)

    def noise(self, query: BoundedSum, name: str) -> FloatArray:
        """A draw of it."""
        return np.asarray(self.std(query, name) * self.rng.standard_normal(query.shape))

    def sampled(self, values: FloatArray) -> FloatArray:
        """Sampling error across the index of the mean of w times `values` (m, q) over n records."""
        return np.asarray(self.sampling.T @ values / np.sqrt(len(values) * self.n))

    def distance(self, whitening: Whitening, coefficients: FloatArray) -> float:
        """Distance between the directions of the coefficients and the true ones."""
        spectrum = directions_in_x(coefficients, 0.0, whitening.matrix, self.population.n_directions)
        return subspace_distance(spectrum.directions, self.population.directions)


def draw(population: Population, plan: Plan, relation: Relation, n: float, rng: np.random.Generator) -> Draw:
    """A fresh draw."""
    rest = population.n_features - population.n_directions
    normal = rng.standard_normal((2, len(population.index), rest))
    return Draw(population, plan, relation, n, np.column_stack([population.index, normal[0]]), normal[1], rng)
