"""Buying the summary picture."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line, Step
from sfumato.statistics.histograms import ProjectionHistogram
from sfumato.statistics.whitening import Whitening
from sfumato.steps.noisy_histograms import SEEN
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
GAP = 8.0
"""Times what numbers span that a bin is wide where it is a gap: bins in which records were seen are octaves at most."""


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

    Within a bin a number is taken for its middle, and none is believed to be where only noise is.
    """
    n_groups = int(group_of.max()) + 1
    if not ranks.is_ordered:
        likeliest = [np.flatnonzero(group_of == g) for g in range(n_groups)]
        return np.array([float(b[ranks.probabilities[b].argmax()]) for b in likeliest]), None
    span = _where_numbers_are(ranks)
    middle = span.lower / 2.0 + span.upper / 2.0
    told = [np.unique(np.clip(np.flatnonzero(group_of == g), span.first, span.last)) for g in range(n_groups)]
    weights = [ranks.probabilities[bins] + 1e-12 for bins in told]
    values = np.array([weight @ middle[bins] / weight.sum() for weight, bins in zip(weights, told, strict=True)])
    return values, np.concatenate([span.lower[told[0][:1]], span.upper[[bins[-1] for bins in told]]])


class _Span(NamedTuple):
    """Where numbers in each bin begin and end, and the first and the last bin that they are in."""

    lower: FloatArray
    upper: FloatArray
    first: int
    last: int


def _where_numbers_are(ranks: Ranks) -> _Span:
    """In an open end at its edge, in other bins between theirs; none where only noise is.

    A bin far wider than the middle half of all numbers, and than its distance from zero, is a gap, in which earlier
    rounds saw nothing: what noise found beyond it may be as far as 10**11. So numbers in a gap are believed next to
    where the others are, and beyond it only if these stand out of their noise as a whole.

    >>> from sfumato.statistics.histograms import Bins
    >>> edges, shares = np.array([1.0, 2.0, 3.0, 2.0**39]), np.array([0.2, 0.4, 0.3, 0.09, 0.01])
    >>> span = _where_numbers_are(Ranks(Bins(edges), shares, total=1000.0, noise=20.0))
    >>> span.upper[:4].tolist(), span.last
    ([1.0, 2.0, 3.0, 6.0], 3)
    """
    edges, shares = ranks.bins.edges, ranks.probabilities
    lower, upper = np.append(edges[:1], edges), np.append(edges, edges[-1:])
    low, middle, high = np.minimum(np.searchsorted(shares.cumsum(), (0.25, 0.5, 0.75)), len(shares) - 1)
    half, bins, last = upper[high] - lower[low], np.arange(len(shares)), len(shares) - 1
    near = np.where(bins < middle, upper, lower)
    usual = np.maximum(np.abs(near), half)
    gap = (upper - lower > GAP * usual) & (bins != middle)
    lower, upper = (
        np.where(gap & (bins < middle), near - usual, lower),
        np.where(gap & (bins > middle), near + usual, upper),
    )
    left, right = bins[gap & (bins < middle)], bins[gap & (bins > middle)]
    first, end = (int(left[-1]) if left.size else 0), (int(right[0]) if right.size else last)
    sees_left, sees_right = (
        float(some.sum()) * ranks.total > SEEN * ranks.noise * np.sqrt(len(some))
        for some in (shares[:first], shares[end + 1 :])
    )
    return _Span(lower, upper, 0 if sees_left else first, last if sees_right else end)


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
