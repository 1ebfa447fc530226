"""One shot: slice sums and second moment in a single round, then the generalised eigenproblem."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line, OneLine
from sfumato.statistics.slices import SlicedMoments
from sfumato.steps.descent import Chooser, Fit
from sfumato.steps.dimension import choose
from sfumato.steps.links import Links, links_of
from sfumato.steps.picture import groups
from sfumato.steps.ranks import Ranks
from sfumato.steps.shape import Shape
from sfumato.steps.symmetric import inverse_root, noise_edge, split_moments

SLICES = 10
"""Most of a response that is a number, and of classes."""
COUNT_WEIGHT = 0.5
"""Of the sizes of the slices: as much as costs nothing where one record is replaced (`SlicedMoments`)."""


@dataclass(frozen=True, slots=True)
class OneShot(OneLine):
    """The step that asks once, at a share of the budget, about so many slices at the most."""

    n_slices: int = SLICES
    line: ClassVar[Line] = Line("slices", "slice sums and second moment", 1.0, "2.12 r / 1.50 r", asks=SlicedMoments)

    def look(self, shape: Shape, ranks: Ranks, n: float, n_directions: int | None) -> Asking[Links]:
        """The links that the number of directions is chosen by."""
        return (yield from self.run(shape, ranks, n, n_directions)).first

    def run(
        self, shape: Shape, ranks: Ranks, n: float, n_directions: int | None, chooser: Chooser | None = None
    ) -> Asking[Fit]:
        """Coefficients ``S^(-1/2) [sqrt(p_h) (mean of slice h - mean)]``, from one release.

        With everything whitened by the released S, the left singular vectors are SIR's eigenvectors. Sizes of the
        slices are released with their sums: a slice is centred by its own size, so that an empty one shows nothing.
        """
        whitening = shape.whitening
        slice_of, edges = groups(ranks, max(self.n_slices, (n_directions or 1) + 1))
        query = SlicedMoments(whitening, ranks.bins, slice_of, len(edges) - 1, count_weight=COUNT_WEIGHT)
        released = yield from ask(query, "slices")
        p, h = len(whitening.mean), query.n_slices
        by_slice, second = split_moments(released.value[:-h] / n, h)
        sums, sizes = by_slice.T, released.value[-h:] / n
        sizes += (1.0 - sizes.sum()) / h  # the nearest sizes that add up to all records
        share = np.maximum(sizes, 0.5 / h)
        mean = sums.sum(axis=1)
        floor = noise_edge(float(released.noise_std[h * p]) / n, p)
        root = inverse_root(second - np.outer(mean, mean), floor)
        kernel = (sums - np.outer(mean, sizes)) / np.sqrt(share)
        noise_std = float(released.noise_std[0]) / n * float(np.sqrt((1.0 / share).mean()))
        table = (np.eye(h)[slice_of] - share) / np.sqrt(share)
        first = links_of(kernel, table)
        choice = chooser(first) if chooser else choose(kernel, noise_std, n, n_directions)
        k = choice.n_directions
        # Fewer slices than directions asked for: columns of zeros, so that the singular vectors are completed.
        empty = max(0, k - h)
        last = links_of(np.pad(root @ kernel, ((0, 0), (0, empty))), np.pad(table, ((0, 0), (0, empty))))
        bias = noise_std**2 * h  # what noise alone adds to a squared singular value, on average over slices
        eigenvalues = np.clip(last.strengths**2 - bias, 0.0, 1.0)[:k]
        return Fit(first, replace(last, axes=root @ last.axes), choice, eigenvalues)
