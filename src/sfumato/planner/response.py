"""The ranks of the response on a population: with few records or a small budget they are coarse."""

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from sfumato.iterate.quantiles import SLICES
from sfumato.iterate.ranks import BINS, Ranks, find_ranks
from sfumato.planner.draws import Draw
from sfumato.records import Records, Response
from sfumato.release import Release
from sfumato.statistics.histograms import Bins
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray


class _Crowd:
    """Answers as n records of the population would, with the noise of the plan; y has the shape of a normal."""

    def __init__(self, d: Draw) -> None:
        y = ndtri(d.population.ranks)
        self.records = Records(np.zeros((len(y), 1)), y)
        self._draw = d

    def answer(self, query: BoundedSum, name: str) -> Release:
        d = self._draw
        counts = query.of(self.records) * (d.n / len(self.records))
        return Release(counts + d.n * d.noise(query, name), np.broadcast_to(d.n * d.std(query, name), query.shape))


def seen_ranks(d: Draw, n_bins: int = BINS) -> tuple[Ranks, IntArray]:
    """Bins with their released probabilities, by the code of the fit; and the bin of each point.

    The classes of a categorical response need no search, and quantiles are selected within a few records: then the
    bins are those of exact ranks.
    """
    names = {line.name for line in d.plan.lines}
    if "response magnitude" not in names:
        count = SLICES if "quantile 1" in names else n_bins
        bins = Bins(np.arange(1, count) / count)
        place = np.searchsorted(bins.edges, d.population.ranks, side="right")
        return Ranks(bins, np.full(count, 1.0 / count), d.n), place
    # Its own stream: how many bins there are must not shift what is drawn after them, or losses would jump along n.
    crowd = _Crowd(replace(d, rng=d.rng.spawn(1)[0]))
    ranks = find_ranks(crowd, Response(), n_bins)
    return ranks, ranks.bins.index(crowd.records).astype(np.int64)
