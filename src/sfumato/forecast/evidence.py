"""Evidence: what a fit released on its way, kept so that more can be said about it afterwards at no further cost."""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.asking import Ask, Asking
from sfumato.privacy.events import Gaussian
from sfumato.privacy.mechanisms import gaussian_std
from sfumato.privacy.plan import Line, Plan
from sfumato.release import Release
from sfumato.statistics.whitening import Whitening
from sfumato.steps.links import Links
from sfumato.steps.location import Reading
from sfumato.steps.noisy_histograms import likely_counts
from sfumato.steps.ranks import Ranks
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, Relation

T = TypeVar("T")

RELATION: Relation = "replace"
"""Noise is kept relative to this sensitivity. A line's two sensitivities differ by a constant factor, so that noise
relative to either is the same noise."""

SHAPE = ("radius", "shape")
"""Lines about lengths and moments of records."""
KEPT = (*SHAPE, "rough")
BEYOND = 0.5
"""Part of the records as long as a half width that is believed to lie beyond the box in a feature."""
REACH = 64.0
"""Half widths up to which such a record may lie, where no bounds say it."""


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """How noisy every release was that a step got, and what was released about the shape of the records."""

    lines: dict[str, Line] = field(default_factory=dict)
    answers: dict[str, tuple[BoundedSum, Release]] = field(default_factory=dict)

    def of(self, step: Asking[T]) -> Asking[T]:
        """The same step; what it is sent is remembered."""
        try:
            asked = next(step)
            while True:
                released = yield asked
                self._remember(asked, released)
                asked = step.send(released)
        except StopIteration as end:
            return cast(T, end.value)

    def _remember(self, asked: Ask, released: Release) -> None:
        query = asked.query
        alone = np.broadcast_to(gaussian_std(query, RELATION, Gaussian(1.0)) * query.grid, query.shape)
        mu = float(alone.flat[0] / released.noise_std.flat[0])
        self.lines[asked.line] = Line(asked.line, "", 1.0, "", rho=mu**2 / 2.0)
        if asked.line in KEPT:
            self.answers[asked.line] = (query, released)


