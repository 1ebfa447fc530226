"""Second-order directions: slice means and slice second moments in one release, then SAVE's or DR's kernel."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.iterate.picture import groups
from sfumato.iterate.ranks import MOST_CLASSES, Ranks
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.solve.dimension import Choice
from sfumato.solve.second_order import SliceMoments, dr_kernel, kernel_edge, save_kernel, spectrum
from sfumato.solve.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.statistics.slice_seconds import SliceSecondMoments
from sfumato.statistics.whitening import Whitening
from sfumato.typing import FloatArray

Kernel = Literal["save", "dr"]


@dataclass(frozen=True, slots=True)
class SecondOrder:
    """Coefficients (p, k) whose left singular vectors are the kernel's eigenvectors, and the evidence for k.

    `root` whitens again, by the released covariance of the clipped records; `coefficients` act on ``root z``.
    """

    coefficients: FloatArray
    root: FloatArray
    noise_std: float
    eigenvalues: FloatArray
    choice: Choice


def plan_second_order(share: float) -> tuple[Line, ...]:
    """The line `second_order` will use."""
    return (Line("slices", "sums and second moments by slice", share, "1.60 r^2 / 1.12 r^2"),)


def second_order(
    whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None, kernel: Kernel, most: int
) -> Asking[SecondOrder]:
    """The kernel's leading eigenvectors, from one release of at most `most` slices (or classes, up to 64).

    The kernel is the square of the blocks ``sqrt(p_h) (I - V_h)`` side by side, so its eigenvectors are their left
    singular vectors, which the noise of the blocks turns like those of any coefficients.
    """
    slice_of, edges = groups(ranks, most if ranks.is_ordered else MOST_CLASSES)
    query = SliceSecondMoments(whitening, ranks.bins, slice_of, len(edges) - 1)
    released = yield from ask(query, "slices")
    shares = np.maximum(np.bincount(slice_of, ranks.probabilities, minlength=query.n_slices), 0.5 / query.n_slices)
    raw = _slices(released.value, released.noise_std, n * shares / shares.sum(), shares / shares.sum())
    root, mean = _rewhiten(raw)
    slices = raw.rewhitened(root, mean)
    found = save_kernel(slices, root) if kernel == "save" else dr_kernel(slices, root)
    values, vectors = spectrum(found)
    scale = 1.0 if kernel == "save" else 2.0  # directional regression counts second moments twice
    edge = scale * kernel_edge(slices, n)
    k = n_directions if n_directions is not None else max(1, int((values > edge).sum()))
    choice = Choice(k, values, edge, n_directions is not None)
    leading = np.maximum(values[:k], 1e-12)
    noise_std = float(np.sqrt(slices.shares @ slices.second_noise**2 / 2.0))
    return SecondOrder(vectors[:, :k] * np.sqrt(leading / scale), root, noise_std, leading, choice)


def _slices(value: FloatArray, noise_std: FloatArray, sizes: FloatArray, shares: FloatArray) -> SliceMoments:
    h = len(sizes)
    p = int((np.sqrt(9 + 8 * value.shape[1]) - 3) / 2 + 0.5)
    seconds = np.stack([upper_to_full(value[i, p:] / sizes[i], p) for i in range(h)])
    means = value[:, :p] / sizes[:, None]
    return SliceMoments(shares, means, seconds, noise_std[:, 0] / sizes, noise_std[:, p] / sizes)


def _rewhiten(slices: SliceMoments) -> tuple[FloatArray, FloatArray]:
    """Root of the inverse covariance of all (clipped) records, and their mean."""
    mean = slices.shares @ slices.means
    second = np.tensordot(slices.shares, slices.seconds, axes=1)
    floor = noise_edge(float(np.linalg.norm(slices.shares * slices.second_noise)), len(mean))
    return inverse_root(second - np.outer(mean, mean), floor), mean
