"""DP-Ini and DP-SIni (Algorithms B.4 and B.5 of Xia, Zhang and Cai): noisy kernel and covariance, then their pencil.

The number of features is validated as in their Algorithm C.6, sign and sensitivity corrected. Peeling is their
Algorithm 1, matrix noisy hard thresholding; from the pencil's eigenvectors the descents of Algorithms 2 and 3 go on.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.errors import InputError
from sfumato.privacy.asking import Asking, ask, pick
from sfumato.privacy.plan import Line
from sfumato.records import Response
from sfumato.release import Release
from sfumato.research.sums import CandidateSums, ProductRows, SliceSums
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.statistics.parts import OnColumns, Part
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.ranks import Ranks
from sfumato.steps.symmetric import inverse_root, noise_edge, split_moments
from sfumato.typing import FloatArray, IntArray

STEPS = 3
PENALTY = 1.0
GRADIENT_RADIUS = 2.0
"""Truncation of the gradient vectors, per root of the number of directions."""
RADIUS = 2.0
"""Truncation of a projection, in its standard deviations, per root of the number of directions."""


@dataclass(frozen=True, slots=True)
class Pencil:
    """Kernel M, covariance S and mean in half widths, the slice means (p, H) about the mean, and eigenvectors.

    Eigenvectors are generalised, largest first, with their values. The columns of `vectors` satisfy ``v^T S v = 1``.
    """

    kernel: FloatArray
    covariance: FloatArray
    mean: FloatArray
    means: FloatArray
    values: FloatArray
    vectors: FloatArray


def plan_histogram(response: Response, share: float) -> tuple[Line, ...]:
    """The lines `histogram_slices` will use: of a categorical response the histogram tells the sizes, too."""
    if response.categories is not None:
        return (Line("histogram", "histogram of the response", share, "sqrt(2) / 1"),)
    return (
        Line("histogram", "histogram of the response", 0.5 * share, "sqrt(2) / 1"),
        Line("sizes", "sizes of the slices", 0.5 * share, "sqrt(2) / 1"),
    )


def arctan_edges(bins: int) -> FloatArray:
    """Inner edges of equal bins of ``2/pi arctan(y)`` on (-1, 1), in the units of y."""
    return np.asarray(np.tan(np.pi / 2.0 * (2.0 * np.arange(1, bins) / bins - 1.0)))


def histogram_slices(response: Response, bins: int, slices: int) -> Asking[Ranks]:
    """Section 3.2: slices cut where the noisy distribution of ``arctan(y)`` passes h / H; classes are slices.

    A bin may hold an atom (zero sales, a capped value), or so much of y that its inside is not uniform: slices cut
    within it do not hold 1 / H each, so their sizes are asked for. More classes than slices are joined in their order
    (appendix D.1).
    """
    if response.hashed:
        raise InputError("classes must list the categories of y for this method; give classes=[...].")
    if response.categories is not None:
        counts = yield from ask(ResponseHistogram(Bins(np.empty(0), categories=response.categories)), "histogram")
        return class_slices(counts.value, slices)
    counts = yield from ask(ResponseHistogram(Bins(arctan_edges(bins))), "histogram")
    found = Bins(cut(counts.value, slices))
    sizes = yield from ask(ResponseHistogram(found), "sizes")
    return Ranks(found, _shares(sizes.value), float(sizes.value.sum()))


def class_slices(counts: FloatArray, slices: int) -> Ranks:
    """Classes as slices, or runs of them where there are more classes than slices; the last class is all others.

    Run h ends where the noisy distribution over the classes, in their order, first reaches h / H.

    >>> found = class_slices(np.array([30.0, 10.0, 10.0, 50.0, 0.0]), 2)
    >>> found.bins.edges, found.probabilities.round(2)
    (array([2.5]), array([0.5, 0.5]))
    """
    shares, total = _shares(counts), float(counts.sum())
    if len(counts) - 1 <= slices:
        return Ranks(Bins(np.empty(0), categories=len(counts)), shares, total)
    reached = np.searchsorted(np.cumsum(shares), np.arange(1, slices) / slices - 1e-12)
    ends = np.unique(np.minimum(reached, len(counts) - 2))  # codes that close a slice; the last slice is never empty
    return Ranks(Bins(ends + 0.5), np.add.reduceat(shares, np.concatenate([[0], ends + 1])), total)


def _shares(counts: FloatArray) -> FloatArray:
    kept = np.maximum(counts, 0.0) + 1e-9
    return np.asarray(kept / kept.sum())


def cut(counts: FloatArray, slices: int) -> FloatArray:
    """Edges of slices of equal probability, linear within a bin of ``arctan(y)``, in the units of y.

    >>> cut(np.array([1.0, 1.0, 1.0, 1.0]), 2)
    array([0.])
    """
    mass = np.maximum(counts, 0.0) + 1e-12
    ends = np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])
    position = np.linspace(-1.0, 1.0, len(counts) + 1)
    at = np.interp(np.arange(1, slices) / slices, ends, position)
    return np.asarray(np.tan(np.pi / 2.0 * np.clip(at, -1.0 + 1e-12, 1.0 - 1e-12)))


def plan_moments(share: float) -> tuple[Line, ...]:
    """The line `pencil` will use."""
    return (Line("moments", "slice sums and second moment", share, "2.12 r / 1.41 r"),)


def box(grid: Grid) -> Whitening:
    """Records as they are, in half widths: the identity, no clipping beyond the box."""
    p = grid.n_features
    return Whitening(grid, np.eye(p), np.zeros(p), float(np.sqrt(p)))


def moments_of(grid: Grid, sliced: Ranks) -> SlicedMoments:
    """Slice sums and second moment of the records as they are."""
    h = sliced.bins.count
    return SlicedMoments(box(grid), sliced.bins, np.arange(h), h)


def pencil(grid: Grid, sliced: Ranks, n: float) -> Asking[Pencil]:
    """Slice sums and second moment, released once; kernel and covariance follow without further cost.

    The printed algorithm noises the kernel itself, whose sensitivity is 6 r^2 / n or more; the slice sums it is made
    of have 2 r, and are released jointly with the second moment.
    """
    return solve_pencil((yield from ask(moments_of(grid, sliced), "moments")), sliced.probabilities, n)


def solve_pencil(released: Release, shares: FloatArray, n: float) -> Pencil:
    """Generalised eigenproblem of the released moments, repaired with the known noise."""
    kernel, covariance, means = matrices(released, shares, n)
    mean = np.clip(split_moments(released.value, len(shares))[0].sum(axis=0) / n, -1.0, 1.0)
    return paired(kernel, covariance, mean, means, noise_edge(float(released.noise_std[-1]) / n, len(mean)))


def matrices(released: Release, shares: FloatArray, n: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Kernel, covariance and slice means (p, H) of released slice sums and second moment; known bias removed."""
    h = len(shares)
    by_slice, second = split_moments(released.value / n, h)
    sums, p = by_slice.T, len(second)
    mean = sums.sum(axis=1)
    kept = np.maximum(shares, 0.25 / h)
    means = (sums - np.outer(mean, shares)) / kept
    kernel = (means * kept) @ means.T
    kernel -= np.eye(p) * (float(released.noise_std[0]) / n) ** 2 * float((1.0 / kept).sum())  # what noise alone adds
    return kernel, second - np.outer(mean, mean), means