class Refit(Protocol):
    """A fit that can be made again, on records in half widths of its bounds."""

    def look(self) -> Asking[Any]:
        """What the number of directions is chosen by."""

    def run(self, n_directions: int, units: FloatArray | None = None) -> Asking[Any]:
        """The whole fit, on records measured in other units (half widths)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a fit found, in half widths: how functions of y depend on x, and the map from x to z."""

    links: Links
    probabilities: FloatArray
    to_z: FloatArray

    def rows(self, k: int) -> FloatArray:
        """The first k directions, in half widths, of any length."""
        return np.asarray((self.to_z.T @ self.links.axes[:, :k]).T)

    def slopes(self, functions: FloatArray) -> FloatArray:
        """Slopes on x (p, r) that the fit gives functions of y (bins, r), as far as it looked at them."""
        weight = np.sqrt(self.probabilities)[:, None]
        parts = np.linalg.pinv(weight * self.links.functions) @ (weight * functions)
        return np.asarray(self.to_z.T @ self.links.slopes @ parts)


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
    reading : Reading, optional
        What the half widths were read off, if they were not given.
    to_z : ndarray of shape (p, p), optional
        The map from x, in half widths, to what links are about, if that is not the whitening's.
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
    reading: Reading | None = None
    to_z: FloatArray | None = None

    @classmethod
    def of(
        cls,
        heard: Heard,
        n: float,
        whitening: Whitening,
        ranks: Ranks,
        refit: Refit,
        reading: Reading | None = None,
        names: tuple[str, str] = SHAPE,
    ) -> "Evidence":
        """What was heard of the rough shape and other steps; `names` are those of its two lines."""
        (histogram, lengths), (query, moments) = (_asked(heard, name) for name in names)
        plan = Plan(tuple(heard.lines.values()))
        radius = float(query.radius)
        return cls(n, whitening, ranks, lengths, histogram.radii, moments, radius, plan, refit, reading)

    def slopes(self, links: Links) -> FloatArray:
        """Of the linked functions on x in half widths: (p, r)."""
        return np.asarray(self.map.T @ links.slopes)

    @property
    def map(self) -> FloatArray:
        """From x, in half widths, to what links are about."""
        return self.whitening.exact_matrix if self.to_z is None else self.to_z

    @property
    def means(self) -> Release:
        """Mean of each feature, in its units; the released lengths tell how much shorter clipping made records."""
        grid, counts = self.whitening.source, likely_counts(self.lengths, self.n)
        middle = self.radii * np.sqrt(self.radii[-2] / self.radii[-1])
        left = float(counts @ np.minimum(1.0, self.radius / middle)) / max(float(counts.sum()), 1e-9)
        unit = grid.half_width / (max(self.n, 1.0) * max(left, 1e-9))
        p = len(unit)
        return Release(grid.centre + unit * self.moments.value[:p], unit * self.moments.noise_std[:p])

    @property
    def guessed(self) -> NDArray[np.bool_]:
        """Features whose unit is a guess: only zeros were seen of them, and no bounds were given."""
        if self.reading is None:
            return np.zeros(len(self.whitening.mean), dtype=bool)
        located = self.reading.located()
        return np.asarray(located.unseen & (located.grid.centre == 0.0) & np.isnan(self.reading.known.lower))

    @property
    def beyond(self) -> FloatArray:
        """What records beyond the box may add to the variance of each feature as scores see it: (p,), half widths.

        Records that lie beyond the box in a feature are at least a half width long, and the released lengths tell how
        many such records there are. How they are spread over the features nothing tells: evenly, and over the octaves
        from the box to the bounds that were given, or as far as `REACH`.
        """
        p = len(self.whitening.mean)
        if self.reading is None:
            return np.zeros(p)
        grid, known, unseen = self.whitening.source, self.reading.known, self.reading.located().unseen
        farthest = np.fmax(known.upper - grid.centre, grid.centre - known.lower) / grid.half_width
        reach = np.where(unseen, 0.0, np.where(np.isnan(farthest), REACH, farthest))
        squares = np.where(reach > 1.0, eased_square(np.maximum(reach, 1.0)), 0.0)
        long = self.radii > 1.0
        noise = float(np.sqrt((self.lengths.noise_std[long] ** 2).sum()))
        share = np.clip((self.lengths.value[long].sum() - noise) / max(self.n, 1.0), 0.0, 1.0)
        return np.asarray(BEYOND * share / max(int((squares > 0).sum()), 1) * squares)

    def doubted(self, rng: np.random.Generator) -> "Evidence":
        """The same with other moments that the released ones leave possible: as far off as their noise is large.

        Before anything was released all moments were as likely as others, so that this is where the true ones are now.
        """
        noise = self.moments.noise_std
        drawn = self.moments.value + noise * rng.standard_normal(noise.shape)
        return replace(self, moments=Release(drawn, np.sqrt(2.0) * noise))

    def units(self, rng: np.random.Generator) -> FloatArray | None:
        """Half widths that might have been found as well, in those that were; None where they were given."""
        if self.reading is None:
            return None
        return np.asarray(self.reading.half_widths_again(rng) / self.whitening.source.half_width)


def eased_square(reach: FloatArray) -> FloatArray:
    """Mean square of what scores make of distances from the centre that are spread evenly over the octaves up to
    `reach` half widths: of u it is ``2 sqrt(u) - 1`` (`Bounds.eased`).

    >>> eased_square(np.array([1.0, 64.0])).round(1)
    array([ 1. , 48.1])
    """
    reach = np.maximum(reach, 1.0 + 1e-9)
    log = np.log(reach)
    return np.asarray((4.0 * (reach - 1.0) - 8.0 * (np.sqrt(reach) - 1.0) + log) / log)


def _asked(heard: Heard, name: str) -> tuple[Any, Release]:
    return heard.answers[name]
