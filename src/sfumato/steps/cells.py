"""Cells of several responses: each is cut where its ranks say, and the response of a record is the cell it is in.

What x is to explain are functions of the cell. Those of a censored time have a row for each cell of (piece of the time,
status): the status is 1 where the event was seen and 0 where the time was cut short before it, so that all one knows is
that the event came later.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

from sfumato.privacy.asking import Asking, restated
from sfumato.privacy.plan import Line
from sfumato.statistics.histograms import Bins
from sfumato.statistics.parts import Cells, OfColumn, OnCells
from sfumato.steps.descent import cosines
from sfumato.steps.picture import groups
from sfumato.steps.ranks import Ranking, Ranks
from sfumato.typing import FloatArray, IntArray

T = TypeVar("T")

CUTTING_BINS = 24
"""Of each response, from which its pieces are made."""
UNCUT = Cells.cut([np.empty(0)])


def on_cells(step: Asking[T], cells: Cells) -> Asking[T]:
    """The same step about records whose response is their cell; they have no other columns than their features."""
    return restated(step, lambda asked: replace(asked, query=OnCells(asked.query, cells)))


@dataclass(frozen=True, slots=True)
class CellRanks(Ranks):
    """Ranks of which every bin is a cell."""

    cells: Cells = UNCUT


@dataclass(frozen=True, slots=True)
class CellRanking(Ranking):
    """The step that cuts responses into pieces of about equal size and counts the cells, each at a share of the budget.

    `pieces` are those of each response, the columns after the first `n_features`; further responses are cut at `known`
    edges, which are public.
    """

    n_bins: int = CUTTING_BINS
    count_share: float = 0.05
    n_features: int = 1
    pieces: tuple[int, ...] = (2, 2)
    known: tuple[tuple[float, ...], ...] = ()

    @property
    def each(self) -> Ranking:
        """What is asked of one response."""
        return Ranking(self.response, self.share, self.n_bins)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The histograms of each response, and one of the cells."""
        cuts = tuple(
            replace(
                line,
                name=f"{line.name} {j}",
                purpose=line.purpose.replace("the response", f"response {j}"),
                asks=OfColumn,
            )
            for j in range(1, len(self.pieces) + 1)
            for line in self.each.lines
        )
        return (*cuts, Line("ranks", "sizes of the cells", self.count_share, "sqrt(2) / 1", asks=OnCells))

    def run(self, n_records: int | None = None) -> Asking[CellRanks]:
        """Edges and probabilities of the cells. Never raises: what cannot be told apart is not cut."""
        found = []
        for j, pieces in enumerate(self.pieces, start=1):
            found.append((yield from self._cuts(j, pieces, n_records)))
        cells = Cells.cut([*found, *(np.asarray(edges) for edges in self.known)])
        bins = Bins(np.empty(0), categories=cells.count)
        counted = yield from on_cells(self.count(bins, n_records), cells)
        return CellRanks(bins, counted.probabilities, counted.total, counted.noise, cells=cells)

    def _cuts(self, j: int, pieces: int, n_records: int | None) -> Asking[FloatArray]:
        """Edges between pieces of a response."""
        column = np.array([self.n_features + j - 1])
        ranks = yield from restated(
            self.each.run(n_records),
            lambda asked: replace(asked, query=OfColumn(asked.query, column), line=f"{asked.line} {j}"),
        )
        return np.asarray(ranks.bins.edges[np.flatnonzero(np.diff(groups(ranks, pieces)[0]))])


def project(places: IntArray, probabilities: FloatArray, towards: FloatArray, weights: FloatArray) -> FloatArray:
    """Functions of several responses that tell whatever x can explain of them: table (cells, functions).

    Li, Wen and Zhu (2008) show that what x explains of several responses together is what it explains of all their
    linear combinations, and average the kernels of SIR over many of those. Here responses are normal scores of their
    ranks, a combination of them is ranked again, and its functions are weighted cosines of those ranks. The kernel of
    least squares on the functions of all combinations together *is* the average, so that none needs a budget of its
    own: the noise of a release is tied to the length of a record's functions, and those of a hundred combinations,
    over the root of their number, are as long as those of one. Neighbouring combinations tell about the same; the
    principal functions among them carry what they tell in fewer columns, with less noise.

    Parameters
    ----------
    places : ndarray of shape (cells, responses)
        Piece of each response.
    probabilities : ndarray of shape (cells,)
    towards : ndarray of shape (combinations, responses)
    weights : ndarray
        Of the cosines.

    Examples
    --------
    >>> places = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> table = project(places, np.full(4, 0.25), np.array([[1.0, 0.0], [0.7, 0.7]]), np.ones(2))
    >>> table.shape, bool(np.abs(table.mean(axis=0)).max() < 1e-12)
    ((4, 3), True)
    """
    scores = np.stack([normal_scores(place, probabilities)[place] for place in places.T], axis=1)
    tables = [_of_ranks(scores @ way, probabilities, weights) for way in towards]
    return principal(np.concatenate(tables, axis=1) / np.sqrt(len(towards)), probabilities)


