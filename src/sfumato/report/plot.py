"""The summary picture with matplotlib, for notebooks."""

from typing import Any

import numpy as np

from sfumato.steps.picture import Picture


def draw(picture: Picture, ax: Any = None) -> Any:
    """Heat map of the noisy counts on matplotlib axes (new ones if `ax` is None); returns the axes."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    shown = np.maximum(picture.counts, 0.0).T
    mesh = ax.pcolormesh(picture.direction_edges, picture.response_edges, shown, cmap="viridis", edgecolors="face")
    ax.figure.colorbar(mesh, ax=ax, label=f"records, noise ± {picture.noise_std:.0f}")
    ax.set_xlabel("first direction, in standard deviations")
    ax.set_ylabel(response_label(picture))
    return ax


def response_label(picture: Picture) -> str:
    """What the vertical axis shows."""
    return "rank of the response" if picture.is_ordered else "class of the response"
