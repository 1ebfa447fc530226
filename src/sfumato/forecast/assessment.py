"""How a fit is judged from its own releases: a test of each direction, errors, and a verdict, whatever the method.

The fit is made again, by its own code, on stand-ins for populations that its releases describe. What the directions
scatter by is their error; how large a number comes out where there is no direction is the test. All of it is
post-processing of releases: no record is looked at again, and nothing is spent.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import cycle, islice
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from sfumato.forecast.evidence import RELATION, Evidence
from sfumato.forecast.stand_in import StandIn
from sfumato.privacy.asking import drive
from sfumato.records import Records
from sfumato.settings.central import one_blas_thread
from sfumato.steps.dimension import LEVEL, Choice
from sfumato.typing import FloatArray

BATCH, BATCHES = 15, 4
"""Stand-ins of a test are made by batches, until the answer is clear."""
MOST = 6
"""Most directions that are tested."""
TAILS = 5
"""Populations of which the stand-ins of the first test are made in turn: how heavy tails are is known roughly."""
PILOTS = 12
POPULATIONS, EACH = 6, 8
"""Populations that the releases leave possible, and fits on fresh samples of each."""
ALIKE, OFTEN = 0.9, 0.95
"""A direction is reliable if its scores of two fits on fresh samples are correlated by `ALIKE` in this part of them."""
SURE = 0.93
"""What stand-ins have to reach for that: they describe the population roughly."""
HIGHEST = 345.0
"""Of which the exponential is a number that a model file holds (`schema.LARGEST`)."""
SILENCE = 1e-2
"""Variance of the noise, over that of the fit, that is as good as none beside it."""
FAR = 10.0
"""Times as many records: more than that is no forecast."""
UNKNOWN = 0.5
"""Error of an entry of a unit row of which nothing is known: two of it reach from zero to all that it can be."""
GUESSED = (
    "But of some features hardly more than zeros was seen: how much one of them weighs is a guess. Give their bounds."
)
UNSEEN = "There may be nothing to find; if there is, more records or a larger epsilon would help"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
Level = Literal["reliable", "weak", "noise"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a fit would come out the same again on a fresh sample.

    Attributes
    ----------
    level : {"reliable", "weak", "noise"}
        One word for all directions: "reliable" if every one is, "noise" if none stands out of the noise, and "weak" in
        between.
    sentence : str
        What that means here, direction by direction, and what would help.
    levels : tuple of {"reliable", "weak", "noise"}
        The same of each direction; empty where that is not known.
    """

    level: Level
    sentence: str
    levels: tuple[Level, ...] = ()

    @property
    def headline(self) -> str:
        """The level as a heading; it says so where some directions are reliable and others are not.

        >>> Verdict("weak", "", ("reliable", "weak")).headline, Verdict("weak", "", ("weak",)).headline
        ('Reliable in part', 'Weak')
        """
        return "Reliable in part" if self.level != "reliable" and "reliable" in self.levels else self.level.capitalize()

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, slots=True)
class Errors:
    """Root mean square errors of the directions, in the units of x and per standard deviation of x: (k, p) each."""

    directions: FloatArray
    loadings: FloatArray


@dataclass(frozen=True, slots=True)
class World:
    """A population that the releases leave possible, and what the fit finds in it without noise.

    One that is `flat` has next to no variance along axes of x whose variance does not show.
    """

    points: Records
    truth: Any
    flat: bool


def seeded(evidence: Evidence) -> np.random.Generator:
    """Chance that depends on the releases alone: the same fit is always judged alike."""
    bits = evidence.moments.value.view(np.uint64)
    return np.random.default_rng([int(word) for word in bits[:8]])


Rows = Callable[[Any], FloatArray]
"""From what a fit found to its directions, in some units: (k, p)."""
Null = Callable[[int, np.random.Generator], Records]
"""From j to points for a population with the first j directions alone."""
Look = Callable[[Records, np.random.Generator], FloatArray]
"""The numbers that a fit on a sample of such a population shows, one for each direction, largest first."""


