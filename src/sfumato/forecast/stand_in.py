"""A stand-in for records: it answers the questions of a fit as n records of a known population would.

A fit sees its records only through sums at the door. So the fit's own code can be run on a door behind which there
are no records but points that stand for a population: what comes out is the fit to expect, sampling error and privacy
noise included. Time does not depend on n.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.privacy.events import Gaussian, Selection
from sfumato.privacy.mechanisms import gaussian_std, gumbel_scale
from sfumato.privacy.plan import Plan
from sfumato.records import Records
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation

MANY = 4.0
"""Records per point from which the sampling error is drawn by halves."""


@dataclass(frozen=True, slots=True, eq=False)
class StandIn:
    """A door whose sums are those of weighted points, with the noise of a calibrated plan.

    Attributes
    ----------
    pieces : tuple of (float, Records)
        Points, and how often each point of a piece counts.
    plan : Plan
        Whose lines say how much noise each answer gets.
    relation : {"replace", "add-remove"}
    streams : mapping of str to numpy Generator
        Of the noise of each line: nothing here is private, so it need not be exact. One for each, so that an answer of
        another size does not shift what is drawn after it: losses would jump along n.
    """

    pieces: tuple[tuple[float, Records], ...]
    plan: Plan
    relation: Relation
    streams: Mapping[str, np.random.Generator]

    @classmethod
    def of(cls, points: Records, n: float, plan: Plan, relation: Relation, rng: np.random.Generator) -> Self:
        """As n records drawn from the points, with replacement: every sum gets the sampling error of n records.

        The same draw serves all sums, as the records of a fit do. With few records a point, how often each is drawn is
        multinomial, and points that were drawn equally often are found by the binary digits of their numbers. With many
        a point counts ``m + sqrt(m)`` or ``m - sqrt(m)`` times, half of the points each: sums then have the same mean
        and variance, and are as good as normal.
        """
        return cls(tuple(_resampled(points, n, rng)), plan, relation, _streams(plan, rng))

    @classmethod
    def even(cls, points: Records, n: float, plan: Plan, relation: Relation, rng: np.random.Generator) -> Self:
        """As n records of which equally many are at every point: no sampling error, only the noise of the plan."""
        return cls(((n / len(points), points),), plan, relation, _streams(plan, rng))

    def answer(self, query: BoundedSum, line: str) -> Release:
        """The sum over the points with the noise of the plan's line, as the door would give it."""
        event = self.plan.line(line).event
        assert isinstance(event, Gaussian)
        std = np.empty(query.shape)
        std[...] = gaussian_std(query, self.relation, event) * query.grid
        return Release(self._sum(query) * query.grid + std * self.streams[line].standard_normal(query.shape), std)

    def select(self, query: BoundedSum, line: str) -> IntArray:
        """The largest scores under Gumbel noise."""
        event = self.plan.line(line).event
        assert isinstance(event, Selection)
        scores = query.scores(np.rint(self._sum(query)).astype(np.int64))
        scale = gumbel_scale(query, self.relation, event)
        return np.argsort(-(scores + self.streams[line].gumbel(scale=scale, size=len(scores))))[: event.picks]

    def _sum(self, query: BoundedSum) -> FloatArray:
        """In grid units; as floats, since 10^12 records would overflow integers."""
        total = np.zeros(query.shape)
        for weight, records in self.pieces:
            total += weight * query.of(records)
        return total

    @property
    def points(self) -> tuple[Records, FloatArray]:
        """All points and how often each counts: for the same fit without privacy."""
        x = np.concatenate([records.x for _, records in self.pieces])
        y = np.concatenate([records.y for _, records in self.pieces])
        counts = np.concatenate([np.full(len(records), weight) for weight, records in self.pieces])
        return Records(x, y), counts


def _streams(plan: Plan, rng: np.random.Generator) -> dict[str, np.random.Generator]:
    names = [line.name for line in plan.lines]
    return dict(zip(names, rng.spawn(len(names)), strict=True))


def _resampled(points: Records, n: float, rng: np.random.Generator) -> Iterator[tuple[float, Records]]:
    """Pieces of the points, each with how often its points were drawn."""
    mean, half = n / len(points), len(points) // 2
    if mean >= MANY:
        order = rng.permutation(len(points))
        yield mean + mean**0.5, _take(points, order[:half])
        yield mean - mean**0.5, _take(points, order[half:])
        return
    counts = rng.multinomial(max(round(n), 1), np.full(len(points), 1.0 / len(points)))
    for place in range(int(counts.max()).bit_length()):
        yield 2.0**place, _take(points, np.flatnonzero(counts & (1 << place)))


def _take(points: Records, rows: IntArray) -> Records:
    return Records(np.ascontiguousarray(points.x[rows]), points.y[rows])
