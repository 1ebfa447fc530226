"""The one-shot method on a population: noise on slice sums and on the second moment, known from the plan."""

import numpy as np

from sfumato.iterate.oneshot import SLICES
from sfumato.iterate.picture import groups
from sfumato.planner.draws import Draw
from sfumato.planner.evolution import shape
from sfumato.planner.population import clipped_second_moment
from sfumato.planner.response import seen_ranks
from sfumato.solve.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.statistics.slices import SlicedMoments
from sfumato.typing import FloatArray


def one_shot_loss(d: Draw) -> float:
    """Distance after the single release of `iterate.oneshot`."""
    whitening = shape(d, 1.0)
    p = d.population.n_features
    to_z = whitening.matrix @ d.population.mixing
    length = np.linalg.norm(d.w @ to_z.T, axis=1)
    clip = np.minimum(1.0, whitening.cap / length)
    ranks, place = seen_ranks(d)
    slice_of, edges = groups(ranks, max(SLICES, d.population.n_directions + 1))
    h = len(edges) - 1
    query = SlicedMoments(whitening, ranks.bins, slice_of, h)
    noise = d.noise(query, "slices")
    floor = noise_edge(float(d.std(query, "slices")[h * p]), p)
    sums = to_z @ _slice_sums(d, clip, np.eye(h)[slice_of[place]]) + noise[: h * p].reshape(h, p).T
    second = to_z @ clipped_second_moment(d.w, clip, d.population.n_directions) @ to_z.T + upper_to_full(
        noise[h * p :], p
    )
    mean = sums.sum(axis=1)
    root = inverse_root(second - np.outer(mean, mean), floor)
    share = np.maximum(np.bincount(slice_of, ranks.probabilities, minlength=h), 0.5 / h)
    scaled = root @ ((sums - np.outer(mean, share)) / np.sqrt(share))
    missing = max(0, d.population.n_directions - h)
    u, s, _ = np.linalg.svd(np.pad(scaled, ((0, 0), (0, missing))), full_matrices=False)
    return d.distance(whitening, root @ (u * s))


def _slice_sums(d: Draw, clip: FloatArray, indicator: FloatArray) -> FloatArray:
    """Mean of clipped w by slice. Across the index only what the index leaves of the indicator is sampling error:
    the rest moves the second moment alike, and the solution divides one by the other."""
    index = d.population.index * clip[:, None]
    along = index.T @ indicator / len(index)
    fitted = index @ np.linalg.lstsq(index, indicator - indicator.mean(axis=0), rcond=None)[0]
    left = indicator - indicator.mean(axis=0) - fitted
    return np.vstack([along, d.sampled(left * clip[:, None])])
