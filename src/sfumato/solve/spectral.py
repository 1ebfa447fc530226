"""From coefficients in whitened coordinates to orthonormal directions in the units of x."""

from dataclasses import dataclass

import numpy as np

from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Directions (k, p), orthonormal rows; their standard errors from the known noise; singular values."""

    directions: FloatArray
    standard_errors: FloatArray
    singular_values: FloatArray


def directions_in_x(coefficients: FloatArray, noise_std: float, to_z: FloatArray, k: int) -> Spectrum:
    """Leading left singular vectors of C, mapped back through ``z = to_z x``, orthonormalised in order.

    The noise of C moves a singular vector in every orthogonal direction by ``noise_std / singular value`` (first
    order); the map carries that to x, and what orthonormalising leaves of a direction is scaled up with its error.
    """
    u, s, _ = np.linalg.svd(coefficients, full_matrices=False)
    raw = to_z.T @ u[:, :k]
    length = np.linalg.norm(raw, axis=0)
    q, r = np.linalg.qr(raw / length)
    directions = (q * np.where(r.diagonal() < 0, -1.0, 1.0)).T
    spread = np.linalg.norm(to_z, axis=0)
    relative = noise_std / np.maximum(s[:k], noise_std)
    left = np.maximum(np.abs(r.diagonal()), 1e-12)
    return Spectrum(directions, np.outer(relative / (length * left), spread), s)
