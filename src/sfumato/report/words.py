"""What a report says of a fit: its method, what its numbers mean, the loadings of its features, and its account."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato import __version__
from sfumato.bounds import Bounds, by_column
from sfumato.local.answers import LocalLedger
from sfumato.methods.about import About
from sfumato.methods.reporting import Origin
from sfumato.privacy.accounting import total_epsilon
from sfumato.privacy.ledger import Entry, Ledger, Mark
from sfumato.privacy.parameters import budget_of
from sfumato.privacy.unit import Unit
from sfumato.report.document import MISSING, LedgerRow, Loading, plural
from sfumato.typing import FloatArray, IntArray


def about(estimator: Any) -> About:
    """What the estimator says of itself; one that says nothing has a title made of its name."""
    name = type(estimator).__name__
    return getattr(estimator, "about", About(title=re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name), page=""))


def unit(estimator: Any) -> str:
    """What one column of the loadings is called."""
    return "coefficients" if hasattr(estimator, "coef_") else about(estimator).unit


def subtitle(estimator: Any) -> str:
    """How many directions on how many features."""
    p, chosen = int(estimator.n_features_in_), kept_features(estimator)
    features = f"{p:,} features" if chosen is None else f"{len(chosen):,} of {p:,} features"
    if hasattr(estimator, "coef_"):
        return f"coefficients of {features}"
    if hasattr(estimator, "y_weights_"):
        features = f"{p:,} features and {estimator.y_weights_.shape[1]:,} of a second table ({SECOND})"
    k = len(estimator.directions_)
    counted = unit(estimator) if k == 1 else plural(unit(estimator))
    return f"{k} {counted} {'of' if chosen is None else 'on'} {features}"


def facts(estimator: Any, account: Account) -> tuple[tuple[str, str], ...]:
    """Short name and value pairs; what a method does not have is left out."""
    records = getattr(estimator, "n_records_", None)
    origin = getattr(estimator, "origin_", Origin())
    pairs = [
        ("Response", origin.response),
        ("Table", origin.table),
        ("Budget", account.budget),
        ("Neighbouring data sets", account.neighbours),
        ("Records", "" if records is None else f"{records:,}"),
        ("Method", about(estimator).method(estimator)),
        ("Bounds", _bounds(estimator)),
        (plural(unit(estimator)).capitalize(), _meaning(estimator)),
        ("Account afterwards", origin.account),
        ("Date", account.date),
        ("Made with", f"sfumato {origin.version or __version__}"),
    ]
    return tuple((name, value) for name, value in pairs if value)


def _bounds(estimator: Any) -> str:
    parameters = [name for name in ("bounds", "y_bounds") if hasattr(estimator, name)]
    if not parameters:
        return ""
    said = [by_column(getattr(estimator, name)) for name in parameters]
    if all(isinstance(one, Bounds) for one in said):
        return "given"
    if not hasattr(estimator, "bounds_"):
        return ""
    some = "given for some features, the others " if any(isinstance(one, Bounds | Mapping) for one in said) else ""
    return f"{some}found privately, charged below"


def _meaning(estimator: Any) -> str:
    """What is known of all directions, with the words that they share said once."""
    before, _, rest = about(estimator).meaning.partition("{")
    after, each = rest.partition("}")[2], meanings(estimator)
    told = ", ".join(one.removeprefix(before).removesuffix(after) for one in each)
    return f"{before}{told}{after}" if each else ""


def meanings(estimator: Any) -> tuple[str, ...]:
    """What is known of each direction, in the words of its method; of what was not released, a dash."""
    values = getattr(estimator, "explained_variance_ratio_", getattr(estimator, "eigenvalues_", ()))
    words = about(estimator).meaning
    return tuple(words.format(value) if math.isfinite(value) else MISSING for value in values)


PER_DEVIATION = (
    "Loadings are per standard deviation of each feature (as released), so that features in different units "
    "compare; directions_ holds them in the units of the table."
)
PER_WIDTH = (
    "Loadings are per half width of each feature's bounds, so that features in different units compare; the fitted "
    "attributes hold them in the units of the table."
)
SECOND = "→"
"""Marks the features of a second table."""
PER_UNIT = "Loadings are in the units of the table."


def feature_names(estimator: Any) -> tuple[str, ...]:
    """Names of the features, x0, x1, ... if the table had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(map(str, names)) if names is not None else tuple(f"x{i}" for i in range(estimator.n_features_in_))


def second_names(estimator: Any) -> tuple[str, ...]:
    """Names of the features of the second table of a canonical pair, y0, y1, ... if it had none."""
    names = getattr(estimator, "y_feature_names_in_", None)
    return tuple(map(str, names)) if names is not None else tuple(f"y{j}" for j in range(len(estimator.y_mean_)))


def kept_features(estimator: Any) -> IntArray | None:
    """The features that a sparse method kept; None if it keeps all."""
    chosen = getattr(estimator, "support_", getattr(estimator, "active_", None))
    return None if chosen is None else np.asarray(chosen, dtype=np.int64)


