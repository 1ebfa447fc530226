"""Principal directions: rough moments first, then moments in the coordinates that tell the subspace apart."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.privacy.curator import Curator
from sfumato.privacy.plan import Line
from sfumato.solve.counts import quantile
from sfumato.solve.rotated import descending, revealing_map
from sfumato.solve.symmetric import noise_edge, upper_to_full
from sfumato.statistics.histograms import Bins, NormHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray

LEVEL = 0.5
REACH = 1.0
CENTRE_WEIGHT = 0.3


def one_slice(whitening, weight=CENTRE_WEIGHT):
    return SlicedMoments(whitening, Bins(np.empty(0)), np.zeros(1, dtype=np.int64), 1, weight)


def principal(curator, grid, n_records, k):
    p = grid.n_features
    lengths = NormHistogram(grid)
    counts = curator.answer(lengths, "radius")
    n = float(n_records) if n_records is not None else max(float(counts.value.sum()), 10.0 * p)
    radius = quantile(counts.value, lengths.radii, LEVEL)
    released = curator.answer(Moments(grid, radius), "rough")
    mean = np.clip(released.value[:p] / n, -1.0, 1.0)
    second = upper_to_full(released.value[p:] / n, p)
    rough = second - np.outer(mean, mean)
    floor = noise_edge(float(released.noise_std[p]) / n, p)
    to_t = revealing_map(rough, k, floor)
    reach = np.sqrt(max(np.trace(to_t @ rough @ to_t), floor))* np.sqrt(radius**2/max(np.trace(second), floor))
    whitening = Whitening(grid, to_t, mean, REACH * float(reach))
    query = one_slice(whitening)
    refined = curator.answer(query, "refined")
    m = refined.value[:p] / n
    cov = upper_to_full(refined.value[p:] / n, p) - np.outer(m, m)
    back = np.linalg.inv(whitening.exact_matrix)
    cov = back @ cov @ back.T
    values, vectors = descending(cov)
    return vectors[:, :k].T, descending(rough)[1][:, :k].T
