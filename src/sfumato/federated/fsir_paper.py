"""FSIR-IID and FSIR-MVG exactly as printed (He, Zhang and Chen 2023), to reproduce their tables.

Neither has the guarantee it states; see docs/explanation/errata.md. So nothing here goes through the door, and the
ledger that comes back says "no guarantee" with the reason.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np

from sfumato.errors import PrivacyWarning
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import NoGuarantee
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.typing import FloatArray, IntArray

REASONS = {
    "iid": "the noise is scaled by the private size of the smallest slice, and slices are sample quantiles.",
    "mvg": "the covariance of the noise is built from the singular vectors of the private matrix itself.",
}


def fsir_paper(
    sites: Sequence[tuple[FloatArray, IntArray]],
    k: int,
    slices: int,
    epsilon: float,
    delta: float,
    mechanism: Literal["iid", "mvg"],
    *,
    truncation: float = 3.0,
    rng: np.random.Generator,
) -> tuple[FloatArray, Ledger]:
    """Directions (k, p) from ``(x, slice of y)`` at each site, and a ledger that claims nothing.

    The truncation level is not printed; 3 keeps 99.7 % of standard normal coordinates. Covariances get the noise of
    Lemma 1 (with the square root its second statement has) and are averaged: the printed merge squares them.
    """
    warning = f"FSIR-{mechanism.upper()} as printed gives no privacy: {REASONS[mechanism]}"
    warnings.warn(warning, PrivacyWarning, stacklevel=2)
    total = sum(len(x) for x, _ in sites)
    p = sites[0][0].shape[1]
    means, covariance = np.zeros((p, slices)), np.zeros((p, p))
    for x, slice_of in sites:
        weight = len(x) / total
        means = means + weight * _means(x, slice_of, slices, epsilon, delta, mechanism, truncation, rng)
        covariance = covariance + weight * _covariance(x, epsilon, delta, rng)
    u = np.linalg.svd(means, full_matrices=False)[0][:, :k]
    directions = np.linalg.qr(np.linalg.pinv(covariance) @ u)[0].T
    ledger = Ledger(Budget.approximate(epsilon, delta), "replace")
    event = NoGuarantee(REASONS[mechanism])
    ledger.record(Entry("slice means as printed", f"FSIR-{mechanism.upper()}", event, 0.0, 0.0, 1.0, "replace"))
    return np.asarray(directions), ledger


def _means(
    x: FloatArray,
    slice_of: IntArray,
    slices: int,
    epsilon: float,
    delta: float,
    mechanism: str,
    truncation: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Proposition 2 or Algorithm 2 of the paper."""
    n, p = x.shape
    one_hot = np.eye(slices)[slice_of]
    truncated = np.clip(x, -truncation, truncation).T @ one_hot / n
    smallest = max(int(one_hot.sum(axis=0).min()), 1)
    if mechanism == "iid":
        sensitivity = 2 * truncation * math.sqrt(p) / smallest
        std = sensitivity * math.sqrt(max(math.log(1 / delta), 0.0)) / epsilon
        return np.asarray(truncated + std * rng.standard_normal((p, slices)))
    w, s, _ = np.linalg.svd(truncated, full_matrices=True)
    values = np.zeros(p)
    values[: len(s)] = s
    if len(s) > 1:  # the largest gap ends the structure; the values behind it are made equal
        d = int(np.argmax(values[: len(s) - 1] - values[1 : len(s)])) + 1
        values[d:] = values[d:].mean()
    bound = smallest**2 * epsilon**2 / (8 * truncation**2 * p * math.log(2 / delta))
    ratio = 1.0 / np.maximum(values, 1e-12) / values.sum()
    noise = w @ (1.0 / np.sqrt(bound * ratio)[:, None] * rng.standard_normal((p, slices)))
    return np.asarray(x.T @ one_hot / n + noise)


def _covariance(x: FloatArray, epsilon: float, delta: float, rng: np.random.Generator) -> FloatArray:
    """Lemma 1."""
    n, p = x.shape
    inner = max(math.log((p * p + p) / (delta * 2 * math.sqrt(2 * math.pi))), 0.0)
    std = (p + 1) / (n * epsilon) * math.sqrt(2 * inner) + 1 / (n * math.sqrt(epsilon))
    noise = np.triu(rng.standard_normal((p, p))) * std
    centred = x - x.mean(axis=0)
    return np.asarray(centred.T @ centred / n + noise + np.triu(noise, 1).T)
