"""Which few of many features vary most, and principal directions that rest on them alone."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.iterate.columns import ColumnView
from sfumato.iterate.peeling import STEPS, plan_steps
from sfumato.iterate.principal import Method, Principal, plan_principal, principal
from sfumato.privacy.door import Door
from sfumato.privacy.plan import Line
from sfumato.solve.counts import quantile
from sfumato.statistics.histograms import Bins, NormHistogram
from sfumato.statistics.products import ProductRows
from sfumato.statistics.squares import SquareSums
from sfumato.typing import FloatArray, IntArray

REACH = 4.0
"""Features are clipped at this many times the typical size of an entry: one that varies more is far ahead anyway."""

LONGEST = 2.0
"""Of a column of B; those of the minimiser are at most sqrt(2) long."""


@dataclass(frozen=True, slots=True)
class Loadings:
    """Principal directions as columns (len(support), k) on the features of `support`.

    `found` is about the `picked` features; `variance` is that of all features, roughly: the squared median length.
    """

    support: IntArray
    vectors: FloatArray
    picked: IntArray
    found: Principal
    variance: float


def plan_variances(picks: int, scale_share: float, pick_share: float) -> tuple[Line, ...]:
    """The lines `most_variable` will use."""
    return (
        Line("scale", "typical length of a record", scale_share, "sqrt(2) / 1"),
        Line("picks", "features that vary most", pick_share, "c^2 / c^2", "selection", picks),
    )


def most_variable(curator: Door, grid: Grid) -> tuple[IntArray, float]:
    """Features with the largest sums of squares, best first (as Johnstone and Lu 2009), and the typical length."""
    lengths = NormHistogram(grid)
    length = float(quantile(curator.answer(lengths, "scale").value, lengths.radii, 0.5))
    return curator.select(SquareSums(grid, _clip(grid, length)), "picks"), length


def _clip(grid: Grid, length: float) -> float:
    return float(min(1.0, REACH * length / np.sqrt(grid.n_features)))


def some(grid: Grid, columns: IntArray) -> Grid:
    """The grid of some features."""
    return Grid(grid.centre[columns], grid.half_width[columns])


def plan_loadings(share: float, method: Method, picks: int, descends: bool) -> tuple[Line, ...]:
    """The lines `loadings` will use."""
    if not descends:
        return plan_principal(share, method)
    return plan_principal(share * 0.5, method) + plan_steps(share * 0.5, picks)


def loadings(
    curator: Door, grid: Grid, n: int | None, k: int, method: Method, sparsity: int | None, descends: bool
) -> Loadings:
    """Directions on the picked features; then, if asked, the descent that may exchange them."""
    picked, length = most_variable(curator, grid)
    found = principal(ColumnView(curator, picked), some(grid, picked), n, k, method, sparsity)
    state = Loadings(picked, found.vectors[:, :k], picked, found, length**2)
    if not descends:
        return state
    total = float(n) if n is not None else max(found.total, 10.0 * len(picked))
    clip = _clip(grid, length)
    return _descend(curator, Grid(grid.centre, grid.half_width * clip), clip, state, total)


def _descend(curator: Door, grid: Grid, clip: float, state: Loadings, n: float) -> Loadings:
    """Algorithm 3 of Xia, Zhang and Cai for ``-tr(B^T S B) + penalty |B^T B - I|^2`` (their appendix A).

    Half the gradient is ``-S B + penalty B (B^T B - I)``; only ``S B``, the mean of ``x e^T`` with ``e = B^T (x - m)``
    truncated, needs the records. The penalty is the largest released eigenvalue; its minimiser then has columns of
    length sqrt(2) at most. Entries are clipped where the sums of squares clipped them: `grid` is that much narrower.
    """
    k = state.vectors.shape[1]
    # No direction of a record in the box is longer than the root of its number of features.
    values = np.clip(state.found.values[:k] / clip**2, 1e-6, len(state.support))
    penalty, pace = float(values[0]), 0.25 / float(values[0])
    radius = 2.0 * float(np.sqrt(values.sum()))
    support, mean = state.support, state.found.mean / clip
    B = state.vectors * np.sqrt(1.0 + values / penalty)
    for t in range(1, STEPS + 1):
        whole = np.zeros((grid.n_features, k))
        whole[support] = B - 2.0 * pace * penalty * B @ (B.T @ B - np.eye(k))
        query = ProductRows(grid, Bins(np.empty(0)), (mean @ B)[None, :], support, -B, radius, whole * n / (2.0 * pace))
        new = np.sort(curator.select(query, f"peel {t}"))
        step = curator.answer(query.on(new), f"step {t}").value
        mean = np.array([mean[np.flatnonzero(support == j)[0]] if j in support else 0.0 for j in new])
        support, B = new, whole[new] - 2.0 * pace / n * step
        B *= np.minimum(1.0, LONGEST / np.maximum(np.linalg.norm(B, axis=0), 1e-300))  # the projection onto the ball C
    return Loadings(support, np.linalg.qr(B)[0], state.picked, state.found, state.variance)
