"""The tracing attack on a published direction: was this person in the data? (FSIR paper, example 1)"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm, rankdata

from sfumato.errors import InputError
from sfumato.privacy import mechanisms
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Gaussian
from sfumato.privacy.noise import Noise, SecureNoise
from sfumato.records import Records
from sfumato.sums import BoundedSum, as_integers, round_within, shrink_into_ball, squared_norms
from sfumato.typing import FloatArray, IntArray

UNITS = 2**15


@dataclass(frozen=True, slots=True)
class Roc:
    """How well members were told from non-members: false against true positive rate at every threshold."""

    label: str
    false_positive: FloatArray
    true_positive: FloatArray

    @property
    def area(self) -> float:
        """Area under the curve: 1 if every member is found, 0.5 if the attacker might as well toss a coin."""
        return float(np.trapezoid(self.true_positive, self.false_positive))


@dataclass(frozen=True, slots=True)
class SignedSum(BoundedSum):
    """``sum of y x``, with y = +-1 and x clipped radially to `radius`: norm `radius`, diameter twice that.

    The two bounds are attained by x and -x of that length.
    """

    n_features: int
    radius: float

    @property
    def norm(self) -> float:
        return float(UNITS)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_features,)

    @property
    def grid(self) -> FloatArray:
        return np.array([self.radius / UNITS])

    def of(self, records: Records) -> IntArray:
        x = round_within(records.x * (UNITS / self.radius), self.n_features)
        x = shrink_into_ball(x, squared_norms(x), float(UNITS))
        return as_integers((x * np.where(records.y > 0, 1.0, -1.0)[:, None]).sum(axis=0))


Estimate = Callable[[FloatArray, FloatArray], FloatArray]


def raw_direction(x: FloatArray, y: FloatArray) -> FloatArray:
    """The discriminant direction as it is: the mean of y x."""
    return np.asarray((x * y[:, None]).mean(axis=0))


def private_direction(budget: Budget, noise: Noise | None = None) -> Estimate:
    """The same direction, released privately (replace-one)."""
    source = SecureNoise() if noise is None else noise
    event = Gaussian(budget.mu())

    def estimate(x: FloatArray, y: FloatArray) -> FloatArray:
        query = SignedSum(x.shape[1], math.sqrt(x.shape[1]))
        exact = query.of(Records(x, y))
        return mechanisms.gaussian(exact, query, "replace", event, source).value / len(x)

    return estimate


def trace(
    x: FloatArray,
    y: FloatArray,
    estimates: dict[str, Estimate],
    *,
    attack: Literal["reference", "paper"] = "reference",
    splits: int = 50,
    random_state: int = 0,
) -> list[Roc]:
    """Attack each estimate on random splits of the data: members, outsiders, and a group known to the attacker.

    A record z = y x is scored by how well it agrees with the estimate. The paper's score is
    ``<z - z', estimate>`` with one known record z'. That leaves the true direction, common to members and outsiders,
    in the score; ``<z, estimate - reference>`` removes it, with the known group's own direction as reference. Scores
    of different splits are not compared: each has its own estimate and known records. A curve is the mean of those of
    the splits.

    Parameters
    ----------
    x : ndarray of shape (n, p)
        Turned into normal scores and whitened first, as in the paper.
    y : ndarray of shape (n,)
        Cut at its median into +1 and -1.
    estimates : dict
        Name and estimate of each direction to attack.
    attack : {"reference", "paper"}
    """
    if len(x) < 10 or len(x) != len(y):
        raise InputError("x and y must have the same number of rows, at least 10.")
    sign = np.where(y > np.median(y), 1.0, -1.0)
    z = normal_scores(x)
    rng = np.random.default_rng(random_state)
    scores: dict[str, list[FloatArray]] = {name: [] for name in estimates}
    size = (len(z) - 1) // 2 if attack == "paper" else len(z) // 3
    for _ in range(splits):
        order = rng.permutation(len(z))
        inside, outside, known = order[:size], order[size : 2 * size], order[2 * size :]
        for name, estimate in estimates.items():
            direction = estimate(z[inside], sign[inside])
            score = _scores(z * sign[:, None], direction, known, attack)
            scores[name].append(np.stack([score[inside], score[outside]]))
    return [mean_roc(name, found) for name, found in scores.items()]


def _scores(z: FloatArray, direction: FloatArray, known: IntArray, attack: str) -> FloatArray:
    if attack == "paper":
        return np.asarray((z - z[known[0]]) @ direction)
    return np.asarray(z @ (direction - z[known].mean(axis=0)))


def normal_scores(x: FloatArray) -> FloatArray:
    """Each feature by its ranks to a normal shape, then all made uncorrelated."""
    z = norm.ppf((rankdata(x, axis=0) - 0.5) / len(x))
    values, vectors = np.linalg.eigh(np.cov(z.T) + 1e-9 * np.eye(z.shape[1]))
    return np.asarray((z - z.mean(axis=0)) @ (vectors / np.sqrt(values)) @ vectors.T)


def mean_roc(label: str, splits: Sequence[FloatArray]) -> Roc:
    """The mean over splits of the part of members found when so many outsiders are taken for members.

    A split holds the scores of its members and of as many outsiders, (2, size). The area is the mean of the splits':
    of the chances that a member scores above an outsider of the same split.

    >>> apart = np.array([[1.0, 3.0], [0.0, 2.0]])  # members, outsiders
    >>> mean_roc("", [apart]).area, mean_roc("", [apart, apart + 100.0]).area
    (0.75, 0.75)
    """
    found = []
    for members, outsiders in splits:
        above = members[:, None] - np.sort(outsiders)[::-1]
        found.append(((above > 0) + 0.5 * (above == 0)).mean(axis=0))
    reached = np.repeat(np.mean(found, axis=0), 2)
    taken = np.repeat(np.arange(len(found[0]) + 1) / len(found[0]), 2)
    return Roc(label, taken, np.concatenate([[0.0], reached, [1.0]]))


def roc_svg(curves: list[Roc]) -> str:
    """The curves as a small picture (SVG).

    >>> roc_svg([Roc("raw", np.array([0.0, 1.0]), np.array([0.0, 1.0]))]).count("<polyline")
    2
    """
    size, colours = 320, ("#b3261e", "#1a56a0", "#2e7d32", "#6a1b9a")
    lines = [f'<polyline points="0,{size} {size},0" fill="none" stroke="#999" stroke-dasharray="4 4"/>']
    for i, curve in enumerate(curves):
        at = np.unique(np.linspace(0, len(curve.false_positive) - 1, 200).astype(int))
        pairs = zip(curve.false_positive[at], curve.true_positive[at], strict=True)
        points = " ".join(f"{size * a:.1f},{size * (1 - b):.1f}" for a, b in pairs)
        colour, dash = colours[i % 4], "" if i == 0 else f' stroke-dasharray="{6 + 2 * i} 3"'
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        words = f"{curve.label}: area {curve.area:.2f}".replace("&", "&amp;").replace("<", "&lt;")
        lines.append(f'<text x="{size - 8}" y="{size - 12 - 18 * i}" text-anchor="end" fill="{colour}">{words}</text>')
    frame = f'<rect width="{size}" height="{size}" fill="none" stroke="#333"/>'
    axes = (
        f'<text x="{size / 2}" y="{size + 24}" text-anchor="middle">outsiders taken for members</text>'
        f'<text x="-10" y="{size / 2}" text-anchor="middle" transform="rotate(-90 -10 {size / 2})">members found</text>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-30 -10 {size + 45} {size + 45}" role="img"'
    style = 'aria-label="ROC of the tracing attack" font-family="sans-serif" font-size="13"'
    return f"{head} {style}>{frame}{axes}{''.join(lines)}</svg>\n"