def paired(kernel: FloatArray, covariance: FloatArray, mean: FloatArray, means: FloatArray, floor: float) -> Pencil:
    """Generalised eigenvectors of a kernel and a covariance whose eigenvalues are raised to `floor`."""
    root = inverse_root(covariance, floor)
    repaired: FloatArray = np.linalg.inv(root @ root).astype(np.float64)
    values, vectors = np.linalg.eigh(root @ kernel @ root)
    return Pencil(kernel, repaired, mean, means, values[::-1], root @ vectors[:, ::-1])


def bic_dimension(values: FloatArray, n: float, most: int) -> int:
    """DP-BIC (Section 3.4): the k that maximises ``n sum_{i<=k} l_i^2 / sum l^2 - sqrt(n) k (k + 1) / 2``.

    The criterion leaves the penalty open between the noise and n; with sqrt(n) SIR without privacy has the mean k that
    is printed for model M3 in Table 1.

    >>> bic_dimension(np.array([0.9, 0.6, 0.02, 0.01]), 20_000, 4)
    2
    """
    squares = np.maximum(values[:most], 0.0) ** 2
    k = np.arange(1, len(squares) + 1)
    fit = n * np.cumsum(squares) / max(float(squares.sum()), 1e-300)
    return int(k[np.argmax(fit - n**0.5 * k * (k + 1) / 2.0)])


