"""Where y lies: what randomised answers to "is your y at least t?" say when not even its scale is known.

Some people answer that instead of the main question, a few at a time: the pilot.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import uniform_filter1d
from sklearn.isotonic import IsotonicRegression

from sfumato.local.answers import Answers
from sfumato.local.randomisers import ThresholdRandomiser, join, thresholds_of
from sfumato.privacy.noise import Noise
from sfumato.statistics.histograms import octave_edges
from sfumato.typing import FloatArray, IntArray

ROUNDS = 6
MOST_PEOPLE = 4000

SCALES = 4.0 ** np.arange(-20, 21)
"""Spreads that y may have."""
CENTRES = 80
"""Centres that are weighed at a time; where they lie follows from what the answers said of earlier ones."""
ZOOMS = 4
GROUPS = 200
"""Thresholds that are told apart; a pilot's answers are too noisy to place y more finely at once."""
_RAMP = 0.02
"""Share of belief that stays spread over all octaves, whatever the answers."""

_DOUBT = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Places in increasing order, and the share of people that is believed to be below each."""

    places: FloatArray
    below: FloatArray

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Where so many of the people are below."""
        return np.asarray(np.interp(levels, self.below, self.places))


def _ramp(count: int) -> FloatArray:
    return (np.arange(count) + 0.5) / count


def prior() -> Belief:
    """Before any answer every octave of either sign is as likely as any other."""
    octaves = octave_edges()
    return Belief(octaves, _ramp(len(octaves)))


@np.errstate(all="ignore")  # whatever the user asked numpy for, no answer raises or warns
def believe(answers: Answers) -> Belief:
    """The distribution of y after these answers: a mixture of Cauchy distributions, weighed by Bayes' rule.

    A Cauchy distribution has a centre and a spread, and forgives tails of any length. Its centre is sought in a few
    zooms: the next centres to be weighed are quantiles of what the last ones said, each with its own part of the prior
    as its weight, so that zooming in counts no answer twice. Never raises on what the answers are.

    >>> form = ThresholdRandomiser(4.0, np.linspace(-50.0, 50.0, 400))
    >>> found = believe(form.randomize(np.full(400, 7.0)))
    >>> bool(abs(found.quantiles(np.array([0.5]))[0] - 7.0) < 2.0)
    True
    """
    belief, known = prior(), prior()
    lie = max(thresholds_of(answers).lie, 1e-9)  # no answer is beyond doubt
    grouped = _grouped(answers)
    for _ in range(ZOOMS):
        centres = np.unique(np.append(belief.quantiles(_ramp(CENTRES)), [*known.places[::8], 0.0]))
        share = np.gradient(np.interp(centres, known.places, known.below))
        likely = np.stack([_log_likelihood(*grouped, lie, centres, scale) for scale in SCALES], axis=1)
        weights = np.maximum(share, 1e-300)[:, None] * np.exp(likely - likely.max())
        belief = _mixture(centres, weights / weights.sum(), known)
    return belief


def _grouped(answers: Answers) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Neighbouring thresholds taken together: the middle one of each group, and how many said yes and no."""
    thresholds = thresholds_of(answers).thresholds
    order = np.argsort(thresholds, kind="stable")
    groups = np.array_split(order, min(len(order), GROUPS))
    yes = np.array([float(answers.values[group].sum()) for group in groups])
    return (
        np.array([thresholds[group[len(group) // 2]] for group in groups]),
        yes,
        np.array(list(map(len, groups))) - yes,
    )


def _log_likelihood(
    t: FloatArray, yes: FloatArray, no: FloatArray, lie: float, centres: FloatArray, scale: float
) -> FloatArray:
    above = 0.5 - np.arctan((t - centres[:, None]) / scale) / math.pi
    chance = lie + (1.0 - 2.0 * lie) * above
    return np.asarray(np.log(chance) @ yes + np.log1p(-chance) @ no)


def _mixture(centres: FloatArray, weights: FloatArray, known: Belief) -> Belief:
    """The weighted Cauchy distributions together, at octaves, at the centres and about the likeliest of them."""
    i, j = np.nonzero(weights > 1e-3)
    about = centres[i] + SCALES[j] * np.array([[-8.0], [-2.0], [-0.5], [0.5], [2.0], [8.0]])
    places = np.unique(np.concatenate([known.places, centres, about.ravel()]))
    below = np.zeros(len(places))
    for scale, column in zip(SCALES, weights.T, strict=True):
        kept = column > 1e-6
        below += (0.5 + np.arctan((places[:, None] - centres[kept]) / scale) / math.pi) @ column[kept]
    below /= weights[weights > 1e-6].sum()
    return Belief(places, (1.0 - _RAMP) * below + _RAMP * np.interp(places, known.places, known.below))


def split(n: int, share: float, noise: Noise) -> tuple[IntArray, IntArray]:
    """Who is asked where y lies, and who is asked the main question: drawn without a look at any value."""
    order = np.argsort(noise.words(n), kind="stable")
    pilot = min(round(share * n), MOST_PEOPLE, n // 2)
    return np.sort(order[:pilot]), np.sort(order[pilot:])


def find_edges(y: FloatArray, n_slices: int, epsilon: float, noise: Noise) -> list[float]:
    """Edges of about equal slices, from randomised answers to "is your y at least t?", a public t for each person.

    Each person answers one such question by binary randomised response: pure epsilon, and their whole part. The
    first are asked about powers of two of either sign (so no scale need be known); the thresholds of each later
    round are spread evenly over what all answers so far make of y. Never raises on what y is: with nothing to see the
    edges are poor, not absent.
    """
    belief, answers = prior(), None
    for batch in np.array_split(y, ROUNDS):
        if len(batch) == 0:
            continue
        form = ThresholdRandomiser(epsilon, belief.quantiles(_ramp(len(batch))))
        answers = join(answers, form.randomize(batch, noise))
        belief = believe(answers)
    found = belief if answers is None else _mended(belief, answers)
    return _increasing(found.quantiles(np.arange(1, n_slices) / n_slices))


def _mended(belief: Belief, answers: Answers) -> Belief:
    """The belief, with the shape that the answers show beyond it: y need not be symmetric.

    What is left of the answers, lies cancelled on average, is averaged over as many thresholds as make its error
    `_DOUBT`, and what is then believed to lie below each threshold is made to increase.
    """
    form = thresholds_of(answers)
    order = np.argsort(form.thresholds, kind="stable")
    places, told = form.thresholds[order], np.asarray(answers.values)[order]
    below = np.interp(places, belief.places, belief.below)
    left = (1.0 - told - form.lie) / (1.0 - 2.0 * form.lie) - below
    window = min(int(np.ceil((0.5 * form.noise_std / _DOUBT) ** 2)), len(left))
    mended = below + uniform_filter1d(left, window)
    # Ranks instead of thresholds: isotonic regression uses the order alone, and 2**40 squared would lose digits.
    rank = np.arange(len(places))
    shares = IsotonicRegression(y_min=0.0, y_max=1.0).fit(rank, mended).predict(rank)
    return Belief(places, (1.0 - _RAMP) * shares + _RAMP * below)


def _increasing(edges: FloatArray) -> list[float]:
    """The same edges, equal ones moved up by as little as a float can."""
    result: list[float] = []
    for edge in edges.tolist():
        result.append(edge if not result or edge > result[-1] else float(np.nextafter(result[-1], np.inf)))
    return result
