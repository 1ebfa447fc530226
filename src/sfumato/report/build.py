"""From any fitted estimator to what is shown of it: released values and words, nothing else.

A report document and its page; small pieces of HTML for a notebook, also of plans and ledgers; pictures by matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from sfumato.bounds import Bounds, by_column
from sfumato.errors import BudgetError, InputError
from sfumato.forecast.loss import Forecast, forecast
from sfumato.forecast.populations import WIDEST, Population
from sfumato.methods.explanation import Explanation
from sfumato.methods.reporting import Origin, axes_of, response_label
from sfumato.methods.sir import PrivateSIR
from sfumato.privacy.budget import describe_remaining
from sfumato.privacy.ledger import FileLedger, Ledger
from sfumato.report import svg, words
from sfumato.report.document import IN_ALL, PRIVACY_ALONE, Document, Heatmap, Loading, Spectrum, WhatIf
from sfumato.report.html import loading_table, render, templates
from sfumato.report.words import account_of, floats, kept_features, loadings_of
from sfumato.steps.picture import Picture

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
SIZES = (0.25, 1.0, 4.0)
LEAST, USUAL, MOST = 0.05, 0.5, 0.99
DRAWS, USUAL_DRAWS = 8, 3
"""Of a forecast with the released signal, and with a usual one, which deserves no more digits."""
MOST_FEATURES, MOST_RELEASES = 10, 30
BAR, PLAIN, EDGE = "#559aab", "#c3bdae", "#8c2f1b"
"""The report's colours."""


def make_page(estimator: Any) -> str:
    """The HTML page of a fitted estimator: what its ``report`` writes."""
    return render(build_document(estimator))


def build_document(estimator: Any, *, forecasts: bool = True) -> Document:
    """Everything a report says about a fitted estimator of any kind; without `forecasts` a little sooner."""
    account = account_of(estimator)
    loadings, units = loadings_of(estimator)
    loadings = tuple(sorted(loadings, key=_order))
    picture, verdict = getattr(estimator, "picture_", None), getattr(estimator, "verdict_", None)
    return Document(
        title=words.about(estimator).title,
        subtitle=words.subtitle(estimator),
        guarantee=account.guarantee,
        facts=words.facts(estimator, account),
        loadings=loadings,
        spectrum=_spectrum(estimator),
        heatmap=None if picture is None else _heatmap(picture),
        ledger=account.rows,
        total=account.total,
        notes=_notes(estimator, units),
        reproduce=_reproduce(estimator),
        rehearsal=account.rehearsal,
        what_if=what_if(estimator) if forecasts else None,
        unit=words.unit(estimator),
        mark=account.mark,
        verdict=verdict,
        error_of=PRIVACY_ALONE if verdict is None else IN_ALL,
        command=getattr(estimator, "origin_", Origin()).command,
    )


def _order(loading: Loading) -> tuple[bool, float]:
    """Features of a second table last, and first those that weigh most in any direction."""
    most = max((abs(value) for value in loading.values if math.isfinite(value)), default=0.0)
    return loading.feature.startswith(f"{words.SECOND} "), -most


def _spectrum(estimator: Any) -> Spectrum | None:
    """Why so many directions: the evidence that was kept, or the numbers of those asked for."""
    choice = getattr(estimator, "choice_", None)
    if choice is not None:
        found, tested = floats(choice.singular_values), floats(choice.p_values)
        return Spectrum(found, choice.edge, choice.n_directions, choice.why, p_values=tested)
    ratios = getattr(estimator, "explained_variance_ratio_", None)
    if ratios is None:
        return None
    k = len(ratios)
    why = f"{k} component{'s were' if k > 1 else ' was'} asked for."
    return Spectrum(floats(ratios), math.nan, k, why, "share of the variance")


def _heatmap(picture: Picture) -> Heatmap:
    return Heatmap(
        x_edges=floats(picture.direction_edges),
        y_edges=floats(picture.response_edges),
        counts=tuple(floats(row) for row in picture.counts),
        noise_std=picture.noise_std,
        x_label="first direction, in standard deviations",
        y_label=response_label(picture),
    )


