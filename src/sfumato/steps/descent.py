"""Residual descent: private least squares of functions of y on whitened x, noise tied to the residual.

Sliced inverse regression is the multivariate regression of functions f(y) on x: the columns of
``C = Sigma^-1 E[x f(y)^T]`` span the subspace. Gradient steps in whitened coordinates see records only through
``sum z (f - C^T z)^T``, whose sensitivity shrinks with the residual, while that of ``x x^T`` never does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct
from sfumato.statistics.whitening import Whitening
from sfumato.steps.dimension import Choice, choose
from sfumato.steps.links import Links, links_of
from sfumato.steps.noisy_histograms import likely_counts, quantile
from sfumato.steps.ranks import BINS, Ranks
from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps of the descent: share of the budget and step length of each; constants, never read from the data.

    `bins` of the response, at a `ranks` share of the budget, carry the functions that the descent regresses on x.
    """

    shares: tuple[float, ...] = (2.0, 1.0, 2.0, 3.0)
    steps: tuple[float, ...] = (1.5, 1.5, 1.3, 1.0)
    level: float = 0.6
    weights: tuple[float, ...] = (1.0, *([0.6] * 11))
    extra: int = 1
    extra_weight: float = 0.3
    bins: int = BINS
    ranks: float = 0.07


@dataclass(frozen=True, slots=True)
class State:
    """Where the descent stands. Everything in it is released or public."""

    table: FloatArray
    coefficients: FloatArray
    noise_std: float
    scale: float

    @property
    def links(self) -> Links:
        """How the functions of y in the table depend on z, intercepts left out."""
        return links_of(self.coefficients[:-1], self.table)


@dataclass(frozen=True, slots=True)
class Fit:
    """Result: how functions of y depend on z, at first sight and in the end, and how many of the links to keep."""

    first: Links
    links: Links
    choice: Choice
    eigenvalues: FloatArray


Chooser = Callable[[Links], Choice]
"""How many directions to keep, given the first links seen."""


@dataclass(frozen=True, slots=True)
class Descent:
    """The step that walks a schedule: `share` of the budget is for gradients, `residual_share` for residual sizes."""

    schedule: Schedule
    share: float
    residual_share: float

    @property
    def lines(self) -> tuple[Line, ...]:
        """A gradient at every step; from the second on, first the sizes of the residuals."""
        shares, lines = self.schedule.shares, []
        for t, part in enumerate(shares, start=1):
            if t > 1:
                each = self.residual_share / (len(shares) - 1)
                purpose = f"size of the residuals, step {t}"
                lines.append(Line(f"residual {t}", purpose, each, "sqrt(2) / 1", asks=ResidualHistogram))
            each = self.share * part / sum(shares)
            sensitivity = "2 R sqrt(p+1) / R sqrt(p+1)"
            lines.append(Line(f"step {t}", f"descent step {t}", each, sensitivity, asks=ResidualProduct))
        return tuple(lines)

    def run(
        self, whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None, chooser: Chooser | None = None
    ) -> Asking[Fit]:
        """Walk the schedule; choose the number of directions after the first step if it is not given."""
        schedule, state = self.schedule, self.start(whitening, ranks, n_directions)
        for t in range(1, len(schedule.shares) + 1):
            state = yield from step(whitening, ranks, state, t, n, schedule)
            if t == 1:
                first, seen = state.links, state.coefficients[:-1]
                choice = chooser(first) if chooser else choose(seen, state.noise_std, n, n_directions)
            state = compress(state, choice.n_directions, schedule)
        links = state.links
        explained = np.clip(links.explained(ranks.probabilities), 0.0, 1.0)
        return Fit(first, links, choice, explained[: choice.n_directions])

    def look(self, whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None) -> Asking[Links]:
        """The links that the number of directions is chosen by: those after the first step."""
        state = self.start(whitening, ranks, n_directions)
        return (yield from step(whitening, ranks, state, 1, n, self.schedule)).links

    def start(self, whitening: Whitening, ranks: Ranks, n_directions: int | None) -> State:
        """Zero coefficients; the residual is f itself, whose size the released ranks tell."""
        return init(whitening, ranks, n_directions, self.schedule)


