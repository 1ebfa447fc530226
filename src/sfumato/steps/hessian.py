"""The mean Hessian of the rank of y: second moments of the lower and of the upper half of the records."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line, OneLine
from sfumato.statistics.slices import SliceSecondMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.dimension import Choice
from sfumato.steps.picture import groups
from sfumato.steps.ranks import Ranks
from sfumato.steps.second_order import SecondOrder, rewhiten, slice_moments
from sfumato.steps.symmetric import noise_edge
from sfumato.typing import FloatArray

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