def _notes(estimator: Any, units: str) -> tuple[str, ...]:
    notes = [
        units,
        "Everything on this page was computed from the noisy releases listed in the ledger. No record was read to "
        "draw it.",
    ]
    if kept_features(estimator) is not None:
        notes.append("Features that were not kept have weight zero and are not listed.")
    unseen = getattr(estimator, "unseen_features_", ())
    if len(unseen):
        names = ", ".join(map(str, unseen))
        notes.append(f"No spread was seen of {names}: constant, or too few values that differ. Its scale is a guess.")
    rare = getattr(estimator, "rare_features_", ())
    if len(rare):
        notes.append(f"By the noisy means at most one record in 25 has {', '.join(map(str, rare))}.")
    if isinstance(by_column(getattr(estimator, "bounds", None)), Bounds | Mapping):
        notes.append("Values outside the given bounds were moved to the nearest bound before anything was computed.")
    return tuple(notes)


def _reproduce(estimator: Any) -> str:
    """The call, without the ledger: whoever runs it again brings an account of their own."""
    plain = clone(estimator)  # parameters alone, so that the call shows nothing that was fitted
    if "ledger" in plain.get_params(deep=False):
        plain.set_params(ledger=None)
    about = words.about(estimator)
    arguments = "X" if about.own_units else "X, y"
    homes = dict.fromkeys(("sfumato", about.home))
    imports = "\n".join(f"from {home} import *" for home in homes)
    return f"{imports}\n\n{plain!r}.fit({arguments})"


def what_if(estimator: Any) -> WhatIf | None:
    """The forecast for a fitted estimator; None where there is none, or where n is private.

    The signal that the forecast needs is the released eigenvalue of the first direction of `PrivateSIR`, and a usual
    one for the others, so nothing is asked of the records: this is post-processing.
    """
    n, p = getattr(estimator, "n_records_", None), int(estimator.n_features_in_)
    if n is None or not 2 <= p <= WIDEST or not hasattr(estimator, "explain"):
        return None
    targets = getattr(estimator, "n_targets_in_", None)
    plan = estimator.explain(n, p) if targets is None else estimator.explain(n, p, targets)
    if not plan.has_forecast:
        return None
    try:
        return _forecast(estimator, plan)
    except BudgetError:  # a quarter of a tiny budget is none
        return None


def _forecast(estimator: Any, plan: Explanation) -> WhatIf:
    n = plan.n_samples
    k = len(estimator.directions_)
    released = type(estimator) is PrivateSIR
    signal = _signal(estimator) if released else USUAL
    assert plan.prospect is not None
    population = plan.prospect.explaining(signal, k)
    draws = DRAWS if released else USUAL_DRAWS
    seen = [[_loss(plan, budget, size * n, population, draws) for budget in BUDGETS] for size in SIZES]
    name = "rho" if plan.budget.rho is not None else "epsilon"
    base = plan.budget.rho if plan.budget.rho is not None else plan.budget.epsilon
    return WhatIf(
        budget_name=name,
        budgets=tuple(float(base or 1.0) * budget for budget in BUDGETS),
        sizes=tuple(round(size * n) for size in SIZES),
        losses=tuple(tuple(one.loss for one in row) for row in seen),
        plain=tuple(row[0].plain for row in seen),
        useless=seen[0][0].useless,
        here=(SIZES.index(1.0), BUDGETS.index(1.0)),
        assumption=(
            f"Assumed: normal, independent features, and {'one direction' if k == 1 else f'{min(k, 2)} directions'} "
            f"that explain{'s' if k == 1 else ''} {signal:.0%} of the response, as released here."
            if released
            else f"Assumed: typical records with a signal of {signal:.0%}, by {plan.meaning}."
        ),
    )


def _signal(estimator: Any) -> float:
    values = [float(value) for value in estimator.eigenvalues_ if math.isfinite(value)]
    return min(max(values[0] if values else 0.5, LEAST), MOST)


def _loss(plan: Explanation, factor: float, n: float, population: Population, draws: int) -> Forecast:
    budget = plan.budget
    if budget.rho is not None:
        other = replace(budget, rho=budget.rho * factor)
    else:
        other = replace(budget, epsilon=(budget.epsilon or 1.0) * factor)
    return forecast(plan.fit, other, n, population, relation=plan.relation, rows=plan.rows_per_person, draws=draws)


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
    axes = axes_of(ax)
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
    axes = axes_of(ax)
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
    axes = axes_of(ax)
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


def _left(ledger: Ledger) -> str:
    """What a shared account has left; of an account of one run nothing is said."""
    return describe_remaining(ledger.remaining()) if isinstance(ledger, FileLedger) else ""


def _render(kind: str, **content: Any) -> str:
    return svg.printable(templates().get_template("notebook.html.jinja").render(kind=kind, **content))
