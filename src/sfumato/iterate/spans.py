"""Bounds of a few selected features from private quantiles: works for tables too small for histograms."""

import numpy as np

from sfumato.bounds import Bounds
from sfumato.iterate.quantiles import signed_powers
from sfumato.privacy.curator import Curator
from sfumato.privacy.plan import Line
from sfumato.statistics.columns import OfColumn
from sfumato.statistics.histograms import Bins
from sfumato.statistics.quantiles import QuantileScores
from sfumato.typing import FloatArray, IntArray

LOW, HIGH, OF = 1, 9, 10
FINE = 64
WIDTH = 4.0
"""Half width of the bounds found, in standard deviations."""
_BETWEEN = 2.5631
"""Standard deviations between the first and the last tenth of a normal distribution."""


def plan_spans(features: int, share: float) -> tuple[Line, ...]:
    """The lines `find_spans` may use: four for each feature that may be kept."""
    names = [f"{end} {level} {j}" for j in range(features) for end in ("rough", "fine") for level in (LOW, HIGH)]
    return tuple(
        Line(name, f"{name.split()[0]} span of selected feature {name.split()[2]}", share / len(names), "1 / 1", "selection")
        for name in names
    )


def find_spans(curator: Curator, columns: IntArray) -> Bounds:
    """Bounds ``middle +- 4 sd`` of each of the columns, from its first and last tenth.

    Roughly among signed powers of 2**(1/4), then among equal steps around what was found. Never raises; lines of
    features that were not kept are not used, which leaves a little of the budget unspent.
    """
    ends = np.array([_span(curator, int(column), j) for j, column in enumerate(columns)])
    middle, sd = ends.mean(axis=1), np.diff(ends, axis=1)[:, 0] / _BETWEEN
    return Bounds(middle - WIDTH * sd, middle + WIDTH * sd)


def _span(curator: Curator, column: int, j: int) -> tuple[float, float]:
    powers = signed_powers()
    low, high = sorted(_cut(curator, column, powers, f"rough {level} {j}", level) for level in (LOW, HIGH))
    first, last = np.searchsorted(powers, [low, high])
    below, above = powers[max(int(first) - 1, 0)], powers[min(int(last) + 1, len(powers) - 1)]
    steps = np.linspace(below, above, FINE)
    low, high = sorted(_cut(curator, column, steps, f"fine {level} {j}", level) for level in (LOW, HIGH))
    return (low, high) if high > low else (float(below), float(above))


def _cut(curator: Curator, column: int, edges: FloatArray, name: str, level: int) -> float:
    query = OfColumn(QuantileScores(Bins(edges), level, OF), np.array([column]))
    return float(edges[int(curator.select(query, name)[0])])
