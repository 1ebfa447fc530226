"""The collaborative conditional mean difference filter exactly as printed (He, Zhang and Chen 2023, Algorithm 3)."""

import warnings
from collections.abc import Sequence

import numpy as np

from sfumato.errors import PrivacyWarning
from sfumato.typing import FloatArray, IntArray

REASON = "which features a site names is a function of its records without any noise."


def ccmd(sites: Sequence[tuple[FloatArray, IntArray]], slices: int, threshold: float) -> IntArray:
    """Features that more than half as many (site, slice) pairs as there are sites name, in increasing order.

    A pair names a feature if its sum over the slice, divided by the site's size, is beyond the threshold. "Uploading
    only an index set leaks nothing" does not hold: a deterministic set that is not constant is not private for any
    epsilon and delta < 1 (docs/explanation/errata.md). `PrivateSparseSIR` in `sfumato.federated.simulate` votes
    privately instead.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, half = rng.normal(size=(200, 3)), np.arange(200) % 2
    >>> x[half == 1, 2] += 2.0
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", PrivacyWarning)
    ...     ccmd([(x[:100], half[:100]), (x[100:], half[100:])], slices=2, threshold=0.3)
    array([2])
    """
    warnings.warn(f"The CCMD filter as printed gives no privacy: {REASON}", PrivacyWarning, stacklevel=2)
    named = np.zeros(sites[0][0].shape[1], dtype=np.int64)
    for x, slice_of in sites:
        means = np.eye(slices)[slice_of].T @ x / len(x)
        named += (np.abs(means) > threshold).sum(axis=0)
    return np.flatnonzero(named > len(sites) / 2)
