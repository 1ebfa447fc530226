"""Words for each method: its name, and what its numbers mean."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from sfumato.bounds import Bounds
from sfumato.report.account import Account
from sfumato.report.figures import MISSING, plural
from sfumato.report.loadings import SECOND, kept

TITLES = {
    "PrivateSIR": "Private sliced inverse regression",
    "PrivateSparseSIR": "Private sparse sliced inverse regression",
    "PrivateSAVE": "Private sliced average variance estimation",
    "PrivateDR": "Private directional regression",
    "PrivatePCA": "Private principal components",
    "PrivateSparsePCA": "Private sparse principal components",
    "PrivateCCA": "Private canonical correlations",
    "PrivateLDA": "Private linear discriminants",
    "LabelPrivateSIR": "Sliced inverse regression of randomised labels",
    "LabelPrivateIHT": "Sparse regression of randomised labels",
    "LocalSIR": "Sliced inverse regression of randomised records",
}
MEANINGS = {
    "PrivateSAVE": "eigenvalue {:.2g}",
    "PrivateDR": "eigenvalue {:.2g}",
    "PrivatePCA": "{:.1%} of the variance",
    "PrivateSparsePCA": "{:.1%} of the variance",
    "PrivateCCA": "correlation {:.2f}",
    "PrivateLDA": "{:.1%} between classes",
}
UNITS = {"PrivatePCA": "component", "PrivateSparsePCA": "component", "PrivateCCA": "pair of directions"}


def title(estimator: Any) -> str:
    """What was fitted."""
    name = type(estimator).__name__
    return _own(estimator, "title") or TITLES.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))


def _own(estimator: Any, word: str) -> str:
    """What an estimator that stands in none of the tables above says of itself in `_report`."""
    return str(getattr(estimator, "_report", {}).get(word, ""))


def unit(estimator: Any) -> str:
    """What one column of the loadings is called."""
    if hasattr(estimator, "coef_"):
        return "coefficients"
    return _own(estimator, "unit") or UNITS.get(type(estimator).__name__, "direction")


def subtitle(estimator: Any) -> str:
    """How many directions on how many features."""
    p, chosen = int(estimator.n_features_in_), kept(estimator)
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
    pairs = [
        ("Budget", account.budget),
        ("Neighbouring data sets", account.neighbours),
        ("Records", "" if records is None else f"{records:,}"),
        ("Method", _method(estimator, account)),
        ("Bounds", _bounds(estimator)),
        (plural(unit(estimator)).capitalize(), ", ".join(meanings(estimator))),
    ]
    return tuple((name, value) for name, value in pairs if value)


def _method(estimator: Any, account: Account) -> str:
    chosen = getattr(estimator, "method", None)
    if _own(estimator, "method"):
        return _own(estimator, "method")
    if type(estimator).__name__ in ("PrivateSIR", "PrivateSparseSIR"):
        steps = any(row.purpose.startswith("descent step") for row in account.rows)
        screened = "" if kept(estimator) is None else "sign screening, then "
        if steps or chosen in ("auto", "one-shot"):
            return screened + ("residual descent" if steps else "one shot")
    return "" if chosen in (None, "auto") else str(chosen).replace("-", " ")


def _bounds(estimator: Any) -> str:
    parameters = [name for name in ("bounds", "y_bounds") if hasattr(estimator, name)]
    if not parameters:
        return ""
    said = [getattr(estimator, name) for name in parameters]
    if all(isinstance(one, Bounds) for one in said):
        return "given"
    if not hasattr(estimator, "bounds_"):
        return ""
    some = "given for some features, the others " if any(isinstance(one, Bounds | Mapping) for one in said) else ""
    return f"{some}found privately, charged below"


def meanings(estimator: Any) -> tuple[str, ...]:
    """What is known of each direction, in the words of its method; of what was not released, a dash."""
    values = getattr(estimator, "explained_variance_ratio_", getattr(estimator, "eigenvalues_", ()))
    words = _own(estimator, "meaning") or MEANINGS.get(type(estimator).__name__, "explains {:.1%}")
    return tuple(words.format(value) if math.isfinite(value) else MISSING for value in values)