def test_each(observed: FloatArray, most: int, null: Null, look: Look, evidence: Evidence) -> tuple[FloatArray, float]:
    """A p-value for each observed number, one after another up to the first that does not stand out; and the edge.

    The (j + 1)-th is compared with what comes out on stand-ins for a population with j directions, none to begin with:
    its logarithm is about normal there. The edge is what the first of them had to pass.
    """
    rng, p_values, edge = seeded(evidence), [], np.nan
    with one_blas_thread():
        for j in range(min(MOST, most, len(observed))):
            populations = [null(j, rng) for _ in range(1 if j else TAILS)]
            shown = (float(first_of(look(points, rng), j + 1)[j]) for points in cycle(populations))
            p_value, passed = _compare(float(observed[j]), shown)
            p_values.append(p_value)
            edge = passed if j == 0 else edge
            if p_value > LEVEL:
                break
    return np.array(p_values), float(edge)


def first_of(values: FloatArray, r: int) -> FloatArray:
    """The first r of some numbers; zeros where there are fewer, as where classes were not seen.

    >>> first_of(np.array([3.0, 2.0, 1.0]), 2), first_of(np.array([3.0]), 2)
    (array([3., 2.]), array([3., 0.]))
    """
    return np.pad(values[:r], (0, max(0, r - len(values))))


def _compare(observed: float, null: Iterator[float]) -> tuple[float, float]:
    """p-value of an observed value, and the value at which it would be `LEVEL`; few draws where these tell enough."""
    drawn: list[float] = []
    for _ in range(BATCHES):
        drawn += [np.log(max(next(null), 1e-300)) for _ in range(BATCH)]
        law = student(len(drawn) - 1, np.mean(drawn), max(np.std(drawn, ddof=1), 1e-9) * np.sqrt(1 + 1 / len(drawn)))
        p_value = float(law.sf(np.log(max(observed, 1e-300))))
        if not LEVEL / 50.0 < p_value < 0.2:
            break
    return p_value, float(np.exp(min(law.isf(LEVEL), HIGHEST)))


def error_by(squares: FloatArray, each: int) -> FloatArray:
    """Root mean square error from mean squares in a few populations (first axis), each of so many fits.

    It is larger than the root of the mean, so that two of it cover as often as two exact errors would: by Student's
    distribution. The degrees of freedom are those of a mean of squares that varies as much from population to
    population (Satterthwaite's): as many as there are fits, where all populations agree.

    >>> alike, apart = np.ones((6, 1)), np.array([[0.0], [0.0], [0.0], [0.0], [0.0], [6.0]])
    >>> error_by(alike, 8).round(3), error_by(apart, 8).round(3)
    (array([1.027]), array([1.324]))
    """
    populations, mean = len(squares), squares.mean(axis=0)
    varies = np.maximum(squares.var(axis=0) / max(populations - 1, 1), 1e-300)
    freedom = np.clip(2.0 * mean**2 / varies, max(populations - 1, 1), populations * each)
    return np.asarray(np.sqrt(mean) * student.ppf(norm.cdf(2.0), freedom) / 2.0)


def with_tails(x: FloatArray, variances: FloatArray) -> FloatArray:
    """Points, and a few more about their mean that add so much to the variance of each feature.

    >>> x = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> wide = with_tails(x, np.array([0.0, 4.0]))
    >>> (wide**2).sum(axis=0) / len(x)
    array([1., 4.])
    """
    if not variances.any():
        return x
    far, middle = np.diag(np.sqrt(len(x) * variances / 2.0)), x.mean(axis=0)
    return np.vstack([x, middle + far, middle - far])


def sampled(evidence: Evidence, points: Records, rng: np.random.Generator) -> StandIn:
    """The door of a fit on a fresh sample of a population."""
    return StandIn.of(points, evidence.n, evidence.plan, RELATION, rng)


def unsampled(evidence: Evidence, points: Records, rng: np.random.Generator, noises: float = 1.0) -> StandIn:
    """The door of a fit on the population itself, with so many times the variance of the noise."""
    return StandIn.even(points, evidence.n, evidence.plan.merged(noises), RELATION, rng)


