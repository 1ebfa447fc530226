"""Slice edges from a small private sample: some people answer one yes-or-no question instead of the main one."""

import numpy as np
from scipy.ndimage import uniform_filter1d
from sklearn.isotonic import IsotonicRegression

from sfumato.local.slices import SliceRandomiser
from sfumato.privacy.door import Asked, sent
from sfumato.privacy.noise import Noise, randomised_response
from sfumato.statistics.histograms import octave_edges
from sfumato.typing import FloatArray, IntArray

ROUNDS = 6
MOST_PEOPLE = 4000
_RAMP = 0.02
"""Share of questions spread evenly over all thresholds so far, whatever the answers."""


def split(n: int, share: float, noise: Noise) -> tuple[IntArray, IntArray]:
    """Who is asked where y lies, and who is asked the main question: drawn without a look at any value."""
    order = np.argsort(noise.words(n), kind="stable")
    pilot = min(round(share * n), MOST_PEOPLE, n // 2)
    return np.sort(order[:pilot]), np.sort(order[pilot:])


def find_edges(y: FloatArray, n_slices: int, epsilon: float, noise: Noise) -> list[float]:
    """Edges of about equal slices, from randomised answers to "is your y below t?", a public t for each person.

    Each person answers one such question by binary randomised response: pure epsilon, and their whole part. The
    first are asked about powers of two of either sign (so no scale need be known); the thresholds of each later
    round are spread evenly over the distribution that all answers so far show, lies cancelled on average and made
    to increase. Never raises on what y is: with nothing to see the edges are poor, not absent.
    """
    knots = octave_edges()
    below = _ramp(knots)
    asked, unbiased = np.empty(0), np.empty(0)
    for batch in np.array_split(y, ROUNDS):
        if len(batch) == 0:
            continue
        level = (np.arange(len(batch)) + 0.5) / len(batch)
        thresholds = np.interp(level, (1 - _RAMP) * below + _RAMP * _ramp(knots), knots)
        asked = np.concatenate([asked, thresholds])
        unbiased = np.concatenate([unbiased, answers_below(batch, thresholds, epsilon, noise)])
        knots, below = _distribution(asked, unbiased, epsilon)
    level = np.arange(1, n_slices) / n_slices
    return _increasing(np.interp(level, 0.999 * below + 0.001 * _ramp(knots), knots))


def answers_below(y: FloatArray, thresholds: FloatArray, epsilon: float, noise: Noise) -> FloatArray:
    """Randomised answers, scaled so that their mean is the share of people below."""
    exact = (y < thresholds).astype(np.int64)
    reported = sent(Asked((thresholds, epsilon), exact, 1.0), randomised_response(noise, exact, 2, epsilon))
    lie = 1.0 - SliceRandomiser(epsilon, [0.0]).kept
    return np.asarray((reported - lie) / (1.0 - 2.0 * lie))


def _distribution(asked: FloatArray, unbiased: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Thresholds in order and the share of people below each.

    One answer says almost nothing, and a jump put in the wrong place would draw all later questions there. So answers
    are averaged over a window wide enough for an error of 0.15, which blurs a jump rather than misplacing it.
    """
    order = np.argsort(asked, kind="stable")
    window = int(np.ceil((0.5 / np.tanh(epsilon / 2) / 0.15) ** 2))
    smooth = uniform_filter1d(unbiased[order], min(window, len(order)), mode="nearest")
    # Places instead of thresholds: isotonic regression uses the order alone, and 2**40 squared would lose digits.
    place = np.arange(len(order))
    return asked[order], IsotonicRegression(y_min=0.0, y_max=1.0).fit(place, smooth).predict(place)


def _ramp(knots: FloatArray) -> FloatArray:
    return (np.arange(len(knots)) + 0.5) / len(knots)


def _increasing(edges: FloatArray) -> list[float]:
    """The same edges, equal ones moved up by as little as a float can."""
    result: list[float] = []
    for edge in edges.tolist():
        result.append(edge if not result or edge > result[-1] else float(np.nextafter(result[-1], np.inf)))
    return result
