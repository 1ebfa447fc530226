"""How many directions: singular values against the edge of noise whose level is known."""

from dataclasses import dataclass, field

import numpy as np

from sfumato.typing import FloatArray

LEVEL = 0.01
"""A direction is announced where its p-value is not above this."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The number of directions, with the evidence: singular values and the edge they had to pass.

    `p_values` are those of the first singular values, tested one after another up to the first that does not stand out;
    empty where nothing but the edge was asked.
    """

    n_directions: int
    singular_values: FloatArray
    edge: float
    given: bool
    p_values: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def why(self) -> str:
        """One sentence."""
        asked = f"{self.n_directions} direction{'s were' if self.n_directions > 1 else ' was'} asked for."
        above = self.announced
        if self.given:
            if not len(self.p_values):
                return asked
            more = f"{'All of them' if self.n_directions > 1 else 'It'}, and the next one,"
            told = f"{above or 'None'} of them" if above <= self.n_directions else more
            return f"{asked} {told} could be told from noise."
        if above == 0:
            return "No singular value stands out of the noise; one direction is kept."
        return f"{above} singular value{'s stand' if above > 1 else ' stands'} out of the noise."

    @property
    def announced(self) -> int:
        """How many singular values stand out of the noise: by their p-values or, without a test, by the edge."""
        stands_out = self.p_values <= LEVEL if len(self.p_values) else self.singular_values > self.edge
        return int(stands_out.sum())


def choose(coefficients: FloatArray, noise_std: float, n: float, n_directions: int | None) -> Choice:
    """Count singular values of noisy coefficients (p, q) above the edge of noise, at least one.

    A p x q matrix of independent noise of standard deviation s has largest singular value about
    ``s (sqrt(p) + sqrt(q))``; s adds the known privacy noise and the sampling noise, at most ``0.6 / sqrt(n)``.
    """
    p, q = coefficients.shape
    values: FloatArray = np.linalg.svd(coefficients, compute_uv=False).astype(np.float64)
    edge = 1.1 * (noise_std + 0.6 / np.sqrt(n)) * (np.sqrt(p) + np.sqrt(q))
    found = max(1, int((values > edge).sum()))
    k = found if n_directions is None else n_directions
    return Choice(k, values, float(edge), n_directions is not None)