def plan_validation(moments: float, share: float) -> tuple[Line, ...]:
    """The lines `choose_size` will use: moments of one half of the records, judged by the other half."""
    return (
        Line("training", "slice sums and second moment of one half of the records", moments, "2.12 r / 1.41 r"),
        Line("validation", "number of features, by the other half", share, "4 c^2 / 3 c^2", "selection"),
    )


def leading(pencil: Pencil, size: int) -> Pencil:
    """The pencil of the first `size` features alone."""
    kernel, covariance = pencil.kernel[:size, :size], pencil.covariance[:size, :size]
    return paired(kernel, covariance, pencil.mean[:size], pencil.means[:size], 0.0)


def choose_size(grid: Grid, sliced: Ranks, peeled: IntArray, n: float, k: int | None) -> Asking[int]:
    """How many of the peeled features, best first: the candidate whose projections differ most between slices.

    Candidates are made from one half of the records, as peeling was, and judged by the other (Algorithm C.6): judged by
    its own records the largest candidate would win, since what is between slices grows with every feature. Both
    questions are charged in full, so that it does not matter which half a replaced record was in.
    """
    kept = grid.some(peeled)
    released = yield from ask(Part(OnColumns(moments_of(kept, sliced), peeled), 0, 2), "training")
    pencil = solve_pencil(released, sliced.probabilities, n / 2.0)
    wanted = k or bic_dimension(pencil.values, n / 2.0, len(sliced.probabilities))
    sizes = range(min(wanted, len(peeled)), len(peeled) + 1)
    candidates = []
    for size in sizes:
        directions = np.zeros((len(peeled), sizes[0]))
        directions[:size] = leading(pencil, size).vectors[:, : sizes[0]]
        candidates.append(directions)
    query = CandidateSums(kept, sliced.bins, tuple(candidates), RADIUS * float(np.sqrt(sizes[0])))
    return sizes[int((yield from pick(Part(OnColumns(query, peeled), 1, 2), "validation"))[0])]


@dataclass(frozen=True, slots=True)
class Iterate:
    """B on the features of `support` (len(support), k); mean, slice means about it and covariance; all half widths."""

    support: IntArray
    directions: FloatArray
    mean: FloatArray
    means: FloatArray
    covariance: FloatArray


def plan_peeling(name: str, picks: int, share: float) -> tuple[Line, ...]:
    """The line of one selection of rows."""
    return (Line(name, "features with the largest entries", share, "4 c^2 / 3 c^2", "selection", picks),)


def plan_parts(share: float) -> tuple[Line, ...]:
    """The line of the descent in disjoint parts: each step asks its own part, and all together cost one release."""
    purpose = "gradient steps, each on its own part of the records"
    return (Line("steps", purpose, share, "2 R sqrt(p) / R sqrt(p)", parts=STEPS),)


def plan_steps(share: float, picks: int | None = None) -> tuple[Line, ...]:
    """The lines of the full-batch descent: a release per step, with a selection before it in high dimension."""
    lines: tuple[Line, ...] = ()
    for t in range(1, STEPS + 1):
        each = share / STEPS
        if picks is not None:
            lines += plan_peeling(f"peel {t}", picks, 0.4 * each)
            each *= 0.6
        lines += (Line(f"step {t}", f"gradient step {t}", each, "2 R sqrt(p) / R sqrt(p)"),)
    return lines


def peel_kernel(grid: Grid, sliced: Ranks, half: bool = False) -> Asking[IntArray]:
    """Features with the largest diagonal of the kernel, best first (Algorithm B.5, lines 2 to 6).

    With `half` only the half of the records is asked that `choose_size` makes its candidates from.
    """
    query = SliceSums(grid, sliced.bins)
    return (yield from pick(Part(query, 0, 2) if half else query, "peel"))


