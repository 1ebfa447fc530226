"""What to believe of a fit after it was made: a test of each direction, errors, and a verdict.

The fit is made again, by its own code, on stand-ins for the population that its releases describe. What the directions
scatter by is their error; how large a singular value comes out where y has nothing to do with x is the test. All of it
is post-processing of releases: no record is looked at again, and nothing is spent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.stats import t as student

from sfumato.forecast.described import HIDDEN, SHARP, Described, describe
from sfumato.forecast.evidence import RELATION, Evidence, Seen
from sfumato.forecast.stand_in import StandIn
from sfumato.privacy.asking import drive
from sfumato.records import Records
from sfumato.settings.central import one_blas_thread
from sfumato.steps.dimension import LEVEL, Choice
from sfumato.steps.links import Links, unit_rows
from sfumato.typing import FloatArray

BATCH, BATCHES = 15, 4
"""Stand-ins of a test are made by batches, until the answer is clear."""
MOST = 6
"""Most directions that are tested."""
PILOTS = 20
POPULATIONS, PROBES, EACH = 6, 8, 10
"""Populations that the releases leave possible; fits that tell how far off they come out on each, and by how much."""
ALIKE, OFTEN = 0.9, 0.975
"""A fit is reliable if the scores of two such fits on fresh samples are correlated by `ALIKE` in this part of cases."""
MORE = 1.15
"""Errors are by so much larger than the scatter of stand-ins: points that moments and lengths describe are tamer than
the records of a table."""
_SILENCE = 1e-12
Level = Literal["reliable", "weak", "noise"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a fit would come out the same again on a fresh sample.

    Attributes
    ----------
    level : {"reliable", "weak", "noise"}
    sentence : str
        What that means here, and what would help.
    """

    level: Level
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, slots=True)
class Errors:
    """Root mean square errors of the directions, in the units of x and per standard deviation of x: (k, p) each."""

    directions: FloatArray
    loadings: FloatArray


@dataclass(frozen=True, slots=True)
class World:
    """A population that the releases leave possible, and what the fit finds in it without noise."""

    points: Records
    truth: Seen


def seeded(evidence: Evidence) -> np.random.Generator:
    """Chance that depends on the releases alone: the same fit is always judged alike."""
    bits = evidence.moments.value.view(np.uint64)
    return np.random.default_rng([int(word) for word in bits[:8]])


def choose_by_test(evidence: Evidence, first: Links) -> Choice:
    """As many directions as the test announces, at least one."""
    p_values, edge = test(evidence, first)
    announced = int((p_values <= LEVEL).sum())
    return Choice(max(announced, 1), first.strengths, edge, False, p_values)


def test(evidence: Evidence, first: Links) -> tuple[FloatArray, float]:
    """A p-value for each singular value, one after another up to the first that does not stand out; and the edge.

    The (j + 1)-th is compared with what comes out on stand-ins for a population with j directions, none to begin with:
    its logarithm is about normal there. The edge is what the first of them had to pass.
    """
    rng, p_values, edge = seeded(evidence), [], np.nan
    with one_blas_thread():
        for j in range(min(MOST, len(first.strengths))):
            population = _with_directions(evidence, first, j, rng)
            null = _looks(evidence, population.points, j, rng)
            p_value, passed = _compare(float(first.strengths[j]), null)
            p_values.append(p_value)
            edge = passed if j == 0 else edge
            if p_value > LEVEL:
                break
    return np.array(p_values), float(edge)


def _with_directions(evidence: Evidence, first: Links, j: int, rng: np.random.Generator) -> Described:
    """The population with the first j links, so strong that about the same singular values come out."""
    if j == 0:
        return describe(evidence, rng, shape=SHARP)
    links, factors = _leading(first, j), np.full(j, 0.8)
    for _ in range(3):
        points = describe(evidence, rng, links, evidence.slopes(links) * factors, SHARP).points
        seen = [_look(evidence, points, rng).strengths[:j] for _ in range(12)]
        factors = np.clip(factors * first.strengths[:j] / np.maximum(np.median(seen, axis=0), 1e-300), 0.05, 3.0)
    return describe(evidence, rng, links, evidence.slopes(links) * factors, SHARP)


def _looks(evidence: Evidence, points: Records, j: int, rng: np.random.Generator) -> Iterator[float]:
    """The (j + 1)-th singular value on one stand-in after another."""
    while True:
        yield float(_look(evidence, points, rng).strengths[j])


