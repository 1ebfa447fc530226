"""Study C.2 of Xia, Zhang and Cai: what private slices do to SIR's eigen-gap, against epsilon, bins and slices."""

from typing import Literal

import numpy as np

from sfumato import SIR
from sfumato.iterate.pencil import arctan_edges, cut
from sfumato.papers.study import Row, Study, Values
from sfumato.simulate import xia

_SETTINGS = (
    *((0.01 * 10**i, 20, 10) for i in (0, 1, 2)),
    *((0.1, bins, 10) for bins in (10, 20, 50, 100)),
    *((1.0, bins, 10) for bins in (10, 20, 50, 100)),
    *((0.1, 50, slices) for slices in (5, 10, 20)),
)


def slice_study(model: Literal["M1", "M3"], n: int, epsilon: float, bins: int, slices: int, seed: int) -> Values:
    """Eigen-gap (the k-th generalised eigenvalue) with private slices and with sample quantiles; p = 10.

    Only the slices are private here, as in the paper: Laplace noise of scale 2 / epsilon on the bins of arctan(y).
    """
    sample = xia(model, n=n, p=10, random_state=seed)
    k = len(sample.directions)
    edges = arctan_edges(bins)
    counts = np.bincount(np.searchsorted(edges, sample.y, side="right"), minlength=bins)
    noisy = counts + np.random.default_rng(seed).laplace(scale=2.0 / epsilon, size=bins)
    label = np.searchsorted(cut(np.maximum(noisy, 0.0), slices), sample.y)
    plain = SIR(n_directions=k, n_slices=slices).fit(sample.x, sample.y)
    private = SIR(n_directions=k, n_slices=slices).fit(sample.x, label.astype(str))
    return {
        "eigen-gap, quantiles": float(plain.eigenvalues_[-1]),
        "eigen-gap, private slices": float(private.eigenvalues_[-1]),
    }


SLICES = Study(
    "xia-slices",
    "DP-SIR, newest version, supplement C.2: private slices (n = 1000, p = 10)",
    "The paper prints pictures only, so there is no printed column. For epsilon >= 0.1 the gap should hardly change.",
    tuple(
        Row(f"{model} epsilon={epsilon:g} bins={bins} slices={slices}", (model, 1000, epsilon, bins, slices), {})
        for model in ("M1", "M3")
        for epsilon, bins, slices in _SETTINGS
    ),
    slice_study,
)
