"""Bounds of a few selected features from private medians: works for tables too small for histograms."""

import numpy as np

from sfumato.bounds import Bounds
from sfumato.iterate.quantiles import signed_powers
from sfumato.privacy.asking import Asking, pick
from sfumato.privacy.plan import Line
from sfumato.statistics.columns import OfColumn
from sfumato.statistics.histograms import Bins
from sfumato.statistics.quantiles import QuantileScores
from sfumato.typing import FloatArray, IntArray

FINE = 64
WIDTH = 4.0
"""Half width of the bounds found, in standard deviations."""
_SD = 1.4826
"""Standard deviations per median distance from the median, of a normal distribution."""
_ROUNDS = ("rough", "fine")


def plan_spans(features: int, share: float) -> tuple[Line, ...]:
    """The lines `find_spans` may use: four for each feature that may be kept."""
    whats = [(time, what, j) for j in range(features) for time in _ROUNDS for what in ("median", "spread")]
    return tuple(
        Line(f"{time} {what} {j}", f"{time} {what} of a selected feature", share / len(whats), "1 / 1", "selection")
        for time, what, j in whats
    )


def find_spans(columns: IntArray) -> Asking[Bounds]:
    """Bounds ``median +- 4 sd`` of each column, sd from the median distance to the median.

    Every cut point beyond the data is half the records away from a median, so that hundreds of them do not tempt the
    selection; an outer quantile would lose to them in a small table. Roughly among signed powers of 2**(1/4) first,
    then among equal steps around what was found. Lines of features that were not kept stay unused.
    """
    spans = []
    for j, column in enumerate(columns):
        spans.append((yield from _span(int(column), j)))
    found = np.array(spans)
    return Bounds(found[:, 0] - WIDTH * found[:, 1], found[:, 0] + WIDTH * found[:, 1])


def _span(column: int, j: int) -> Asking[tuple[float, float]]:
    """Median and standard deviation of a feature."""
    powers = signed_powers()
    edges, distances = powers, powers[powers > 0]
    for time in _ROUNDS:
        centre = yield from _median(column, edges, f"{time} median {j}", None)
        sd = _SD * (yield from _median(column, distances, f"{time} spread {j}", centre))
        sd = max(sd, abs(centre) * 2.0**-30)  # floats around a huge centre must still tell both ends apart
        edges = np.linspace(centre - WIDTH * sd, centre + WIDTH * sd, FINE)
        distances = np.asarray(sd * np.arange(1.0, FINE + 1.0) / (FINE / 2.0))
    return centre, sd


def _median(column: int, edges: FloatArray, name: str, centre: float | None) -> Asking[float]:
    query = OfColumn(QuantileScores(Bins(edges), 1, 2), np.array([column]), centre)
    return float(edges[int((yield from pick(query, name))[0])])