def _compare(observed: float, null: Iterator[float]) -> tuple[float, float]:
    """p-value of an observed value, and the value at which it would be `LEVEL`; few draws where these tell enough."""
    drawn: list[float] = []
    for _ in range(BATCHES):
        drawn += [np.log(max(next(null), 1e-300)) for _ in range(BATCH)]
        law = student(len(drawn) - 1, np.mean(drawn), max(np.std(drawn, ddof=1), 1e-9) * np.sqrt(1 + 1 / len(drawn)))
        p_value = float(law.sf(np.log(max(observed, 1e-300))))
        if not LEVEL / 50.0 < p_value < 0.2:
            break
    return p_value, float(np.exp(law.isf(LEVEL)))


@dataclass(frozen=True, eq=False)
class Belief:
    """What the releases of a fit say about its own directions. Everything is worked out when it is first asked for.

    Parameters
    ----------
    evidence : Evidence
    first, links : Links
        What the number of directions was chosen by, and what the directions are made of.
    choice : Choice
    half_width : ndarray of shape (p,)
        What half a width is worth in the units of x.
    signs : ndarray of shape (k,)
    testable : bool
        Whether the features do not depend on y by choice.
    """

    evidence: Evidence
    first: Links
    links: Links
    choice: Choice
    half_width: FloatArray
    signs: FloatArray
    testable: bool

    def __getstate__(self) -> dict[str, Any]:
        """The releases alone; what follows from them can be worked out again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def _k(self) -> int:
        return len(self.signs)

    @cached_property
    def tested(self) -> Choice:
        """The choice of dimension with its p-values."""
        if len(self.choice.p_values) or not self.testable:
            return self.choice
        p_values, edge = test(self.evidence, self.first)
        return replace(self.choice, p_values=p_values, edge=edge)

    @cached_property
    def _linked(self) -> Links:
        """What the population depends on: one link more than the directions."""
        return _leading(self.links, min(self._k + 1, len(self.links.strengths)))

    @cached_property
    def _signal(self) -> tuple[FloatArray, FloatArray]:
        """How much of each linked function x explains, noise and clipping accounted for; and the slopes for that.

        What comes out of a fit is about ``a signal + b``: b on stand-ins without signal, a on stand-ins with the
        signal that came out.
        """
        evidence, links, rng = self.evidence, self._linked, seeded(self.evidence)
        shown = links.explained(evidence.ranks.probabilities)
        nothing = self._explained(describe(evidence, rng), len(shown), rng)
        pilot = describe(evidence, rng, links)
        put = np.maximum(pilot.explained, 1e-6)
        gain = np.clip((self._explained(pilot, len(shown), rng) - nothing) / put, 0.2, 2.0)
        signal = np.clip((shown - nothing) / gain, 1e-4, 0.97)
        return signal, evidence.slopes(links) * np.sqrt(signal / put)

    @cached_property
    def _worlds(self) -> list["World"]:
        """Populations that the releases leave possible, and what the fit would find in each without noise."""
        with one_blas_thread():
            rng = seeded(self.evidence)
            return [self._world(rng) for _ in range(POPULATIONS)]

    def _world(self, rng: np.random.Generator) -> "World":
        """One of them, with what a fit does not show of it put back.

        Where x varies less than the noise of its released shape a fit sees part of a slope only, so that slopes as
        they came out are too small there. By how much follows from fits on such a population: the bias that they show
        is taken off the slopes once. Overall strength was seen to before, so that only the direction is mended.
        """
        doubted, links, slopes = self.evidence.doubted(rng), self._linked, self._signal[1]
        population = describe(doubted, rng, links, slopes, least=HIDDEN)
        probes = [self._run(_door(self.evidence, population.points, rng)) for _ in range(PROBES)]
        shown = np.mean([probe.slopes(links.functions) for probe in probes], axis=0)
        size = (slopes * (population.covariance @ slopes)).sum(axis=0)
        kept = (slopes * (population.covariance @ shown)).sum(axis=0)
        factor = np.clip(size / np.maximum(kept, 1e-300), 0.5, 2.0)
        points = describe(doubted, rng, links, 2.0 * slopes - factor * shown, least=HIDDEN).points
        return World(points, self._run(_even_door(self.evidence, points, np.random.default_rng(0), _SILENCE)))

    def _explained(self, population: Described, r: int, rng: np.random.Generator) -> FloatArray:
        """Median part of each function that x seems to explain."""
        runs = [self._run(_door(self.evidence, population.points, rng)) for _ in range(PILOTS)]
        found = [run.links.explained(run.probabilities)[:r] for run in runs]
        return np.asarray(np.median(found, axis=0))

    def _run(self, door: StandIn, units: FloatArray | None = None) -> Seen:
        return drive(self.evidence.refit.run(self._k, units), door)

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """Part of a function of y that each direction explains, noise and clipping accounted for."""
        with one_blas_thread():
            return np.asarray(self._signal[0][: self._k])

    @cached_property
    def _samples(self) -> list[list[Seen]]:
        """Fits on fresh samples of each population."""
        return self._fits(_door)

    @cached_property
    def errors(self) -> Errors:
        """Total errors: sampling and privacy noise, through every step."""
        return self._errors(self._samples)

    @cached_property
    def privacy_errors(self) -> Errors:
        """Errors by privacy noise alone, on one and the same sample."""
        return self._errors(self._fits(_even_door))

    def _fits(self, door: Callable[[Evidence, Records, np.random.Generator], StandIn]) -> list[list[Seen]]:
        worlds = self._worlds
        with one_blas_thread():
            evidence, rng = self.evidence, seeded(self.evidence)
            return [
                [self._run(door(evidence, world.points, rng), evidence.units(rng)) for _ in range(EACH)]
                for world in worlds
            ]

    def _errors(self, fits: list[list[Seen]]) -> Errors:
        return Errors(*(self._scatter(fits, rows) for rows in (self._in_x, self._per_deviation)))

    def _scatter(self, fits: list[list[Seen]], rows: Callable[[Seen], FloatArray]) -> FloatArray:
        """Root mean square distance from the truth of each population, each row turned to its side."""
        truth = np.array([rows(world.truth) for world in self._worlds])[:, None]
        found = np.array([[rows(seen) for seen in some] for some in fits])
        found *= np.where((found * truth).sum(axis=3) < 0, -1.0, 1.0)[..., None]
        return np.asarray(MORE * np.sqrt(((found - truth) ** 2).mean(axis=(0, 1))))

    def _in_x(self, seen: Seen) -> FloatArray:
        return unit_rows(seen.rows(self._k) / self.half_width)

    def _per_deviation(self, seen: Seen) -> FloatArray:
        return unit_rows(seen.rows(self._k) * np.linalg.norm(np.linalg.pinv(seen.to_z), axis=1))

    @cached_property
    def alikeness(self) -> FloatArray:
        """Correlation of the scores of two such fits that all but few pairs of them reach, for each direction."""
        pairs = [self._pairs(world.points.x, some) for world, some in zip(self._worlds, self._samples, strict=True)]
        return np.asarray(np.quantile(np.concatenate(pairs, axis=1), 1.0 - OFTEN, axis=1))

    def _pairs(self, x: FloatArray, fits: list[Seen]) -> FloatArray:
        """Correlations of the scores of each two fits on samples of one population: (k, pairs)."""
        scores = np.array([x @ seen.rows(self._k).T for seen in fits])
        scores -= scores.mean(axis=1, keepdims=True)
        scores /= np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1e-300)
        above = np.triu_indices(len(scores), 1)
        columns = [np.ascontiguousarray(scores[:, :, j]) for j in range(self._k)]
        return np.array([np.abs(column @ column.T)[above] for column in columns])

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the fit would come out the same again, and what would help."""
        announced = self.tested.announced
        if announced == 0:
            return Verdict("noise", f"Nothing stands out of the noise: do not read the directions. {self._remedy}")
        stable = int((np.cumprod(self.alikeness >= ALIKE)).sum())
        if min(stable, announced) >= self._k:
            return Verdict("reliable", "The directions would come out nearly the same on a fresh sample.")
        return Verdict("weak", f"{_weak(min(stable, announced), announced, self._k)} {self._remedy}")

    @property
    def _remedy(self) -> str:
        return "More records or a larger epsilon would help; so would bounds, if they were not given."


def _weak(sure: int, announced: int, k: int) -> str:
    if sure:
        return f"Of {k} directions, {sure} would come out nearly the same on a fresh sample; the others are uncertain."
    some = "Something stands out of the noise" if announced else "Nothing is certain"
    return f"{some}, but the directions would come out rather different on a fresh sample."


def _look(evidence: Evidence, points: Records, rng: np.random.Generator) -> Links:
    return drive(evidence.refit.look(), _door(evidence, points, rng))


def _leading(links: Links, r: int) -> Links:
    return Links(links.strengths[:r], links.axes[:, :r], links.functions[:, :r])


def _door(evidence: Evidence, points: Records, rng: np.random.Generator) -> StandIn:
    return StandIn.of(points, evidence.n, evidence.plan, RELATION, rng)


def _even_door(evidence: Evidence, points: Records, rng: np.random.Generator, noises: float = 1.0) -> StandIn:
    return StandIn.even(points, evidence.n, evidence.plan.merged(noises), RELATION, rng)
