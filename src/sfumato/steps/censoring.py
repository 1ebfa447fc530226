"""Functions of a time and of whether an event ended it: what x is to explain where times are cut short.

A table has a row for each cell of (piece of the time, status); the status is 1 where the event was seen and 0 where the
time was cut short before it, so that all one knows is that the event came later.
"""

import numpy as np

from sfumato.steps.cells import principal
from sfumato.steps.descent import cosines
from sfumato.typing import FloatArray, IntArray

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
