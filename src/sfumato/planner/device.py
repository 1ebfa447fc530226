"""Fully local SIR on a population: how many people it takes when every record is noised by its owner."""

import numpy as np

from sfumato.local.records import COUNT, RecordRandomiser, solve
from sfumato.planner.population import Population, clipped_second_moment
from sfumato.release import Release
from sfumato.solve.subspace import subspace_distance
from sfumato.typing import FloatArray


def local_loss(device: RecordRandomiser, n: float, population: Population, rng: np.random.Generator) -> float:
    """Distance of `LocalSIR` from n people: the means of their answers plus noise of known spread over sqrt(n)."""
    exact = _means(device, population, rng)
    total = Release(exact + device.stds * rng.standard_normal(len(exact)) / np.sqrt(n), device.stds / np.sqrt(n))
    found, _ = solve(total, 1.0, device.n_features, device.n_slices)
    return subspace_distance(found[:, : population.n_directions].T, population.directions)


def _means(device: RecordRandomiser, population: Population, rng: np.random.Generator) -> FloatArray:
    p, k, h = population.n_features, population.n_directions, device.n_slices
    rest = rng.standard_normal((len(population.index), p - k))
    w = np.column_stack([population.index, rest])
    x = w @ population.mixing.T / device.cap
    clip = np.minimum(1.0, 1.0 / np.linalg.norm(x, axis=1))
    place = np.minimum((population.ranks * h).astype(int), h - 1)
    indicator = np.eye(h)[place]
    along = (population.index * clip[:, None]).T @ indicator / len(w)
    first = np.vstack([along, np.zeros((p - k, h))])  # across the index the true means are zero
    second = clipped_second_moment(w, clip, k)
    mixing = population.mixing / device.cap
    sums = np.column_stack([(mixing @ first).T, np.full(h, COUNT / h)])
    return np.concatenate([sums.ravel(), (mixing @ second @ mixing.T)[np.triu_indices(p)]])
