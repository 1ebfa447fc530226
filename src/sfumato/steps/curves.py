"""Smooth curves through noisy sums on a line of columns: the noise of each is known, how smooth is found."""

from dataclasses import dataclass

import numpy as np

from sfumato.typing import FloatArray

PENALTIES = np.logspace(-2.0, 7.0, 37)
"""Precisions of second differences, beside that of the values."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A function of a score: its value at some places, and the standard error of each."""

    places: FloatArray
    values: FloatArray
    errors: FloatArray

    def at(self, scores: FloatArray) -> FloatArray:
        """Values in between, linearly; constant beyond the ends."""
        return np.interp(scores, self.places, self.values)

    def errors_at(self, scores: FloatArray) -> FloatArray:
        """Standard errors of the same."""
        return np.interp(scores, self.places, self.errors)


def smooth_curve(
    places: FloatArray, sums: FloatArray, sizes: FloatArray, variances: FloatArray, spread: float
) -> Curve:
    """The smooth curve d of which ``sums`` are noisy values of ``sizes d``, with the given variances.

    Before anything is seen d has the variance `spread` everywhere, and its second differences are independent normals
    of a variance that is chosen where the sums are most likely; d is then their posterior mean. A column of size zero
    says nothing, and is filled in by its neighbours with an error to match.

    >>> places = np.linspace(-1, 1, 9)
    >>> curve = smooth_curve(places, 100.0 * places, np.full(9, 100.0), np.full(9, 1.0), 1.0)
    >>> bool(np.allclose(curve.values, places, atol=1e-3)), bool((curve.errors < 0.01).all())
    (True, True)
    """
    precision = sizes**2 / np.maximum(variances, 1e-300)
    target = sizes * sums / np.maximum(variances, 1e-300)
    if not np.isfinite(precision + target).all():
        return Curve(places, np.zeros(len(places)), np.full(len(places), np.sqrt(spread)))
    rough = np.diff(np.eye(len(places)), 2, axis=0)
    flat, bent = np.eye(len(places)) / spread, rough.T @ rough / spread
    priors = [flat + weight * bent for weight in PENALTIES]
    best = max(priors, key=lambda prior: _likelihood(prior, precision, target))
    inverse = np.linalg.inv(np.diag(precision) + best)
    return Curve(places, inverse @ target, np.sqrt(np.maximum(np.diag(inverse), 0.0)))


def _likelihood(prior: FloatArray, precision: FloatArray, target: FloatArray) -> float:
    """Log-likelihood of the sums, up to what does not depend on the prior."""
    posterior = np.diag(precision) + prior
    volume = float(np.linalg.slogdet(prior)[1]) - float(np.linalg.slogdet(posterior)[1])
    return 0.5 * (volume + float(target @ np.linalg.solve(posterior, target)))
