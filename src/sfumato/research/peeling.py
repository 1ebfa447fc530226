"""Peeling (Algorithm 1, matrix noisy hard thresholding) and the descents of Algorithms 2 and 3."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.privacy.asking import Asking, ask, pick
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.research.pencil import Pencil, Sliced, training_half
from sfumato.research.sums import ProductRows, SliceSums
from sfumato.statistics.parts import Part
from sfumato.typing import FloatArray, IntArray

STEPS = 3
PENALTY = 1.0
RADIUS = 2.0
"""Truncation of the gradient vectors, per root of the number of directions."""


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


def peel_kernel(grid: Grid, sliced: Sliced, name: str = "peel", half: bool = False) -> Asking[IntArray]:
    """Features with the largest diagonal of the kernel, best first (Algorithm B.5, lines 2 to 6).

    With `half` only the half of the records is asked that `choose_size` makes its candidates from.
    """
    query = SliceSums(grid, sliced.bins)
    return (yield from pick(training_half(query) if half else query, name))


def start(pencil: Pencil, support: IntArray, k: int) -> Iterate:
    """The initial value: the penalised problem's own solution for the released pencil (Lemma G.3)."""
    stretch = np.sqrt(np.clip(pencil.values[:k], 0.0, 1.0) / PENALTY + 1.0)
    return Iterate(support, pencil.vectors[:, :k] * stretch, pencil.mean, pencil.means, pencil.covariance)


def descend_rows(
    grid: Grid, sliced: Sliced, state: Iterate, n: float, peel: bool, parts: bool = False
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


def _pace(state: Iterate) -> float:
    return 0.25 / max(PENALTY * float(np.linalg.eigvalsh(state.covariance)[-1]), 1e-12)


def _gradient(grid: Grid, sliced: Sliced, state: Iterate, n: float) -> ProductRows:
    k = state.directions.shape[1]
    excess = state.directions.T @ state.covariance @ state.directions - np.eye(k)
    # x is asked for about its released mean: then the second moment in the gradient is the covariance.
    table = -(state.means.T @ state.directions) - PENALTY * (state.mean @ state.directions @ excess)
    whole = np.zeros((grid.n_features, k))
    whole[state.support] = state.directions
    offset = whole * n / (2.0 * _pace(state))
    coefficients = PENALTY * state.directions @ excess
    return ProductRows(grid, sliced.bins, table, state.support, coefficients, RADIUS * float(np.sqrt(k)), offset)


def _stepped(state: Iterate, support: IntArray, query: ProductRows, released: Release, n: float) -> Iterate:
    pace = 2.0 * _pace(state) / n
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
