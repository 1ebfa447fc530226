"""Residual descent: private least squares of functions of y on whitened x, noise tied to the residual.

Sliced inverse regression is the multivariate regression of functions f(y) on x: the columns of
``C = Sigma^-1 E[x f(y)^T]`` span the subspace. Gradient steps in whitened coordinates see records only through
``sum z (f - C^T z)^T``, whose sensitivity shrinks with the residual, while that of ``x x^T`` never does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct, ResponseProduct
from sfumato.steps.dimension import Choice, choose
from sfumato.steps.links import Links, links_of
from sfumato.steps.noisy_histograms import likely_counts, quantile
from sfumato.steps.ranks import BINS, Ranks
from sfumato.steps.refinement import refine
from sfumato.steps.shape import Shape
from sfumato.steps.sparsity import sparse_slopes
from sfumato.steps.targets import Targets
from sfumato.typing import FloatArray

FADED = 0.05
"""Weight below which a function beside those that are kept tells nothing any more."""
LENGTHS_KEEP = 0.9
"""What clipping leaves of the first gradient, beside what the sizes of functions tell: long records are cut more."""
LEAST_KEPT = 0.3
"""A step is at most so much longer than the gradient."""
LEFT, EVEN = 0.7, 3.0
"""Least part of the mean square of functions of y that is left by clipping, where sizes differ by more than `EVEN`."""
LONG = 2.0
"""Second moments of records that are left whole, beside those of the shorter ones by which they were whitened, where
features are skewed. Steps as long as elsewhere would go too far, and back."""
SHRINK = 1.0
"""A slope on a cosine is believed beyond so many variances of its noise."""
LEAST_LEFT = 0.1
"""Least part of a function that is believed to be left by x, where the sampling error of slopes is told from it."""
SAMPLING = 0.6
"""Largest sampling error of a coefficient, times the root of the number of records."""


REFINED_BY, REFINED_WHOLE = 12, 0.95
"""Cosines that corrections of functions are made of, and the part of the residuals that tell of them whole."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps of the descent: the share of the budget of each; constants, never read from the data.

    Sizes of residuals are asked before the steps in `sized`. `levels` are the parts of the records that are kept whole,
    at the first step and later. `bins` of the response, at a `ranks` share of the budget, carry the functions that the
    descent regresses on x; a `shape` share is for the rough covariance, whose errors many steps make good. Shares
    of `radius` and `residual` are for histograms of lengths of records and of sizes of residuals. Functions of a number
    are refined before the steps in `refined`, which are among those in `sized`, each time for a share of `refining`
    beside those of the steps. `sparse` is for features that were picked among many: in the end slopes that may be zero
    are shrunk (`sfumato.steps.sparsity`), which costs nothing.
    """

    shares: tuple[float, ...] = (3.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
    sized: tuple[int, ...] = (2, 3, 4, 6)
    levels: tuple[float, float] = (0.6, 0.45)
    weights: tuple[float, ...] = (1.0, *([0.6] * 11))
    refined: tuple[int, ...] = ()
    refining: float = 0.4
    extra: int = 1
    extra_weight: float = 0.3
    fading: float = 0.5
    bins: int = BINS
    ranks: float = 0.07
    shape: float = 0.10
    radius: float = 0.03
    residual: float = 0.03
    sparse: bool = False


USUAL = Schedule(refined=(2, 4))
PLENTY = replace(USUAL, levels=(0.6, 0.5), shape=0.05, radius=0.01, residual=0.01)
NOISY = replace(USUAL, levels=(0.6, 0.3), radius=0.01, residual=0.01)
WIDE = replace(NOISY, shape=0.17)
CENTRAL = (USUAL, PLENTY, NOISY, WIDE)
"""Of fits in one place. With many records histograms take little to be read; so does the whitening where the sample
limits a fit, and where noise does, residuals are cut sooner. Of very many features the whitening takes more: along axes
that vary less than its noise shows a descent goes slowly."""
OF_CLASSES = tuple(replace(schedule, refined=()) for schedule in CENTRAL)
"""The same for classes, which have no order that corrections of their functions could be smooth in."""
ENOUGH, MOST_NOISE = 1_000.0, 0.04
"""Least ``n mu``, how many times the noise of a count fits into n, for which histograms take little; and largest
``p / (mu^2 n)``, but for a factor the variance of noise beside that of the sample, where the sample limits a fit."""
MOST_HIDDEN = 0.15
"""Largest ``p^1.5 / (mu n)``, but for a factor the edge of the noise of the usual whitening beside a variance, at which
that is good enough."""
COSINES, FEWEST_COSINES = 0.8, 4
"""Cosines for which there is room above the noise of the first step, times the root of ``p / (mu n)``; and those that a
few directions need."""
FOUR_STEPS = Schedule((2.0, 1.0, 2.0, 3.0), (2, 3, 4), (0.6, 0.6), fading=1.0, shape=0.20)
"""Where rounds are dear, or records few."""


def schedule_of(n_features: int, n_records: int | None, mu: float, ordered: bool = True) -> Schedule:
    """The schedule of a central fit, from public numbers alone: the usual one where the number of records is private.

    Few records see few functions of the response: each cosine that is asked about brings its noise along, and what the
    leading functions show has to stand out of that of all.

    >>> [len(schedule_of(10, n, 0.24).weights) for n in (None, 1_000, 5_000, 20_000)]
    [12, 4, 8, 12]
    """
    schedule = _steps_of(n_features, n_records, mu, ordered)
    if n_records is None or not ordered:
        return schedule
    room = COSINES * np.sqrt(n_records * mu / n_features)
    return replace(schedule, weights=schedule.weights[: max(int(min(room, len(schedule.weights))), FEWEST_COSINES)])


def is_central(schedule: Schedule) -> bool:
    """Whether a fit in one place has it, with whatever number of cosines."""
    return replace(schedule, weights=USUAL.weights) in (*CENTRAL, *OF_CLASSES)


def _steps_of(n_features: int, n_records: int | None, mu: float, ordered: bool) -> Schedule:
    """The one of `CENTRAL`, or of `OF_CLASSES`.

    >>> [CENTRAL.index(_steps_of(15, n, 0.08, True)) for n in (None, 10_000, 20_000, 200_000)]
    [0, 0, 2, 1]
    >>> [CENTRAL.index(_steps_of(p, 10_000, 0.24, True)) for p in (15, 40, 60)]
    [1, 2, 3]
    """
    usual, plenty, noisy, wide = CENTRAL if ordered else OF_CLASSES
    if n_records is None or n_records * mu < ENOUGH:
        return usual
    if n_features <= MOST_NOISE * mu * mu * n_records:
        return plenty
    return noisy if n_features**1.5 <= MOST_HIDDEN * mu * n_records else wide


@dataclass(frozen=True, slots=True)
class State:
    """Where the descent stands. Everything in it is released or public.

    `kept` is what clipping leaves of a gradient, `targets` where all steps so far pointed to.
    """

    table: FloatArray
    coefficients: FloatArray
    scale: float
    kept: float
    targets: Targets

    @property
    def links(self) -> Links:
        """How the functions of y in the table depend on z, intercepts left out."""
        return links_of(self.coefficients[:-1], self.table)

    @property
    def noise_std(self) -> float:
        """Largest noise of a coefficient that the last step pointed to."""
        return float(np.sqrt(self.targets.noise[:, -1].max()))


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
        """A gradient at every step; before some of them, sizes of residuals and how they move with the response."""
        shares, sized, lines = self.schedule.shares, self.schedule.sized, []
        whole = sum(shares) + self.schedule.refining * len(self.schedule.refined)
        for t, part in enumerate(shares, start=1):
            if t in sized:
                each = self.residual_share / len(sized)
                purpose = f"size of the residuals, step {t}"
                lines.append(Line(f"residual {t}", purpose, each, "sqrt(2) / 1", asks=ResidualHistogram))
            if t in self.schedule.refined:
                each = self.share * self.schedule.refining / whole
                purpose = f"functions of the response, step {t}"
                lines.append(Line(f"functions {t}", purpose, each, "2 R sqrt(m) / R sqrt(m)", asks=ResponseProduct))
            each = self.share * part / whole
            sensitivity = "2 R sqrt(p+1) / R sqrt(p+1)"
            lines.append(Line(f"step {t}", f"descent step {t}", each, sensitivity, asks=ResidualProduct))
        return tuple(lines)

    def run(
        self, shape: Shape, ranks: Ranks, n: float, n_directions: int | None, chooser: Chooser | None = None
    ) -> Asking[Fit]:
        """Walk the schedule; choose the number of directions after the first step if it is not given."""
        schedule = self.schedule
        state = yield from step(shape, ranks, init(shape, ranks, n_directions, schedule), 1, n, schedule)
        first, seen = state.links, state.coefficients[:-1]
        choice = chooser(first) if chooser else choose(seen, state.noise_std, n, n_directions)
        state = compress_first(state, ranks, choice.n_directions, n, schedule)
        for t in range(2, len(schedule.shares) + 1):
            state = yield from step(shape, ranks, state, t, n, schedule, choice.n_directions)
            state = compress(state, choice.n_directions, t, schedule)
        links = sparse_links(shape, ranks, state, n, choice.n_directions) if schedule.sparse else state.links
        explained = np.clip(links.explained(ranks.probabilities), 0.0, 1.0)
        return Fit(first, links, choice, explained[: choice.n_directions])

    def look(self, shape: Shape, ranks: Ranks, n: float, n_directions: int | None) -> Asking[Links]:
        """The links that the number of directions is chosen by: those after the first step."""
        state = init(shape, ranks, n_directions, self.schedule)
        return (yield from step(shape, ranks, state, 1, n, self.schedule)).links


def weights_of(schedule: Schedule, least: int) -> FloatArray:
    """Of the cosines, `least` of them at least: further ones have the last weight."""
    few = schedule.weights
    return np.asarray((*few, *few[-1:] * (least - len(few))))


def init(shape: Shape, ranks: Ranks, n_directions: int | None, schedule: Schedule) -> State:
    """Zero coefficients; the residual is f itself, whose size the released ranks tell."""
    wanted = n_directions or 1
    if ranks.is_ordered:
        # More directions asked for than functions: further cosines.
        table = cosines(ranks.probabilities, weights_of(schedule, wanted))
    else:
        table = indicators(ranks.probabilities) if ranks.functions is None else ranks.functions
        # Fewer functions than directions asked for: columns of zeros, so that noise fills the directions.
        table = np.pad(table, ((0, 0), (0, max(0, wanted - table.shape[1]))))
    size = np.sqrt((table**2).sum(axis=1))
    scale = typical_size(table, ranks.probabilities, schedule.levels[0])
    scale *= unevenness(table, ranks.probabilities, schedule.levels[0])
    squares = ranks.probabilities * size**2
    whole = max(float(squares.sum()), 1e-300)
    kept = LENGTHS_KEEP * float(squares @ np.minimum(1.0, scale / np.maximum(size, 1e-300))) / whole
    start = np.zeros((len(shape.doubts) + 1, table.shape[1]))
    return State(table, start, scale, max(kept, LEAST_KEPT), Targets.none(shape, table.shape[1]))


def step(
    shape: Shape, ranks: Ranks, state: State, t: int, n: float, schedule: Schedule, n_directions: int = 1
) -> Asking[State]:
    """One release of the residual products, and a step to the average of all targets so far."""
    scale, kept = state.scale, state.kept
    residual = Residual(shape.whitening, ranks.bins, state.table, state.coefficients, scale)
    if t in schedule.sized:
        sizes = ResidualHistogram(residual)
        released: Release = yield from ask(sizes, f"residual {t}")
        counts = likely_counts(released, n)
        uneven = unevenness(state.table, ranks.probabilities, schedule.levels[1])
        scale = uneven * quantile(counts, sizes.sizes, schedule.levels[1])
        dimensions = n_directions + schedule.extra * schedule.extra_weight**2
        kept = max(kept_gradient(counts, sizes.sizes, scale, dimensions), LEAST_KEPT) * (LONG if uneven > 1.0 else 1.0)
        residual = Residual(shape.whitening, ranks.bins, state.table, state.coefficients, scale)
        if t in schedule.refined:
            state = yield from refine_functions(residual, ranks, state, t, n, n_directions, counts, sizes.sizes)
            residual = replace(residual, table=state.table)
    gradient = yield from ask(ResidualProduct(residual, scale), f"step {t}")
    noise = (gradient.noise_std.max(axis=0) / (kept * n)) ** 2
    began = state.coefficients
    targets = state.targets.and_one(began, began + gradient.value / (kept * n), noise)
    return replace(state, coefficients=targets.average(), scale=scale, kept=kept, targets=targets)


def refine_functions(
    residual: Residual, ranks: Ranks, state: State, t: int, n: float, k: int, counts: FloatArray, sizes: FloatArray
) -> Asking[State]:
    """One release of how residuals move with y; the functions kept, without what x has nothing to do with.

    Nearly all residuals are left whole, of these `sizes` in these `counts`: clipped means of skewed ones are off.
    """
    smooth = cosines(ranks.probabilities, np.ones(REFINED_BY))
    size = max(quantile(counts, sizes, REFINED_WHOLE), residual.scale)
    moved = yield from ask(ResponseProduct(residual, smooth, size), f"functions {t}")
    those = Release(moved.value[:, :k], moved.noise_std[:, :k])
    weight = n * kept_gradient(counts, sizes, size, 1.0)
    table = state.table.copy()
    table[:, :k] = refine(table[:, :k], ranks.probabilities, smooth, those, weight, residual.scale / np.sqrt(n))
    return replace(state, table=table)


def typical_size(table: FloatArray, probabilities: FloatArray, level: float) -> float:
    """Size of the functions of y that this part of the records does not exceed."""
    size = np.sqrt((table**2).sum(axis=1))
    order = np.argsort(size)
    return quantile(probabilities[order], np.maximum(size[order], 1e-3), level)


def unevenness(table: FloatArray, probabilities: FloatArray, level: float) -> float:
    """Times the typical size to which the functions of y must be let, or clipping leaves hardly anything of them.

    Where one class, or one value of y, has most of the records, functions of it are small there and large elsewhere.
    Clipped to the typical size, all others would weigh as little as records of it: what is left of their difference is
    less than what clipping makes of a skewed x. It is one where the response is spread over its values.

    >>> even, rare = np.array([[1.0], [-1.0]]), np.array([[1.0], [-99.0]])
    >>> unevenness(even, np.array([0.5, 0.5]), 0.6), round(unevenness(rare, np.array([0.99, 0.01]), 0.6), 1)
    (1.0, 69.0)
    """
    size = np.sqrt((table**2).sum(axis=1))
    rank = np.argsort(size)
    limits, weight = size[rank], (probabilities * size)[rank]
    below, within = np.cumsum(weight * limits), np.cumsum(weight)
    left = np.append(0.0, below + limits * (within[-1] - within))  # sums of weight min(limit, size), limit by limit
    times = float(np.interp(LEFT * left[-1], left, np.append(0.0, limits))) / typical_size(table, probabilities, level)
    return times if times > EVEN else 1.0


def kept_gradient(counts: FloatArray, sizes: FloatArray, limit: float, d: float) -> float:
    """What clipping at `limit` leaves of the derivative of a gradient, from counts of the sizes of products.

    A residual that is not cut moves as the coefficients do; one that is cut to a fixed length moves across it only, in
    ``d - 1`` of d dimensions, by ``limit / size`` as much.

    >>> kept_gradient(np.array([3.0, 1.0]), np.array([1.0, 2.0]), 1.5, 1.0)
    0.75
    """
    size = sizes * 2.0**-0.125
    moves = np.where(size < limit, 1.0, (1.0 - 1.0 / d) * limit / size)
    whole = float(counts.sum())
    return float(counts @ moves) / whole if whole > 0 else 1.0


def compress(state: State, n_directions: int, t: int, schedule: Schedule) -> State:
    """Turn the functions of y to those that x explains best; what is kept beside them fades, and goes in the end.

    Post-processing, after step t.
    """
    _, _, vt = np.linalg.svd(state.coefficients[:-1], full_matrices=False)
    v = vt.T.copy()
    v[:, n_directions:] *= schedule.fading
    faded = schedule.extra_weight * schedule.fading ** (t - 1) < FADED
    return _compressed(state, v[:, :n_directions] if faded else v)


def compress_first(state: State, ranks: Ranks, n_directions: int, n: float, schedule: Schedule) -> State:
    """Keep the functions of y that x was seen to explain: smaller residuals, less noise. Post-processing.

    The weights of the cosines were there to spend noise where there is something to see; a function of y is made of
    cosines with the slopes that were seen, without the weights, each shrunk by its known noise.
    """
    _, s, vt = np.linalg.svd(state.coefficients[:-1], full_matrices=False)
    v = vt[: n_directions + schedule.extra].T.copy()
    if v.shape[1] < state.table.shape[1]:
        if ranks.is_ordered:
            weights = weights_of(schedule, state.table.shape[1])[:, None]
            noise = np.hypot(state.noise_std, SAMPLING / np.sqrt(n))
            sharp = (
                v
                * np.maximum(0.0, 1.0 - SHRINK * noise**2 / np.maximum((s[: v.shape[1]] * v) ** 2, 1e-300))
                / weights**2
            )
            length = np.sqrt(((sharp * weights) ** 2).sum(axis=0))
            v = np.where(length > 1e-6, sharp / np.maximum(length, 1e-300), v)
        v[:, n_directions:] *= schedule.extra_weight
    return _compressed(state, v)


def sparse_links(shape: Shape, ranks: Ranks, state: State, n: float, n_directions: int) -> Links:
    """The links that are kept, with what features may have nothing to do with them left out. Post-processing.

    Of the errors of a slope the noise of all steps is known, and what the sample adds follows from what is left of the
    functions. On x, in units of the errors that equal ones on z make there, errors of all features are alike.
    """
    coefficients, table = state.coefficients[:-1, :n_directions], state.table[:, :n_directions]
    noise = 1.0 / (1.0 / np.maximum(state.targets.noise[:n_directions], 1e-300)).sum(axis=1)
    variance = ranks.probabilities @ (table - ranks.probabilities @ table) ** 2
    left = np.maximum(variance - (coefficients**2).sum(axis=0), LEAST_LEFT * variance)
    matrix = shape.whitening.exact_matrix
    units = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)[:, None]
    slopes = sparse_slopes(matrix.T @ coefficients / units, np.sqrt(noise + left / n))
    return links_of(shape.whitening.inverse.T @ (slopes * units), table)


def _compressed(state: State, v: FloatArray) -> State:
    table, targets = state.table @ v, state.targets.compressed(v)
    return replace(state, table=table, coefficients=state.coefficients @ v, targets=targets)


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
