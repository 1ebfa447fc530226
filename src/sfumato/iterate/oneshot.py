"""One shot: slice sums and second moment in a single round, then the generalised eigenproblem."""

import numpy as np

from sfumato.iterate.descent import Fit
from sfumato.iterate.picture import groups
from sfumato.iterate.ranks import Ranks
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.solve.dimension import choose
from sfumato.solve.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening

SLICES = 10


def plan_one_shot(share: float) -> tuple[Line, ...]:
    """The line `one_shot` will use."""
    return (Line("slices", "slice sums and second moment", share, "2.12 r / 1.41 r"),)


def one_shot(whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None) -> Asking[Fit]:
    """Coefficients ``S^(-1/2) [sqrt(p_h) (mean of slice h - mean)]``, from one release.

    With everything whitened by the released S, the left singular vectors are SIR's eigenvectors.
    """
    slice_of, edges = groups(ranks, max(SLICES, (n_directions or 1) + 1))
    query = SlicedMoments(whitening, ranks.bins, slice_of, len(edges) - 1)
    released = yield from ask(query, "slices")
    p, h = len(whitening.mean), query.n_slices
    sums = released.value[: h * p].reshape(h, p).T / n
    second = upper_to_full(released.value[h * p :] / n, p)
    share = np.maximum(np.bincount(slice_of, ranks.probabilities, minlength=h), 0.5 / h)
    mean = sums.sum(axis=1)
    floor = noise_edge(float(released.noise_std[h * p]) / n, p)
    root = inverse_root(second - np.outer(mean, mean), floor)
    scaled = root @ ((sums - np.outer(mean, share)) / np.sqrt(share))
    noise_std = float(released.noise_std[0]) / n * float(np.sqrt((1.0 / share).mean()))
    choice = choose(scaled, noise_std, n, n_directions)
    k = choice.n_directions
    # Fewer slices than directions asked for: columns of zeros, so that the singular vectors are completed.
    u, s, _ = np.linalg.svd(np.pad(scaled, ((0, 0), (0, max(0, k - h)))), full_matrices=False)
    bias = noise_std**2 * h  # what noise alone adds to a squared singular value, on average over slices
    eigenvalues = np.clip(s**2 - bias, 0.0, 1.0)[:k]
    return Fit(root @ (u * s)[:, :k], noise_std, choice, eigenvalues)
