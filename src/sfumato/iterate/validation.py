"""DP validation of the number of features (Algorithm C.6 of Xia, Zhang and Cai, sign and sensitivity corrected)."""

import numpy as np

from sfumato.bounds import Grid
from sfumato.iterate.pencil import Pencil, Sliced, paired
from sfumato.privacy.door import Door
from sfumato.privacy.plan import Line
from sfumato.statistics.validation import CandidateSums

RADIUS = 2.0
"""Truncation of a projection, in its standard deviations, per root of the number of directions."""


def plan_validation(share: float) -> tuple[Line, ...]:
    """The line `choose_size` will use."""
    return (Line("validation", "number of features", share, "4 c^2 / 3 c^2", "selection"),)


def leading(pencil: Pencil, size: int) -> Pencil:
    """The pencil of the first `size` features alone."""
    return paired(pencil.kernel[:size, :size], pencil.covariance[:size, :size], pencil.means[:size], 0.0)


def choose_size(curator: Door, grid: Grid, sliced: Sliced, pencil: Pencil, k: int) -> int:
    """How many of the peeled features, best first: the candidate whose projections differ most between slices.

    Candidates come from the noisy pencil, so they do not fit the records they are judged by; all records judge, no
    part is set aside.
    """
    p = grid.n_features
    sizes = range(min(k, p), p + 1)
    candidates = []
    for size in sizes:
        directions = np.zeros((p, k))
        directions[:size] = leading(pencil, size).vectors[:, :k]
        candidates.append(directions)
    query = CandidateSums(grid, sliced.bins, tuple(candidates), RADIUS * float(np.sqrt(k)))
    return sizes[int(curator.select(query, "validation")[0])]