def init(whitening: Whitening, ranks: Ranks, n_directions: int | None, schedule: Schedule) -> State:
    """Zero coefficients; the residual is f itself, whose size the released ranks tell."""
    wanted = n_directions or 1
    if ranks.is_ordered:
        # More directions asked for than functions: further cosines of the last weight.
        weights = (*schedule.weights, *schedule.weights[-1:] * (wanted - len(schedule.weights)))
        table = cosines(ranks.probabilities, np.asarray(weights))
    else:
        table = indicators(ranks.probabilities)
        # Fewer classes than directions asked for: columns of zeros, so that noise fills the directions.
        table = np.pad(table, ((0, 0), (0, max(0, wanted - table.shape[1]))))
    size = np.sqrt((table**2).sum(axis=1))
    order = np.argsort(size)
    scale = quantile(ranks.probabilities[order], np.maximum(size[order], 1e-3), schedule.level)
    return State(table, np.zeros((len(whitening.mean) + 1, table.shape[1])), 0.0, scale)


def step(whitening: Whitening, ranks: Ranks, state: State, t: int, n: float, schedule: Schedule) -> Asking[State]:
    """One release of the residual products, and a step along it."""
    residual = Residual(whitening, ranks.bins, state.table, state.coefficients, state.scale)
    scale = state.scale
    if t > 1:
        sizes = ResidualHistogram(residual)
        counts: Release = yield from ask(sizes, f"residual {t}")
        scale = quantile(likely_counts(counts, n), sizes.sizes, schedule.level)
        residual = Residual(whitening, ranks.bins, state.table, state.coefficients, scale)
    gradient = yield from ask(ResidualProduct(residual, scale), f"step {t}")
    length = schedule.steps[t - 1]
    coefficients = state.coefficients + length * gradient.value / n
    # Noise of the running coefficients: S_zz is about the identity, so a step forgets (1 - length) of the past.
    noise = np.hypot((1.0 - length) * state.noise_std, length * float(gradient.noise_std.max()) / n)
    return State(state.table, coefficients, float(noise), scale)


def compress(state: State, n_directions: int, schedule: Schedule) -> State:
    """Keep the response directions that x was seen to explain: smaller residuals, less noise. Post-processing."""
    _, _, vt = np.linalg.svd(state.coefficients[:-1], full_matrices=False)
    v = vt[: n_directions + schedule.extra].T
    if v.shape[1] < state.table.shape[1]:
        v[:, n_directions:] *= schedule.extra_weight
    return State(state.table @ v, state.coefficients @ v, state.noise_std, state.scale)


def cosines(probabilities: FloatArray, weights: FloatArray) -> FloatArray:
    """``w_j sqrt(2) cos(j pi u)`` averaged over each bin's interval of ranks: table (bins, q).

    The functions are orthonormal under the uniform distribution of ranks; the average over the interval (rather
    than the value at its middle) keeps every column's mean at exactly zero, ties or not.

    >>> table = cosines(np.full(4, 0.25), np.ones(2))
    >>> bool(np.abs(table.mean(axis=0)).max() < 1e-15)
    True
    """
    ends = np.concatenate([[0.0], np.cumsum(probabilities)])
    order = np.arange(1, len(weights) + 1)
    angle = np.pi * np.outer(ends, order)
    width = np.diff(ends)[:, None]
    middle = np.pi * np.outer((ends[1:] + ends[:-1]) / 2, order)
    mean = np.divide(np.diff(np.sin(angle), axis=0), np.pi * order * width, out=np.cos(middle), where=width > 1e-9)
    return np.asarray(np.sqrt(2.0) * weights * mean)


def indicators(probabilities: FloatArray) -> FloatArray:
    """Centred indicators of the classes in use, each over the root of its probability: table (bins, classes).

    ``E z (1_h - p_h) / sqrt(p_h) = sqrt(p_h) E[z | h]``: least squares on these is classical SIR with the classes
    as slices. Rare classes are scaled as if they had half their fair share, which bounds the table.
    """
    used = np.flatnonzero(probabilities > 0)
    p = probabilities[used]
    scale = 1.0 / np.sqrt(np.maximum(p, 0.5 / len(used)))
    table = np.tile(-p * scale, (len(probabilities), 1))
    table[used, np.arange(len(used))] += scale
    table[probabilities <= 0] = 0.0
    return table