def _of_ranks(values: FloatArray, probabilities: FloatArray, weights: FloatArray) -> FloatArray:
    """Cosines of the ranks of a number that every cell has; cells with the same number share a rank."""
    place = np.unique(values.round(9), return_inverse=True)[1]
    shares = np.asarray(np.bincount(place, probabilities), dtype=np.float64)
    return cosines(shares, weights)[place]


def normal_scores(place: IntArray, probabilities: FloatArray) -> FloatArray:
    """Mean of a standard normal in each piece of a response, between the quantiles that are its ends.

    >>> normal_scores(np.array([0, 0, 1]), np.array([0.25, 0.25, 0.5])).round(2)
    array([-0.8,  0.8])
    """
    shares = np.bincount(place, probabilities)
    ends = np.concatenate([[0.0], np.cumsum(shares)])
    density = np.exp(-0.5 * ndtri(np.clip(ends, 1e-12, 1.0 - 1e-12)) ** 2) / np.sqrt(2.0 * np.pi)
    return np.asarray((density[:-1] - density[1:]) / np.maximum(shares, 1e-9))


MOST_FUNCTIONS, LEAST_VARIANCE = 24, 1e-6


def principal(table: FloatArray, probabilities: FloatArray) -> FloatArray:
    """The functions turned to those that vary most, centred, as many as vary at all and no more than a few dozen."""
    centred = table - probabilities @ table
    _, spread, vt = np.linalg.svd(np.sqrt(probabilities)[:, None] * centred, full_matrices=False)
    kept = int(np.clip((spread**2 > LEAST_VARIANCE * (spread[0] ** 2 + 1e-300)).sum(), 1, MOST_FUNCTIONS))
    return np.asarray(centred @ vt[:kept].T)


WEIGHTS = np.array([0.6, 0.6, 0.6, 0.6, 0.6])
"""Of the cosines; a constant has weight one."""
LEAST_SHARE = 0.05
"""Smallest part of the records that a status is scaled for, so that functions of a rare one stay bounded."""


def event_functions(places: IntArray, probabilities: FloatArray) -> FloatArray:
    """``1(event) g(t) - int_0^t g dL`` for several g, with L the cumulated hazard of all records: (cells, functions).

    If the time has nothing to do with x, each of them has mean zero *given x*, however the times are cut short, as long
    as that has nothing to do with the time once x is known: they are martingales of the counting process (Aalen 1978;
    Sun, Zhu, Wang and Zeng 2019 reduce dimensions by them). Functions of the observed time alone see what cuts it short
    as well. The weights g are the root of the part still at risk (Tarone and Ware 1977) times cosines of the ranks of
    the events: with it the integral stays bounded, so that a descent has little to clip, and clipping would let the
    censoring in again.

    Within a piece half of it is taken to be still at risk. All comes from released shares of cells.

    >>> places = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> table = event_functions(places, np.full(4, 0.25))
    >>> bool(np.abs(np.full(4, 0.25) @ table).max() < 1e-12)
    True
    """
    piece, seen = places[:, 0], places[:, 1] == 1
    share, events = (np.bincount(piece, shown) for shown in (probabilities, probabilities * seen))
    at_risk = np.maximum(np.cumsum(share[::-1])[::-1] - share / 2.0, 0.0)
    hazard = np.divide(events, at_risk, out=np.zeros_like(events), where=at_risk > 1e-9)
    ranks = events / max(float(events.sum()), 1e-9)
    g = np.column_stack([np.ones(len(share)), cosines(ranks, WEIGHTS)]) * np.sqrt(at_risk)[:, None]
    steps = g * hazard[:, None]
    table = seen[:, None] * g[piece] - (np.cumsum(steps, axis=0) - steps / 2.0)[piece]
    return principal(table / np.sqrt(max(float(events @ at_risk), LEAST_SHARE)), probabilities)


def double_slices(places: IntArray, probabilities: FloatArray) -> FloatArray:
    """The status, and cosines of the ranks of the times of either status: (cells, functions).

    Least squares on all functions of time and status is SIR with slices of the time within each status (Li, Wang and
    Chen 1999); weighted cosines are smoother. They show what x explains of the time *and* of what cuts it short.

    >>> double_slices(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.full(4, 0.25)).shape
    (4, 3)
    """
    piece, status = places.T
    table = [((status == 1) - probabilities @ (status == 1)) / np.sqrt(LEAST_SHARE + 0.2)]
    for one in (0, 1):
        own = np.bincount(piece, np.where(status == one, probabilities, 0.0))
        share = float(own.sum())
        waves = cosines(own / max(share, 1e-9), np.append(1.0, WEIGHTS))[piece]
        table.extend((waves * (status == one)[:, None] / np.sqrt(max(share, 0.25))).T)
    return principal(np.column_stack(table), probabilities)
