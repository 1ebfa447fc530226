"""How the known noise travels through a private fit: its steps, with the records replaced by their law.

Coordinates w are those in which x is standard normal and the first k are the index. Along the index, means are taken
over the points of the population. Across it, a gradient has three parts, each known: what is left to correct (by
Stein's lemma minus the current error times the mean slope of the clipped residual), the sampling error of n
records (a normal matrix whose covariance is that of the clipped residual over n, the same records in every step),
and the privacy noise, whose standard deviation is asked of the very query that will be released.
"""

import numpy as np

from sfumato.bounds import Grid
from sfumato.iterate.descent import Schedule, State, compress, init
from sfumato.iterate.ranks import Ranks
from sfumato.iterate.shape import RADIUS_LEVEL
from sfumato.planner.draws import Draw
from sfumato.planner.response import seen_ranks
from sfumato.release import Release
from sfumato.solve.counts import kept_share, quantile
from sfumato.solve.subspace import subspace_distance
from sfumato.solve.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct
from sfumato.statistics.histograms import NormHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray


def shape(d: Draw, cap: float) -> Whitening:
    """The whitening map, from a second moment with its known noise: `rough_shape` on a population."""
    mixing, p = d.population.mixing, d.population.n_features
    grid = Grid(np.zeros(p), np.ones(p))
    length = np.linalg.norm(d.w @ mixing.T, axis=1)
    lengths = NormHistogram(grid)
    seen = _histogram(d, lengths, "radius", length, lengths.radii)
    radius = quantile(seen.value, lengths.radii, RADIUS_LEVEL)
    clip = np.minimum(1.0, radius / length) ** 2
    kept = float((clip * length**2).sum() / (length**2).sum())
    # The points' own second moment is known to be the identity: a control variate for the clipped one.
    second = (d.w.T * (clip - kept)) @ d.w / len(d.w) + kept * np.eye(p)
    query = Moments(grid, radius)
    noisy = mixing @ second @ mixing.T + upper_to_full(d.noise(query, "shape")[p:], p)
    floor = noise_edge(float(d.std(query, "shape")[p]), p)
    scale = np.sqrt(kept_share(seen, lengths.radii, radius))
    return Whitening(grid, inverse_root(noisy, floor) * scale, np.zeros(p), cap * float(np.sqrt(p)))


def _histogram(d: Draw, query: BoundedSum, name: str, values: FloatArray, edges: FloatArray) -> Release:
    """The noisy histogram with these upper edges of n records like the points."""
    counts = np.bincount(np.searchsorted(edges[:-1], values), minlength=len(edges)) * (d.n / len(values))
    std = np.broadcast_to(d.n * d.std(query, name), query.shape)
    return Release(counts + d.n * d.noise(query, name), std)


def descent_loss(d: Draw, schedule: Schedule) -> float:
    """Distance after the steps of the descent."""
    whitening = shape(d, 3.0)
    ranks, place = seen_ranks(d, schedule.bins)
    to_z, k = whitening.matrix @ d.population.mixing, d.population.n_directions
    z = d.w @ to_z.T
    state = init(whitening, ranks, k, schedule)
    for t in range(1, len(schedule.shares) + 1):
        state = compress(_step(d, whitening, (ranks, place), (to_z, z), state, t, schedule), k, schedule)
    return d.distance(whitening, state.coefficients[:-1])


def _step(
    d: Draw,
    whitening: Whitening,
    response: tuple[Ranks, IntArray],
    whitened: tuple[FloatArray, FloatArray],
    state: State,
    t: int,
    schedule: Schedule,
) -> State:
    """One step; `whitened` is the map from w to z, and z itself; `response` the ranks, and the bin of each point."""
    (to_z, z), (ranks, place) = whitened, response
    e = state.table[place] - z @ state.coefficients[:-1] - state.coefficients[-1]
    size, length = np.sqrt((z**2).sum(axis=1) + 1.0), np.linalg.norm(e, axis=1)
    residual = Residual(whitening, ranks.bins, state.table, state.coefficients, state.scale)
    scale = state.scale
    if t > 1:
        sizes = ResidualHistogram(residual)
        seen = _histogram(d, sizes, f"residual {t}", size * length / np.sqrt(z.shape[1] + 1.0), sizes.sizes)
        scale = quantile(seen.value, sizes.sizes, schedule.level)
        residual = Residual(whitening, ranks.bins, state.table, state.coefficients, scale)
    query = ResidualProduct(residual, scale)
    factor = np.minimum(1.0, scale * np.sqrt(z.shape[1] + 1.0) / np.maximum(size * length, 1e-300))
    clipped = e * factor[:, None]
    gradient = np.vstack([to_z @ _mean_product(d, to_z, state, e, factor), clipped.mean(axis=0)])
    coefficients = state.coefficients + schedule.steps[t - 1] * (gradient + d.noise(query, f"step {t}"))
    return State(state.table, coefficients, 0.0, scale)


def _mean_product(d: Draw, to_z: FloatArray, state: State, e: FloatArray, factor: FloatArray) -> FloatArray:
    """Mean of w times the clipped residual over n records: along the index, then across it."""
    clipped = e * factor[:, None]
    along = d.population.index.T @ clipped / len(e)
    unit = e / np.maximum(np.linalg.norm(e, axis=1, keepdims=True), 1e-300)
    cut = np.where(factor < 1.0, factor, 0.0)
    # A clipped residual moves only across itself: slope factor (I - u u^T); otherwise freely.
    slope = factor.mean() * np.eye(e.shape[1]) - (unit.T * cut) @ unit / len(e)
    error = (to_z.T @ state.coefficients[:-1])[d.population.n_directions :]
    return np.vstack([along, d.sampled(clipped) - error @ slope])


def plain_loss(d: Draw, slices: int = 20) -> float:
    """Distance of ordinary SIR without any privacy: least squares of the slice indicators, sampling error alone."""
    place = np.minimum((d.population.ranks * slices).astype(int), slices - 1)
    share = np.bincount(place, minlength=slices) / len(place)
    f = (np.eye(slices)[place] - share) / np.sqrt(np.maximum(share, 1e-12))
    index = d.population.index
    along = np.linalg.lstsq(index, f, rcond=None)[0]
    u, *_ = np.linalg.svd(np.vstack([along, d.sampled(f - index @ along)]), full_matrices=False)
    found = np.linalg.solve(d.population.mixing.T, u[:, : d.population.n_directions])
    return subspace_distance(found.T, d.population.directions)
