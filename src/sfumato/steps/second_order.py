"""Second moments by slice, the known noise taken out: kernels of SAVE and DR, and the mean Hessian of the rank of y."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line, OneLine
from sfumato.statistics.slices import SliceSecondMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.dimension import Choice
from sfumato.steps.pca import descending
from sfumato.steps.picture import groups
from sfumato.steps.ranks import MOST_CLASSES, Ranks
from sfumato.steps.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SliceMoments:
    """Moments by slice in whitened coordinates, H slices: as released over the slice's size, not yet debiased.

    Attributes
    ----------
    shares : ndarray of shape (H,)
    means : ndarray of shape (H, p)
    seconds : ndarray of shape (H, p, p)
    mean_noise, second_noise : ndarray of shape (H,)
        Standard deviation of each entry of the means and of the diagonal of the seconds (off it over sqrt(2)).
    """

    shares: FloatArray
    means: FloatArray
    seconds: FloatArray
    mean_noise: FloatArray
    second_noise: FloatArray

    def rewhitened(self, root: FloatArray, mean: FloatArray) -> "SliceMoments":
        """Moments about `mean`, times `root` from both sides; the noise figures stay those before the map."""
        shifted = self.means - mean
        cross = self.means[:, :, None] * mean
        seconds = self.seconds - cross - cross.transpose(0, 2, 1) + np.outer(mean, mean)
        return SliceMoments(self.shares, shifted @ root, root @ seconds @ root, self.mean_noise, self.second_noise)


def square_bias(noise_std: FloatArray, root: FloatArray) -> FloatArray:
    """``E (R E R)^2`` for symmetric noise E of std s on and ``s / sqrt(2)`` off the diagonal, one matrix per s.

    ``E[E A E] = s^2 / 2 (tr(A) I + A)`` for symmetric A, here with ``A = R^2``.

    >>> square_bias(np.array([1.0]), np.eye(3))[0].diagonal()
    array([2., 2., 2.])
    """
    squared = root @ root
    inner = (np.trace(squared) * np.eye(len(root)) + squared) / 2.0
    return np.asarray(noise_std[:, None, None] ** 2 * (root @ inner @ root))


def save_kernel(slices: SliceMoments, root: FloatArray) -> FloatArray:
    """``sum_h p_h (I - V_h)^2``, V_h the covariance within slice h, with the expected square of the noise removed."""
    noise = slices.mean_noise[:, None, None] ** 2 * (root @ root)
    within = slices.seconds - slices.means[:, :, None] * slices.means[:, None, :] + noise
    missing = np.eye(len(root)) - within
    squares = missing @ missing - square_bias(slices.second_noise, root)
    return np.asarray(np.tensordot(slices.shares, squares, axes=1))


def dr_kernel(slices: SliceMoments, root: FloatArray) -> FloatArray:
    """Directional regression: ``2 E[(M_h - I)^2] + 2 B^2 + 2 tr(B) B``, with B the covariance of the slice means."""
    excess = slices.seconds - np.eye(len(root))
    squares = excess @ excess - square_bias(slices.second_noise, root)
    noise = float(slices.shares @ slices.mean_noise**2) * (root @ root)
    between = (slices.means.T * slices.shares) @ slices.means - noise
    first = between @ between + max(float(np.trace(between)), 0.0) * between
    return np.asarray(2.0 * np.tensordot(slices.shares, squares, axes=1) + 2.0 * first)


def kernel_edge(slices: SliceMoments, n: float) -> float:
    """How far noise and sampling alone lift the largest eigenvalue of SAVE's kernel above the others.

    The H blocks ``sqrt(p_h) E_h`` side by side are a p x pH matrix of entries of standard deviation t; its largest
    squared singular value exceeds their mean ``p H t^2`` by about ``t^2 (p + 2 p sqrt(H))`` (Bai and Yin 1993).
    Sampling adds ``1 / n_h`` to the variance of an entry. Four times that leaves room for clipping, which noise
    does not explain.
    """
    h, p = slices.means.shape
    variance = slices.shares * (slices.second_noise**2 / 2.0 + 1.0 / np.maximum(n * slices.shares, 1.0))
    return float(4.0 * variance.mean() * p * (1.0 + 2.0 * np.sqrt(h)))


def spectrum(kernel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues above the middle one, and eigenvectors, largest first.

    Clipping shrinks every direction of a slice alike, which lifts all eigenvalues by the same amount; so does any
    noise not accounted for. What stands out of the middle is the signal.
    """
    values, vectors = descending(kernel)
    middle = float(values[(len(values) + 1) // 2]) if len(values) > 1 else 0.0
    return values - middle, vectors


Kernel = Literal["save", "dr"]


@dataclass(frozen=True, slots=True)
class SecondOrder:
    """Coefficients (p, k) whose left singular vectors are the kernel's eigenvectors, and the evidence for k.

    `root` whitens again, by the released covariance of the clipped records; `coefficients` act on ``root z``, and
    `slices` are moments of it, by the slices that bins of y are in (`slice_of`).
    """

    coefficients: FloatArray
    root: FloatArray
    noise_std: float
    eigenvalues: FloatArray
    choice: Choice
    slices: SliceMoments
    slice_of: IntArray

    @property
    def axes(self) -> FloatArray:
        """Unit eigenvectors, as columns."""
        return np.asarray(self.coefficients / np.maximum(np.linalg.norm(self.coefficients, axis=0), 1e-300))


@dataclass(frozen=True, slots=True)
class SliceKernel(OneLine):
    """The step that finds the kernel's leading eigenvectors, from slices of a numeric y (`most`) or its classes."""

    line: ClassVar[Line] = Line(
        "slice moments", "sums and second moments by slice", 1.0, "1.60 r^2 / 1.12 r^2", asks=SliceSecondMoments
    )

    kernel: Kernel
    most: int

    def run(self, whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None) -> Asking[SecondOrder]:
        """The kernel's leading eigenvectors, from one release of at most `most` slices (or classes, up to 64).

        The kernel is the square of the blocks ``sqrt(p_h) (I - V_h)`` side by side, so its eigenvectors are their left
        singular vectors, which the noise of the blocks turns like those of any coefficients.
        """
        slice_of, edges = groups(ranks, self.most if ranks.is_ordered else MOST_CLASSES)
        query = SliceSecondMoments(whitening, ranks.bins, slice_of, len(edges) - 1)
        released = yield from ask(query, "slice moments")
        shares = np.maximum(np.bincount(slice_of, ranks.probabilities, minlength=query.n_slices), 0.5 / query.n_slices)
        raw = slice_moments(released.value, released.noise_std, n * shares / shares.sum(), shares / shares.sum())
        root, mean = rewhiten(raw)
        slices = raw.rewhitened(root, mean)
        found = save_kernel(slices, root) if self.kernel == "save" else dr_kernel(slices, root)
        values, vectors = spectrum(found)
        scale = 1.0 if self.kernel == "save" else 2.0  # directional regression counts second moments twice
        edge = scale * kernel_edge(slices, n)
        k = n_directions if n_directions is not None else max(1, int((values > edge).sum()))
        choice = Choice(k, values, edge, n_directions is not None)
        leading = np.maximum(values[:k], 1e-12)
        noise_std = float(np.sqrt(slices.shares @ slices.second_noise**2 / 2.0))
        coefficients = vectors[:, :k] * np.sqrt(leading / scale)
        return SecondOrder(coefficients, root, noise_std, leading, choice, slices, slice_of)


def slice_moments(value: FloatArray, noise_std: FloatArray, sizes: FloatArray, shares: FloatArray) -> SliceMoments:
    """Moments by slice of so many records, from the released sums of `SliceSecondMoments`."""
    h = len(sizes)
    p = int((np.sqrt(9 + 8 * value.shape[1]) - 3) / 2 + 0.5)
    seconds = np.stack([upper_to_full(value[i, p:] / sizes[i], p) for i in range(h)])
    means = value[:, :p] / sizes[:, None]
    return SliceMoments(shares, means, seconds, noise_std[:, 0] / sizes, noise_std[:, p] / sizes)


def rewhiten(slices: SliceMoments) -> tuple[FloatArray, FloatArray]:
    """Root of the inverse covariance of all (clipped) records, and their mean."""
    mean = slices.shares @ slices.means
    second = np.tensordot(slices.shares, slices.seconds, axes=1)
    floor = noise_edge(float(np.linalg.norm(slices.shares * slices.second_noise)), len(mean))
    return inverse_root(second - np.outer(mean, mean), floor), mean


LEAST_HALF = 0.25
"""Smallest part of the records that a half is taken to have, so that noise over its size stays bounded."""


@dataclass(frozen=True, slots=True)
class HalfMoments(OneLine):
    """The step that finds the mean Hessian: second moments of the lower and of the upper half of the ranks of y."""

    line: ClassVar[Line] = Line(
        "halves",
        "sums and second moments of the lower and the upper half",
        1.0,
        "1.60 r^2 / 1.12 r^2",
        asks=SliceSecondMoments,
    )

    def run(self, whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None) -> Asking[SecondOrder]:
        """Eigenvectors of half the difference, the largest eigenvalues in size first.

        Both are moments about the mean of all records, so that a linear trend, which moves the halves by as much to
        either side, cancels. Sampling moves an entry of the difference off the diagonal by ``1 / sqrt(n)``, one on it
        by ``sqrt(2 / n)``: it adds to the variance of the noise, and both end at the same edge.
        """
        half_of, _ = groups(ranks, 2)  # one, where more than half of the responses are equal
        released = yield from ask(SliceSecondMoments(whitening, ranks.bins, half_of, 2), "halves")
        shares = np.maximum(np.bincount(half_of, ranks.probabilities, minlength=2), LEAST_HALF)
        shares /= shares.sum()
        raw = slice_moments(released.value, released.noise_std, n * shares, shares)
        root, mean = rewhiten(raw)
        halves = raw.rewhitened(root, mean)
        lower, upper = halves.seconds
        values, vectors = largest_in_size((upper - lower) / 2.0)
        noise_std = float(np.linalg.norm(raw.second_noise)) / 2.0
        edge = 1.1 * noise_edge(float(np.hypot(noise_std, np.sqrt(2.0 / n))), len(values))
        found = max(1, int((np.abs(values) > edge).sum()))
        choice = Choice(n_directions or found, np.abs(values), edge, n_directions is not None)
        leading = values[: choice.n_directions]
        coefficients = vectors[:, : choice.n_directions] * np.maximum(np.abs(leading), 1e-12)
        return SecondOrder(coefficients, root, noise_std / np.sqrt(2.0), leading, choice, halves, half_of)


def largest_in_size(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, the largest in size first, and eigenvectors as columns."""
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values))
    return np.asarray(values[order]), np.asarray(vectors[:, order])
