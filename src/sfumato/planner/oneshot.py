"""The one-shot method on a population: noise on slice sums and on the second moment, known from the plan."""

import numpy as np

from sfumato.iterate.oneshot import SLICES
from sfumato.planner.evolution import Draw, shape
from sfumato.planner.population import clipped_second_moment
from sfumato.solve.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.statistics.histograms import Bins
from sfumato.statistics.slices import SlicedMoments
from sfumato.typing import FloatArray


def one_shot_loss(d: Draw) -> float:
    """Distance after the single release of `iterate.oneshot`."""
    whitening = shape(d, 1.0)
    p = d.population.n_features
    to_z = whitening.matrix @ d.population.mixing
    length = np.linalg.norm(d.w @ to_z.T, axis=1)
    clip = np.minimum(1.0, whitening.cap / length)
    place = np.minimum((d.population.ranks * SLICES).astype(int), SLICES - 1)
    query = SlicedMoments(whitening, Bins(np.arange(1, SLICES) / SLICES), np.arange(SLICES), SLICES)
    noise = d.noise(query, "slices")
    floor = noise_edge(float(d.std(query, "slices")[SLICES * p]), p)
    sums = to_z @ _slice_sums(d, clip, place) + noise[: SLICES * p].reshape(SLICES, p).T
    second = to_z @ clipped_second_moment(d.w, clip, d.population.n_directions) @ to_z.T + upper_to_full(
        noise[SLICES * p :], p
    )
    mean = sums.sum(axis=1)
    root = inverse_root(second - np.outer(mean, mean), floor)
    scaled = root @ (sums - mean[:, None] / SLICES) * np.sqrt(SLICES)
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    return d.distance(whitening, root @ (u * s))


def _slice_sums(d: Draw, clip: FloatArray, place: FloatArray) -> FloatArray:
    """Mean of clipped w by slice. Across the index only what the index leaves of the indicator is sampling error:
    the rest moves the second moment alike, and the solution divides one by the other."""
    indicator = np.eye(SLICES)[place]
    index = d.population.index * clip[:, None]
    along = index.T @ indicator / len(index)
    fitted = index @ np.linalg.lstsq(index, indicator - indicator.mean(axis=0), rcond=None)[0]
    left = indicator - indicator.mean(axis=0) - fitted
    return np.vstack([along, d.sampled(left * clip[:, None])])
