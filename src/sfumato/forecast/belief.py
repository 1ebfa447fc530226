"""What to believe of a fit whose directions are what functions of y depend on: SIR and discriminants."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import null_space

from sfumato.forecast.assessment import PILOTS, Assessment, Rows, first_of, sampled, seeded, test_each
from sfumato.forecast.described import HIDDEN, Described, describe
from sfumato.forecast.evidence import Evidence, Seen
from sfumato.privacy.asking import drive
from sfumato.records import Records
from sfumato.settings.central import one_blas_thread
from sfumato.steps.dimension import LEVEL, Choice
from sfumato.steps.links import Links, links_of
from sfumato.steps.subspace import unit_rows
from sfumato.typing import FloatArray

PROBES = 4
"""Fits that tell how much of a slope comes out."""
SETTLED = 0.05
"""Change of a strength, as part of it, that is none to speak of."""
LEAST_PART, MOST_PART = 1e-4, 0.97
"""Of a function of y that x is believed to explain."""
ABSENT = 0.2
"""p-value of the next direction from which on none is believed to follow those that were asked for."""


def choose_by_test(evidence: Evidence, first: Links) -> Choice:
    """As many directions as the test announces, at least one."""
    observed = first.strengths
    p_values, edge = test_each(
        observed,
        len(observed),
        lambda j, rng: with_directions(evidence, first, j, rng),
        lambda points, rng: _look(evidence, points, rng),
        evidence,
    )
    announced = int((p_values <= LEVEL).sum())
    return Choice(max(announced, 1), observed, edge, False, p_values)


def with_next(first: Links, links: Links, k: int, probabilities: FloatArray) -> Links:
    """The k links that a descent found, and the strongest of those that it saw at first beside them.

    Of what is not kept a descent takes ever less notice: its own next link ends as noise over nearly nothing. The one
    seen at first is that of functions of y which have nothing to do with those that are kept, along other axes; it is
    taken for as much weaker, or stronger, as the leading link became after it, but for no stronger than the last that
    was kept: of a function that hardly varies noise would seem to explain any part.

    >>> links = Links(np.array([1.0, 1e-9]), np.eye(3)[:, :2], np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]))
    >>> first = Links(np.array([2.0, 1.0]), np.eye(3)[:, [0, 2]], np.array([[1.0, 1.0], [0.0, -2.0], [-1.0, 1.0]]))
    >>> found = with_next(first, links, 1, np.full(3, 1 / 3))
    >>> found.strengths.round(6), np.abs(found.axes[:, 1]), np.abs(found.functions[:, 1])
    (array([1. , 0.5]), array([0., 0., 1.]), array([1., 2., 1.]))
    """
    kept = _leading(links, k)
    others = null_space((probabilities[:, None] * kept.functions).T @ first.functions)
    slopes = first.slopes @ others
    rest = _leading(links_of(slopes - kept.axes @ (kept.axes.T @ slopes), first.functions @ others), 1)
    shown, at_first = kept.explained(probabilities), float(first.explained(probabilities)[0])
    part = rest.explained(probabilities)
    became = np.minimum(shown[0] / max(at_first, 1e-300), shown[-1] / np.maximum(part, 1e-300))
    return Links(
        np.append(kept.strengths, rest.strengths * np.sqrt(became)),
        np.column_stack([kept.axes, rest.axes]),
        np.column_stack([kept.functions, rest.functions]),
    )


def with_directions(evidence: Evidence, first: Links, j: int, rng: np.random.Generator) -> Records:
    """The population with the first j links, so strong that about the same singular values come out.

    How strong is found in a few rounds, and no more of them once a round changes nothing to speak of.
    """
    if j == 0:
        return describe(evidence, rng, tested=True).points
    links, factors = _leading(first, j), np.full(j, 0.8)
    for _ in range(3):
        points = describe(evidence, rng, links, evidence.slopes(links) * factors, tested=True).points
        seen = [first_of(_look(evidence, points, rng), j) for _ in range(12)]
        before = factors
        factors = np.clip(factors * first.strengths[:j] / np.maximum(np.median(seen, axis=0), 1e-300), 0.05, 3.0)
        if np.abs(np.log(factors / before)).max() < SETTLED:
            return points
    return describe(evidence, rng, links, evidence.slopes(links) * factors, tested=True).points


@dataclass(frozen=True, slots=True)
class Signal:
    """Parts of linked functions that x explains.

    Attributes
    ----------
    parts : ndarray of shape (r,)
        As they came out, noise and clipping accounted for.
    errors : ndarray of shape (fits, r)
        By which such numbers are off, from fit to fit.
    slopes : ndarray of shape (p, r)
        Of functions that are explained wholly.
    """

    parts: FloatArray
    errors: FloatArray
    slopes: FloatArray

    @property
    def likely(self) -> FloatArray:
        """The parts, within what is possible."""
        return np.clip(self.parts, LEAST_PART, MOST_PART)

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """Slopes with parts that the releases leave possible: of two links that came out one after the other, the
        second may be the stronger.
        """
        error = self.errors[rng.integers(len(self.errors))]
        return np.asarray(self.slopes * np.sqrt(np.clip(self.parts - error, LEAST_PART, MOST_PART)))


@dataclass(frozen=True, eq=False)
class Belief(Assessment):
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

    def null(self, j: int, rng: np.random.Generator) -> Records:
        return with_directions(self.evidence, self.first, j, rng)

    def look(self, points: Records, rng: np.random.Generator) -> FloatArray:
        return _look(self.evidence, points, rng)

    def noise_errors(self, noisy: list[list[Any]], rows: Rows, total: FloatArray) -> FloatArray:
        """A part of the total errors: populations that describe the fit badly do so with and without sampling error.
        Only the total error shows it, since the fit itself is one on a sample.
        """
        return total * self.part_of_total(noisy, rows)

    @cached_property
    def _linked(self) -> Links:
        """What the population depends on: one link more than the directions, as far as there are features, and classes
        that were seen.
        """
        ranks, most = self.evidence.ranks, min(self._k + 1, *self.links.axes.shape)
        if not ranks.is_ordered and ranks.functions is None:
            most = min(most, max(self._k, ranks.bins.count - len(ranks.unseen) - 1))
        return _leading(self.links, most)

    @cached_property
    def _signal(self) -> "Signal":
        """How much of each linked function x explains, noise and clipping accounted for.

        What comes out of a fit is about ``a signal + b``: b on stand-ins without signal, a on stand-ins with the
        signal that came out. Of the next link b is on stand-ins with all others: beside strong ones noise shows more.
        """
        evidence, links, rng = self.evidence, self._linked, seeded(self.evidence)
        shown = links.explained(evidence.ranks.probabilities)
        nothing = np.median(self._explained(describe(evidence, rng), len(shown), rng), axis=0)
        if len(shown) > self._k:
            beside = describe(evidence, rng, _leading(links, self._k))
            nothing[-1] = np.median(self._explained(beside, len(shown), rng), axis=0)[-1]
        pilot = describe(evidence, rng, links)
        put, seen = np.maximum(pilot.explained, 1e-6), self._explained(pilot, len(shown), rng)
        middle = np.median(seen, axis=0)
        gain = np.clip((middle - nothing) / put, 0.2, 2.0)
        parts, errors = (shown - nothing) / gain, (seen - middle) / gain
        if len(parts) > self._k:  # nor is the next one stronger than the last that was kept with noise accounted for
            less = min(1.0, max(parts[-2], LEAST_PART) / max(parts[-1], LEAST_PART))
            parts[-1], errors[:, -1] = less * parts[-1], less * errors[:, -1]
        return Signal(parts, errors, evidence.slopes(links) / np.sqrt(put))

    def _explained(self, population: Described, r: int, rng: np.random.Generator) -> FloatArray:
        """Part of each function that x seems to explain, fit by fit."""
        runs = [self.fitted(sampled(self.evidence, population.points, rng)) for _ in range(PILOTS)]
        return np.array([first_of(run.links.explained(run.probabilities), r) for run in runs])

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """Part of a function of y that each direction explains, noise and clipping accounted for."""
        with one_blas_thread():
            return self._signal.likely[: self._k]

    def possible(self, rng: np.random.Generator, flat: bool) -> Records:
        """A population that the releases leave possible, with what a fit does not show of it put back.

        Where x varies less than the noise of its released shape a fit sees part of a slope only, so that slopes as
        they came out are too small there. By how much follows from fits on such a population: the bias that they show
        is taken off the slopes once. Overall strength was seen to before, so that only the direction is mended.

        Its covariance is the released one, the known noise taken out. With noise put in once more, as on a draw of what
        the release of the shape leaves possible, small variances become so small that no descent would have ended
        where this one did: the steps tell of the covariance, too.
        """
        links, slopes = self._linked, self._signal.drawn(rng)
        if rng.random() < self._alone:
            slopes[:, self._k :] = 0.0
        population = describe(self.evidence, rng, links, slopes, least=HIDDEN, flat=flat)
        probes = [self.fitted(sampled(self.evidence, population.points, rng)) for _ in range(PROBES)]
        shown = np.mean([probe.slopes(links.functions) for probe in probes], axis=0)
        size = (slopes * (population.covariance @ slopes)).sum(axis=0)
        kept = (slopes * (population.covariance @ shown)).sum(axis=0)
        factor = np.clip(size / np.maximum(kept, size / 2.0 + 1e-300), 0.5, 2.0)
        bias = factor * shown - slopes
        length = (bias * (population.covariance @ bias)).sum(axis=0)
        bias *= np.sqrt(np.minimum(1.0, size / np.maximum(length, 1e-300)))  # at most as long as the slope itself
        return describe(self.evidence, rng, links, slopes - bias, least=HIDDEN, flat=flat).points

    @property
    def _alone(self) -> float:
        """Chance that no direction follows those that were asked for: by its p-value, if all of them stand out."""
        p_values = self.tested.p_values
        return min(1.0, float(p_values[self._k]) / ABSENT) if len(p_values) > self._k else 0.0

    @property
    def own(self) -> Seen:
        return Seen(self.links, self.evidence.ranks.probabilities, self.evidence.map)

    def rows(self, found: Seen) -> FloatArray:
        return found.rows(self._k)

    def in_x(self, found: Seen) -> FloatArray:
        return unit_rows(found.rows(self._k) / self.half_width)

    def per_deviation(self, found: Seen) -> FloatArray:
        return unit_rows(found.rows(self._k) * np.linalg.norm(np.linalg.pinv(found.to_z), axis=1))


def _look(evidence: Evidence, points: Records, rng: np.random.Generator) -> FloatArray:
    links: Links = drive(evidence.refit.look(), sampled(evidence, points, rng))
    return links.strengths


def _leading(links: Links, r: int) -> Links:
    return Links(links.strengths[:r], links.axes[:, :r], links.functions[:, :r])