def loadings_of(estimator: Any) -> tuple[tuple[Loading, ...], str]:
    """Loadings of the features shown, and in what units they are."""
    if hasattr(estimator, "coef_"):
        return _rows(feature_names(estimator), estimator.coef_[None, :], None, kept_features(estimator)), PER_UNIT
    if hasattr(estimator, "y_weights_"):
        return _paired(estimator), PER_WIDTH
    if getattr(estimator, "loadings_errors_", None) is not None:
        rows = _rows(
            feature_names(estimator), estimator.loadings_, estimator.loadings_errors_, kept_features(estimator)
        )
        return rows, PER_DEVIATION
    scale, note = _scale(estimator)
    errors = getattr(estimator, "standard_errors_", None)
    values, errors = _scaled(estimator.directions_, errors, scale)
    return _rows(feature_names(estimator), values, errors, kept_features(estimator)), note


def _scale(estimator: Any) -> tuple[FloatArray, str]:
    p = int(estimator.n_features_in_)
    if hasattr(estimator, "scale_"):
        return np.asarray(estimator.scale_), PER_DEVIATION
    if about(estimator).own_units or not hasattr(estimator, "bounds_"):
        return np.ones(p), PER_UNIT  # principal components are those of the table's own units
    return estimator.bounds_.grid(p).half_width, PER_WIDTH


def _scaled(rows: FloatArray, errors: FloatArray | None, scale: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    scaled = rows * scale
    length = np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-300)  # a direction of zeros stays one
    return scaled / length, None if errors is None else errors * scale / length


def _paired(estimator: Any) -> tuple[Loading, ...]:
    """Both tables of a canonical pair in one chart, each of length one; features of the second are marked."""
    p, q = estimator.x_weights_.shape[1], estimator.y_weights_.shape[1]
    half = estimator.bounds_.grid(p + q).half_width
    x, _ = _scaled(estimator.x_weights_, None, half[:p])
    y, _ = _scaled(estimator.y_weights_, None, half[p:])
    names = (*feature_names(estimator), *(f"{SECOND} {name}" for name in second_names(estimator)))
    return _rows(names, np.hstack([x, y]), None, None)


def _rows(
    names: tuple[str, ...], values: FloatArray, errors: FloatArray | None, shown: IntArray | None
) -> tuple[Loading, ...]:
    known = np.full(values.shape, np.nan) if errors is None else errors
    places = range(len(names)) if shown is None else map(int, shown)
    return tuple(Loading(names[j], floats(values[:, j]), floats(known[:, j])) for j in places)


def floats(values: FloatArray) -> tuple[float, ...]:
    """Plain numbers."""
    return tuple(float(value) for value in values)


_MARK = "ledger {}; head after this fit {}"
RELATIONS = {"replace": "replace one", "add-remove": "add or remove one"}


@dataclass(frozen=True, slots=True)
class Account:
    """What a report says of a ledger."""

    budget: str
    neighbours: str
    guarantee: str
    total: str
    rows: tuple[LedgerRow, ...]
    rehearsal: bool
    mark: str = ""
    date: str = ""


def account_of(estimator: Any) -> Account:
    """The account of a fitted estimator: of its own releases, not of others on the same file."""
    ledger = estimator.ledger_
    if isinstance(ledger, LocalLedger):
        return _on_devices(ledger)
    own = own_ledger(estimator)
    return Account(
        budget=own.budget.describe(),
        neighbours=f"{RELATIONS[own.relation]} {own.protects}{_rows_of(own.unit)}",
        guarantee=own.guarantee,
        total=f"All releases together: {own.budget.describe()}",
        rows=_ledger_rows(own.entries, own.budget.delta or 1e-6),
        rehearsal=own.rehearsal,
        mark="" if own.mark is None else _MARK.format(own.mark.ledger, own.mark.head),
        date=own.entries[-1].at[:10] if own.entries else "",
    )


def own_ledger(estimator: Any) -> Ledger:
    """The account of this fit alone, whichever ledger it was written to."""
    ledger: Ledger = estimator.ledger_
    return ledger.of_this_run(budget_of(estimator.epsilon, estimator.delta, estimator.rho))


def marks_in(page: str) -> list[Mark]:
    """The marks that a report shows; the places in the file are not shown.

    >>> marks_in("..., written to ledger 0a1b; head after this fit " + 64 * "0")[0].ledger
    '0a1b'
    """
    return [Mark(ledger, head, 0) for ledger, head in re.findall(_MARK.format("([0-9a-f]+)", "([0-9a-f]{64})"), page)]


def _rows_of(unit: Unit) -> str:
    if unit.rows is None:
        return ""
    return f" with up to {unit.rows} row{'s' if unit.rows > 1 else ''}{' (declared)' if unit.declared else ''}"


def _on_devices(ledger: LocalLedger) -> Account:
    times = ledger.unit.factor
    answers = "one answer and pays once" if times == 1 else f"up to {times} answers and pays for all of them"
    return Account(
        budget=f"{ledger.cost}, each person",
        neighbours=f"any other value of {re.split('[;(]', ledger.protects)[0].strip()}",
        guarantee=ledger.guarantee,
        total=f"Every person gives {answers}: {ledger.cost}",
        rows=_ledger_rows(ledger.entries, ledger.delta),
        rehearsal=ledger.rehearsal,
    )


def _ledger_rows(entries: Iterable[Entry], delta: float) -> tuple[LedgerRow, ...]:
    listed = tuple(entries)
    whole = sum(entry.share for entry in listed) or 1.0
    return tuple(
        LedgerRow(
            purpose=entry.purpose,
            query=entry.query,
            mechanism=type(entry.event).__name__,
            sensitivity=entry.sensitivity,
            noise_std=entry.noise_std,
            epsilon_alone=total_epsilon((entry.event,), delta),
            share=entry.share / whole,
        )
        for entry in listed
    )
