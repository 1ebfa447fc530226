"""Buying the summary picture."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line, Step
from sfumato.statistics.histograms import ProjectionHistogram
from sfumato.statistics.whitening import Whitening
from sfumato.steps.ranks import Ranks
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Picture:
    """Noisy counts of records by first direction (columns) and response (groups).

    Attributes
    ----------
    counts : ndarray of shape (columns, groups)
        May be negative: they are noisy, with standard deviation `noise_std`.
    direction_edges : ndarray
        In standard deviations of the projection from its mean.
    response_edges : ndarray
        Ranks of the response, from 0 to 1; class numbers for a categorical response.
    response_values : ndarray of shape (groups,), optional
        What the response of each group is about, in its units, from the released ranks; or the code of its class.
    response_cuts : ndarray of shape (groups + 1,), optional
        Where groups of a number begin and end, in its units.
    score_scale : float
        A standard deviation of the projection, in units of scores (``transform``).
    """

    counts: FloatArray
    noise_std: float
    direction_edges: FloatArray
    response_edges: FloatArray
    is_ordered: bool
    response_values: FloatArray | None = None
    response_cuts: FloatArray | None = None
    score_scale: float = float("nan")


COLUMNS, GROUPS = 24, 16
"""Of a picture: pieces of the first direction, and of the response."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The step that buys the picture."""

    share: float

    @classmethod
    def taking(cls, part: float, *others: Step) -> Self:
        """The step that takes the part of the whole budget off the top, beside the steps that the fit takes."""
        whole = sum(line.share for other in others for line in other.lines)
        return cls(whole * part / (1.0 - part))

    @property
    def lines(self) -> tuple[Line, ...]:
        """One histogram."""
        purpose = "picture of the first direction against the response"
        return (Line("picture", purpose, self.share, "sqrt(2) / 1", asks=ProjectionHistogram),)

    def run(self, whitening: Whitening, ranks: Ranks, direction: FloatArray) -> Asking[Picture]:
        """Release the counts; `direction` acts on whitened coordinates."""
        group_of, edges = groups(ranks, GROUPS)
        query = ProjectionHistogram(whitening, direction, ranks.bins, group_of, len(edges) - 1, COLUMNS)
        release = yield from ask(query, "picture")
        to_score = whitening.exact_matrix.T @ direction / np.linalg.norm(direction) / whitening.source.half_width
        return Picture(
            release.value,
            float(release.noise_std[0, 0]),
            query.edges,
            edges,
            ranks.is_ordered,
            *_units(ranks, group_of),
            1.0 / max(float(np.linalg.norm(to_score)), 1e-300),
        )


def _units(ranks: Ranks, group_of: IntArray) -> tuple[FloatArray, FloatArray | None]:
    """What the response of each group is about, and where the groups of a number begin and end.

    Within a bin a number is taken for its middle, in the open ends for the edge.
    """
    n_groups = int(group_of.max()) + 1
    if not ranks.is_ordered:
        likeliest = [np.flatnonzero(group_of == g) for g in range(n_groups)]
        return np.array([float(b[ranks.probabilities[b].argmax()]) for b in likeliest]), None
    edges = ranks.bins.edges
    ends = np.concatenate([edges[:1], edges, edges[-1:]])
    middle = ends[:-1] / 2.0 + ends[1:] / 2.0
    weight = ranks.probabilities + 1e-12
    values = np.bincount(group_of, weight * middle) / np.bincount(group_of, weight)
    last = np.array([np.flatnonzero(group_of == g)[-1] for g in range(n_groups)])
    return values, np.concatenate([ends[:1], ends[last + 1]])


def groups(ranks: Ranks, most: int) -> tuple[IntArray, FloatArray]:
    """Group of each bin, and the edges of the groups: about equal shares of ranks, or one group per class.

    An ordered response is cut where the cumulated released probability passes a multiple of ``1 / most``; a bin
    heavier than that makes groups fewer and wider. Classes beyond the `most` likeliest share the last group.
    """
    if ranks.is_ordered:
        ends = np.cumsum(ranks.probabilities)
        middle = ends - ranks.probabilities / 2
        wanted = np.minimum((middle * most).astype(np.int64), most - 1)
        used, group_of = np.unique(wanted, return_inverse=True)
        last = [float(ends[group_of == g].max()) for g in range(len(used))]
        edges = np.concatenate([[0.0], np.maximum.accumulate(last)])
        return group_of.astype(np.int64), _increasing(edges)
    order = np.argsort(-ranks.probabilities, kind="stable")
    used_classes = int(np.clip((ranks.probabilities > 0).sum(), 1, most))
    group_of = np.full(len(order), used_classes - 1, dtype=np.int64)
    chosen = np.sort(order[:used_classes])
    group_of[chosen] = np.arange(used_classes)
    return group_of, np.arange(used_classes + 1, dtype=float)


def _increasing(edges: FloatArray) -> FloatArray:
    """Strictly increasing, for drawing: equal edges (bins of no released mass) are moved apart by a hair."""
    return np.maximum.accumulate(edges + np.arange(len(edges)) * 1e-9)