def start(pencil: Pencil, support: IntArray, k: int) -> Iterate:
    """The initial value: the penalised problem's own solution for the released pencil (Lemma G.3)."""
    stretch = np.sqrt(np.clip(pencil.values[:k], 0.0, 1.0) / PENALTY + 1.0)
    return Iterate(support, pencil.vectors[:, :k] * stretch, pencil.mean, pencil.means, pencil.covariance)


def descend_rows(
    grid: Grid, sliced: Ranks, state: Iterate, n: float, peel: bool, parts: bool = False
) -> Asking[Iterate]:
    """Gradient steps of ``-tr(B^T M B) + (penalty / 2) |B^T S B - I|^2``.

    Given B, the mean m, the slice means and ``K = B^T S B - I``, all released, a step goes along the sum over records
    of ``x e^T / n`` with ``e = -B^T (m_h - m) + penalty K B^T (x - m)``: a bounded sum once e is truncated. It is half
    the gradient that the paper prints, ``-2 M B + 2 penalty S B K``. The gradient of the paper's problem has ``4
    penalty``: what is minimised has half its penalty, and the minimiser is that of its Lemma G.3.

    With `parts` every step asks another part of the records, as printed, at the whole cost of the line: parallel
    composition, where the printed algorithm charges each step a T-th. A part has n / T records, so the noise of a step
    is T times that of one full release. Full batches share the cost instead: sqrt(T) times.
    """
    for t in range(STEPS):
        query = _gradient(grid, sliced, state, n / STEPS if parts else n)
        if parts:
            state = _stepped(state, state.support, query, (yield from ask(Part(query, t, STEPS), "steps")), n / STEPS)
            continue
        # Where validation found fewer features than the plan peels, the first of them are taken: no further cost.
        picked = (yield from pick(query, f"peel {t + 1}"))[: len(state.support)] if peel else state.support
        support = np.sort(picked)
        # The products are released for the rows of the new support only; e still depends on the old one.
        rows = query.on(support) if peel else query
        state = _stepped(state, support, query, (yield from ask(rows, f"step {t + 1}")), n)
    return state


def pace_of(state: Iterate) -> float:
    """The length of a step: a quarter of what the largest curvature allows."""
    return 0.25 / max(PENALTY * float(np.linalg.eigvalsh(state.covariance)[-1]), 1e-12)


def _gradient(grid: Grid, sliced: Ranks, state: Iterate, n: float) -> ProductRows:
    k = state.directions.shape[1]
    excess = state.directions.T @ state.covariance @ state.directions - np.eye(k)
    # x is asked for about its released mean: then the second moment in the gradient is the covariance.
    table = -(state.means.T @ state.directions) - PENALTY * (state.mean @ state.directions @ excess)
    whole = np.zeros((grid.n_features, k))
    whole[state.support] = state.directions
    offset = whole * n / (2.0 * pace_of(state))
    coefficients = PENALTY * state.directions @ excess
    return ProductRows(
        grid, sliced.bins, table, state.support, coefficients, GRADIENT_RADIUS * float(np.sqrt(k)), offset
    )


def _stepped(state: Iterate, support: IntArray, query: ProductRows, released: Release, n: float) -> Iterate:
    pace = 2.0 * pace_of(state) / n
    assert query.offset is not None
    return _moved(state, support, pace * (query.offset[support] - released.value))


def _moved(state: Iterate, support: IntArray, directions: FloatArray) -> Iterate:
    """B on a new support; of features that were not in the old one nothing is known: mean 0, the usual variance."""
    old = {int(j): i for i, j in enumerate(state.support)}
    place = np.array([old.get(int(j), -1) for j in support])
    mean, means = np.where(place >= 0, state.mean[place], 0.0), np.where(place[:, None] >= 0, state.means[place], 0.0)
    covariance = np.where((place[:, None] >= 0) & (place >= 0), state.covariance[np.ix_(place, place)], 0.0)
    covariance[place < 0, place < 0] = float(np.diag(state.covariance).mean())
    length = np.linalg.norm(directions, axis=0)
    limit = 4.0 / np.sqrt(max(float(np.diag(state.covariance).mean()), 1e-12))  # the projection onto the ball C
    return Iterate(support, directions * np.minimum(1.0, limit / np.maximum(length, 1e-300)), mean, means, covariance)
