"""Fits, plans and ledgers in a notebook: small pieces of HTML, and pictures by matplotlib in one style."""

from __future__ import annotations

from typing import Any

from sfumato.errors import InputError
from sfumato.methods.explanation import Explanation
from sfumato.privacy.ledger import FileLedger, Ledger
from sfumato.report import svg
from sfumato.report.build import build_document, make_page
from sfumato.report.html import loading_table, templates

__all__ = ["make_page", "plot_eigenvalues", "plot_forecast", "plot_loadings", "show"]

MOST_FEATURES, MOST_RELEASES = 10, 30
BAR, PLAIN, EDGE = "#559aab", "#c3bdae", "#8c2f1b"
"""The report's colours."""


def show(shown: Any) -> str:
    """A fitted estimator, an `Explanation` or a `Ledger` as a piece of HTML; names of columns are escaped."""
    match shown:
        case Explanation():
            return _render("plan", plan=shown)
        case Ledger():
            return _render("ledger", ledger=shown, entries=shown.entries[-MOST_RELEASES:], left=_left(shown))
    document = build_document(shown, forecasts=False)
    return _render("fit", document=document, rows=loading_table(document.loadings[:MOST_FEATURES]))


def plot_loadings(estimator: Any, direction: int = 1, ax: Any = None) -> Any:
    """Weights of the features in a direction with their errors, the heaviest on top; returns the axes."""
    document = build_document(estimator, forecasts=False)
    if not 1 <= direction <= document.n_directions:
        raise InputError(f"direction must be a whole number from 1 to {document.n_directions}, got {direction!r}.")
    rows = document.loadings[:20][::-1]
    values = [row.values[direction - 1] for row in rows]
    errors = [row.errors[direction - 1] for row in rows]
    axes = _axes(ax)
    clear = [not document.has_errors or abs(v) > 2 * e for v, e in zip(values, errors, strict=True)]
    axes.barh([row.feature for row in rows], values, color=[BAR if each else PLAIN for each in clear])
    if document.has_errors:
        axes.errorbar(values, range(len(rows)), xerr=errors, fmt="none", ecolor="black", elinewidth=1.0)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_xlabel(f"loading in {document.unit} {direction}")
    return axes


def plot_eigenvalues(estimator: Any, ax: Any = None) -> Any:
    """Why so many directions: the singular values (or shares of the variance) and the noise edge; returns the axes."""
    spectrum = build_document(estimator, forecasts=False).spectrum
    if spectrum is None:
        raise InputError(f"{type(estimator).__name__} keeps no spectrum to draw; plot its loadings.")
    axes = _axes(ax)
    places = range(1, len(spectrum.values) + 1)
    axes.bar(places, spectrum.values, color=[BAR if i <= spectrum.chosen else PLAIN for i in places])
    if svg.exact(spectrum.edge):
        axes.axhline(spectrum.edge, color=EDGE, linestyle="--", label="noise edge")
        axes.legend(frameon=False)
    axes.set_xticks(list(places))
    axes.set_xlabel("order")
    axes.set_ylabel(spectrum.name)
    return axes


def plot_forecast(estimator: Any, ax: Any = None) -> Any:
    """Expected distance to the true directions at other budgets and sizes; returns the axes."""
    seen = build_document(estimator).what_if
    if seen is None:
        raise InputError("there is no forecast for this fit: its method has none, or the number of records is private.")
    axes = _axes(ax)
    for i, (size, losses) in enumerate(zip(seen.sizes, seen.losses, strict=True)):
        colour, line = (BAR, "-") if i == seen.here[0] else (PLAIN, "-" if i else ":")
        axes.plot(seen.budgets, losses, line, marker="o", color=colour, label=f"{size:,} records")
    axes.axhline(seen.plain[seen.here[0]], color="black", linestyle="--", linewidth=0.8, label="without privacy")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(seen.budgets, [f"{budget:g}" for budget in seen.budgets], minor=False)
    axes.minorticks_off()
    axes.set_xlabel(f"{seen.budget_name} of the whole run")
    axes.set_ylabel("expected distance")
    axes.legend(frameon=False)
    return axes


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _left(ledger: Ledger) -> str:
    """What a shared account has left; of an account of one run nothing is said."""
    if not isinstance(ledger, FileLedger):
        return ""
    left = ledger.remaining()
    return "nothing is left" if left is None else f"{left.describe()} is left"


def _render(kind: str, **content: Any) -> str:
    return svg.printable(templates().get_template("notebook.html.jinja").render(kind=kind, **content))