class Assessment(ABC):
    """What the releases of a fit say about its own directions. Everything is worked out when it is first asked for.

    A subclass is a dataclass with the fields below, and says which populations the releases describe.

    Attributes
    ----------
    evidence : Evidence
        Its `refit` is the fit, to be made again.
    choice : Choice
        The number of directions, and the numbers that are tested.
    testable : bool
        Whether the features were not chosen by what they have to do with what is tested.
    """

    evidence: Evidence
    choice: Choice
    testable: bool
    tests: ClassVar[str] = "Nothing stands out of the noise: do not read the directions."
    noun: ClassVar[str] = "direction"

    @abstractmethod
    def null(self, j: int, rng: np.random.Generator) -> Records:
        """Points for a population with the first j directions alone."""

    @abstractmethod
    def look(self, points: Records, rng: np.random.Generator) -> FloatArray:
        """What a fit on a sample of the points shows, to be tested."""

    @abstractmethod
    def possible(self, rng: np.random.Generator, flat: bool) -> Records:
        """Points for a population that the releases leave possible; one that is `flat` has next to no variance along
        axes of x whose variance does not show.
        """

    @property
    @abstractmethod
    def own(self) -> Any:
        """What the fit itself found, as fits on stand-ins give it."""

    @abstractmethod
    def rows(self, found: Any) -> FloatArray:
        """Directions of a fit, in half widths, of any length."""

    @abstractmethod
    def in_x(self, found: Any) -> FloatArray:
        """The same as the estimator gives them, in the units of x."""

    def per_deviation(self, found: Any) -> FloatArray:
        """The same per standard deviation of x, where that is known."""
        return self.in_x(found)

    @property
    def _k(self) -> int:
        return self.choice.n_directions

    @property
    def most(self) -> int:
        """Most directions that can be told apart from others."""
        return len(self.choice.singular_values)

    def __getstate__(self) -> dict[str, Any]:
        """The releases alone; what follows from them can be worked out again."""
        kept: Any = self
        return {field.name: getattr(self, field.name) for field in fields(kept)}

    @cached_property
    def tested(self) -> Choice:
        """The choice of dimension with its p-values: of the directions that were asked for, and of the next one."""
        if len(self.choice.p_values) or not self.testable:
            return self.choice
        observed = self.choice.singular_values
        most = min(self.most, self._k + 1) if self.choice.given else self.most
        p_values, edge = test_each(observed, most, self.null, self.look, self.evidence)
        return replace(self.choice, p_values=p_values, edge=edge)

    def fitted(self, door: StandIn, units: FloatArray | None = None) -> Any:
        """The fit made again."""
        return drive(self.evidence.refit.run(self._k, units), door)

    @cached_property
    def worlds(self) -> list[World]:
        """Populations that the releases leave possible, every other one of them flat.

        Along an axis without variance nothing draws the coefficients back, and steps add their noise up there.
        """
        with one_blas_thread():
            rng, worlds = seeded(self.evidence), []
            for flat in islice(cycle((False, True)), POPULATIONS):
                points = self.possible(rng, flat)
                silent = unsampled(self.evidence, points, np.random.default_rng(0), SILENCE)
                worlds.append(World(points, self.fitted(silent), flat))
            return worlds

    @cached_property
    def _samples(self) -> list[list[Any]]:
        """Fits on fresh samples of each population."""
        return self._fits(sampled)

    @cached_property
    def errors(self) -> Errors:
        """Total errors: sampling and privacy noise, through every step."""
        return self._errors(self._scatter(self.in_x), self._scatter(self.per_deviation))

    @cached_property
    def privacy_errors(self) -> Errors:
        """Errors by privacy noise alone, on one and the same sample: never more than in all."""
        noisy, total = self._fits(unsampled), self.errors
        return self._errors(
            self.noise_errors(noisy, self.in_x, total.directions),
            self.noise_errors(noisy, self.per_deviation, total.loadings),
        )

    def noise_errors(self, noisy: list[list[Any]], rows: Rows, total: FloatArray) -> FloatArray:
        """Root mean square distance of fits without sampling error from the truth of each population."""
        return np.minimum(error_by((self._off(noisy, rows) ** 2).mean(axis=1), EACH), total)

    def _errors(self, of_directions: FloatArray, of_loadings: FloatArray) -> Errors:
        """No less than is said of nothing, where a unit is a guess."""
        least = np.where(self.evidence.guessed, UNKNOWN, 0.0)
        return Errors(np.maximum(of_directions, least), np.maximum(of_loadings, least))

    def _sides(self, world: World, fits: list[Any]) -> FloatArray:
        """Signs by which the rows of fits are turned to the truth: by scores, since features have units: (fits, k)."""
        centred = world.points.x - world.points.x.mean(axis=0)
        towards = self.rows(world.truth) @ (centred.T @ centred)
        alike = np.array([(self.rows(found) * towards).sum(axis=1) for found in fits])
        return np.where(alike < 0, -1.0, 1.0)

    def _fits(self, door: Callable[[Evidence, Records, np.random.Generator], StandIn]) -> list[list[Any]]:
        worlds, evidence, rng = self.worlds, self.evidence, seeded(self.evidence)
        with one_blas_thread():
            return [
                [self.fitted(door(evidence, world.points, rng), evidence.units(rng)) for _ in range(EACH)]
                for world in worlds
            ]

    def _off(self, fits: list[list[Any]], rows: Rows) -> FloatArray:
        """Distances of fits from the truth of their population, each row turned to its side: (worlds, fits, k, p)."""
        sides = np.array([self._sides(world, some) for world, some in zip(self.worlds, fits, strict=True)])
        found = np.array([[rows(one) for one in some] for some in fits])
        return np.asarray(found * sides[..., None] - np.array([rows(world.truth) for world in self.worlds])[:, None])

    def _scatter(self, rows: Rows) -> FloatArray:
        """Root mean square distance from the truth of each population.

        Or from the fit itself, over the root of two, where that is more: it is as far from the truth as others are,
        unless the populations do not describe it well.
        """
        own, others = self._off([[self.own]] * len(self.worlds), rows), self._off(self._samples, rows)
        about_truth, about_own = (((others - centre) ** 2).mean(axis=1) for centre in (0.0, own))
        return np.maximum(error_by(about_truth, EACH), error_by(about_own / 2.0, EACH))

    def part_of_total(self, noisy: list[list[Any]], rows: Rows) -> FloatArray:
        """Part of the total error, as fits on samples have it, that those without sampling error have, too."""
        part, whole = ((self._off(fits, rows) ** 2).mean(axis=(0, 1)) for fits in (noisy, self._samples))
        return np.asarray(np.sqrt(np.minimum(part / np.maximum(whole, 1e-300), 1.0)))

    @cached_property
    def alikeness(self) -> FloatArray:
        """Correlation of scores that all but few pairs reach, for each direction; records beyond the box included."""
        return self._alike(self.evidence.beyond)

    @cached_property
    def alikeness_inside(self) -> FloatArray:
        """The same of records within the box, of which the releases tell."""
        beyond = self.evidence.beyond
        return self._alike(np.zeros_like(beyond)) if beyond.any() else self.alikeness

    def _alike(self, beyond: FloatArray) -> FloatArray:
        """Pairs are of two fits on fresh samples of a population; and of the fit itself with each of them, so that
        populations in which it would hardly have come out do not speak for it. Flat populations are left out: what
        weighs along an axis without variance does nothing to scores, but for records beyond the box, where all features
        are taken to vary by themselves.
        """
        within, own = [], []
        varied = [both for both in zip(self.worlds, self._samples, strict=True) if not both[0].flat]
        for world, some in varied:
            points = with_tails(world.points.x, beyond)
            pairs = self.pairs(points, [self.rows(one) for one in (self.own, *some)])
            own.append(pairs[:, : len(some)])
            within.append(pairs[:, len(some) :])
        least = [np.quantile(np.concatenate(pairs, axis=1), 1.0 - OFTEN, axis=1) for pairs in (within, own)]
        return np.minimum(*least)

    def pairs(self, x: FloatArray, fits: list[FloatArray]) -> FloatArray:
        """Correlations of the scores of each two fits (k, p), the first with all others first: (k, pairs)."""
        scores = np.array([x @ rows.T for rows in fits])
        scores -= scores.mean(axis=1, keepdims=True)
        scores /= np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1e-300)
        above = np.triu_indices(len(scores), 1)
        columns = [np.ascontiguousarray(column) for column in np.moveaxis(scores, 2, 0)]
        return np.array([np.abs(column @ column.T)[above] for column in columns])

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the fit would come out the same again, direction by direction, and what would help."""
        announced = min(self.tested.announced, self._k)
        if announced == 0:
            told = f"{self.tests} {UNSEEN}{self._or_bounds}."
            return Verdict("noise", told, self._each(0, False))
        same = self._each(announced, False)
        parts = [spoken(same, self.noun)]
        guessed = bool(self.evidence.guessed.any()) and "reliable" in same
        if guessed:
            parts.append(GUESSED)
        inside = self.alikeness_inside[:announced]
        far = np.flatnonzero((inside >= SURE) & (self.alikeness[:announced] < SURE))
        if far.size:
            parts.append(far_out(far.tolist(), self._k, self.noun))
        if inside.min() < SURE or announced < self._k:
            parts.append(f"{remedy(float(inside.min()))}{'' if guessed else self._or_bounds}.")
        levels = self._each(announced, guessed)
        return Verdict("reliable" if set(levels) == {"reliable"} else "weak", " ".join(parts), levels)

    def _each(self, announced: int, guessed: bool) -> tuple[Level, ...]:
        """A level for each direction; none is reliable where a scale is `guessed`."""

        def level(j: int) -> Level:
            if j >= announced:
                return "noise"
            return "reliable" if self.alikeness[j] >= SURE and not guessed else "weak"

        return tuple(level(j) for j in range(self._k))

    @property
    def _or_bounds(self) -> str:
        found = self.evidence.reading
        searched = found is not None and found.known.unknown.size
        return "; so would bounds of the features, if they are known" if searched else ""


def spoken(levels: Sequence[Level], noun: str) -> str:
    """What the levels of some directions mean, one of which stands out of the noise at least.

    >>> spoken(["reliable", "weak"], "direction")
    'The first direction would come out nearly the same on a fresh sample; the second would not.'
    >>> spoken(["weak", "reliable", "noise", "noise"], "pair")  # doctest: +NORMALIZE_WHITESPACE
    'The second pair would come out nearly the same on a fresh sample; the first would not; the third and fourth do not
    stand out of the noise.'
    >>> spoken(["reliable"], "direction"), spoken(["weak", "noise"], "component")  # doctest: +NORMALIZE_WHITESPACE
    ('The direction would come out nearly the same on a fresh sample.',
     'Something stands out of the noise, but the components would come out rather different on a fresh sample.')
    """
    every = f"{noun}s" if len(levels) > 1 else noun
    if "reliable" not in levels:
        return f"Something stands out of the noise, but the {every} would come out rather different on a fresh sample."
    same, other, nothing = ([j for j, found in enumerate(levels) if found == level] for level in get_args(Level))
    kept = every if len(same) == len(levels) else f"{_listed(same)} {noun}{'s' if len(same) > 1 else ''}"
    parts = [f"The {kept} would come out nearly the same on a fresh sample"]
    if other:
        parts.append(f"the {_listed(other)} would not")
    if nothing:
        parts.append(f"the {_listed(nothing)} {'do' if len(nothing) > 1 else 'does'} not stand out of the noise")
    return "; ".join(parts) + "."


def far_out(which: Sequence[int], k: int, noun: str) -> str:
    """What is said of directions, of k, that would come out again but for records at the ends of the box and beyond.

    >>> far_out([0], 1, "direction")  # doctest: +NORMALIZE_WHITESPACE
    'Of records within `box_` scores along the direction would be nearly the same; but many lie at its ends or beyond,
    where they would not. Logarithms of skewed features, or normal scores, would help.'
    >>> far_out([0, 1], 3, "component")[:67]
    'Of records within `box_` scores along the first and second componen'
    """
    those = noun if k == 1 else f"{_listed(which)} {noun}{'s' if len(which) > 1 else ''}"
    return (
        f"Of records within `box_` scores along the {those} would be nearly the same; but many lie at its ends or "
        "beyond, where they would not. Logarithms of skewed features, or normal scores, would help."
    )


def _listed(which: Sequence[int]) -> str:
    """Positions, from 0, as words."""
    words = [ORDINALS[j] if j < len(ORDINALS) else f"{j + 1}th" for j in which]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def remedy(alike: float) -> str:
    """What would make a fit reliable whose scores are alike only by that correlation from one sample to the next.

    >>> remedy(0.6)
    'About 3 times the records or the epsilon would help'
    >>> remedy(0.02), remedy(0.95)  # doctest: +NORMALIZE_WHITESPACE
    ('Far more records or a far larger epsilon would help',
     'If there is more to find, more records or a larger epsilon would help')
    """
    if alike >= SURE:
        return "If there is more to find, more records or a larger epsilon would help"
    if needed(alike) > FAR:
        return "Far more records or a far larger epsilon would help"
    return f"About {needed(alike):.2g} times the records or the epsilon would help"


def needed(alike: float) -> float:
    """Times the records, or the epsilon, that bring two fits from that correlation to `SURE`.

    The correlation of two scores, each a signal plus an error of its own, is the signal's part of the variance. Most of
    the error of a weak fit is privacy noise, whose variance falls with the square of both.
    """
    return float(np.sqrt((1.0 / max(alike, 1e-9) - 1.0) / (1.0 / SURE - 1.0)))
