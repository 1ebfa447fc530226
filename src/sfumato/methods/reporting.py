"""What a fitted estimator shows of its releases: a page, and a picture in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.displays import displays

if TYPE_CHECKING:
    from sfumato.steps.picture import Picture


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a fit comes from, for whoever signs its report: names and words, no value of a record.

    Attributes
    ----------
    table, response : str
        What was fitted, as the command named it.
    command : str
        The command itself.
    account : str
        What the shared ledger had left afterwards.
    version : str
        Of the library that wrote it; empty for the one at work.
    """

    table: str = ""
    response: str = ""
    command: str = ""
    account: str = ""
    version: str = ""


class Reporting:
    """Gives a fitted estimator its ``report``."""

    origin_: Origin

    def report(self, path: str | PathLike[str]) -> Path:
        """Write a self-contained HTML report; only released values are in it."""
        target, page = Path(path), displays().make_page(self._shown())
        target.write_text(page, encoding="utf-8")
        return target

    def plot_loadings(self, direction: int = 1, ax: Any = None) -> Any:
        """Bars of the features' weights in a direction, with their errors (needs matplotlib); returns the axes."""
        return displays().plot_loadings(self._shown(), direction, ax)

    def plot_eigenvalues(self, ax: Any = None) -> Any:
        """Bars of what decides the number of directions, with the noise edge (needs matplotlib); returns the axes."""
        return displays().plot_eigenvalues(self._shown(), ax)

    def plot_forecast(self, ax: Any = None) -> Any:
        """The loss to expect at other budgets and sizes (needs matplotlib); returns the axes."""
        return displays().plot_forecast(self._shown(), ax)

    def _shown(self) -> Any:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "ledger_")
        return self

    def _repr_html_(self) -> str:
        """Verdict, loadings and guarantee once it is fitted; its parameters before, as scikit-learn shows them."""
        if hasattr(self, "ledger_"):
            return str(displays().show(self))
        parent: Any = super()
        return str(parent._repr_html_())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What notebooks ask for first."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def draw_picture(picture: Picture, ax: Any = None) -> Any:
    """Heat map of the noisy counts on matplotlib axes (new ones if `ax` is None); returns the axes."""
    ax = axes_of(ax)
    shown = picture.counts.clip(min=0.0).T
    mesh = ax.pcolormesh(picture.direction_edges, picture.response_edges, shown, cmap="viridis", edgecolors="face")
    ax.figure.colorbar(mesh, ax=ax, label=f"records, noise ± {picture.noise_std:.0f}")
    ax.set_xlabel("first direction, in standard deviations")
    ax.set_ylabel(response_label(picture))
    return ax


def axes_of(ax: Any) -> Any:
    """The matplotlib axes to draw on: new ones if none are given."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def response_label(picture: Picture) -> str:
    """What the vertical axis shows."""
    return "rank of the response" if picture.is_ordered else "class of the response"
