"""Evidence: what a fit released on its way, kept so that more can be said about it afterwards at no further cost."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sfumato.iterate.ranks import Ranks
from sfumato.privacy.door import Door
from sfumato.privacy.events import Gaussian
from sfumato.privacy.mechanisms import gaussian_std
from sfumato.privacy.plan import Line, Plan
from sfumato.release import Release
from sfumato.solve.links import Links
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation

RELATION: Relation = "replace"
"""Noise is kept relative to this sensitivity. A line's two sensitivities differ by a constant factor, so that noise
relative to either is the same noise."""

KEPT = ("radius", "shape")


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A door that remembers how noisy every answer was, and what was answered about the shape of the records."""

    door: Door
    lines: dict[str, Line] = field(default_factory=dict)
    answers: dict[str, tuple[BoundedSum, Release]] = field(default_factory=dict)

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The noisy sum for the plan's line `name`."""
        release = self.door.answer(query, name)
        alone = np.broadcast_to(gaussian_std(query, RELATION, Gaussian(1.0)) * query.grid, query.shape)
        mu = float(alone.flat[0] / release.noise_std.flat[0])
        self.lines[name] = Line(name, "", 1.0, "", rho=mu**2 / 2.0)
        if name in KEPT:
            self.answers[name] = (query, release)
        return release

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """Which coordinates are largest."""
        return self.door.select(query, name)


class Refit(Protocol):
    """A fit that can be made again, on records in half widths of its bounds."""

    def look(self, door: Door) -> Links:
        """The links that the number of directions is chosen by."""

    def run(self, door: Door, n_directions: int) -> "Seen":
        """The whole fit."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a fit found, in half widths: how functions of y depend on x, and the map from x to z."""

    links: Links
    probabilities: FloatArray
    to_z: FloatArray

    def rows(self, k: int) -> FloatArray:
        """The first k directions, in half widths, of any length."""
        return np.asarray((self.to_z.T @ self.links.axes[:, :k]).T)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Releases of a fit from which a population can be made that would have released about the same.

    Attributes
    ----------
    n : float
        Number of records, as far as it is known.
    whitening : Whitening
    ranks : Ranks
        Bins of y and their released probabilities.
    lengths, moments : Release
        Histogram of the lengths of records, and moments of records clipped to `radius`, in half widths.
    radius : float
    radii : ndarray
        Upper edges of the bins of `lengths`.
    plan : Plan
        How noisy each line was.
    refit : Refit
        The same fit, to be made on a stand-in.
    """

    n: float
    whitening: Whitening
    ranks: Ranks
    lengths: Release
    radii: FloatArray
    moments: Release
    radius: float
    plan: Plan
    refit: Refit

    @classmethod
    def of(cls, witness: Witness, n: float, whitening: Whitening, ranks: Ranks, refit: Refit) -> "Evidence":
        """What a witness of `rough_shape` heard."""
        (histogram, lengths), (query, moments) = (_asked(witness, name) for name in KEPT)
        plan = Plan(tuple(witness.lines.values()))
        return cls(n, whitening, ranks, lengths, histogram.radii, moments, float(query.radius), plan, refit)


def _asked(witness: Witness, name: str) -> tuple[Any, Release]:
    return witness.answers[name]
