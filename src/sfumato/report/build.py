"""From a fitted estimator to a report document: released values and words, nothing else."""

from typing import Any

import numpy as np

from sfumato.iterate.picture import Picture
from sfumato.privacy.accounting import total_epsilon
from sfumato.privacy.ledger import Entry, Ledger
from sfumato.report.document import Document, Heatmap, LedgerRow, Loading, Spectrum
from sfumato.report.plot import response_label
from sfumato.solve.dimension import Choice
from sfumato.typing import FloatArray


def document(estimator: Any) -> Document:
    """Everything a report says about a fitted `PrivateSIR`."""
    ledger: Ledger = estimator.ledger_
    k, p = estimator.directions_.shape
    return Document(
        title="Private sliced inverse regression",
        subtitle=f"{k} direction{'s' if k > 1 else ''} of {p} features",
        guarantee=ledger.guarantee,
        facts=_facts(estimator, ledger),
        loadings=_loadings(estimator),
        spectrum=_spectrum(estimator.choice_),
        heatmap=None if estimator.picture_ is None else _heatmap(estimator.picture_),
        ledger=tuple(_row(entry, ledger) for entry in ledger.entries),
        total=f"All releases together: {ledger.budget.describe()}",
        notes=_notes(estimator),
        reproduce=f"from sfumato import *\n\n{estimator!r}.fit(X, y)",
        rehearsal=ledger.rehearsal,
    )


def feature_names(estimator: Any) -> tuple[str, ...]:
    """Names of the features, x0, x1, ... if the table had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(map(str, names)) if names is not None else tuple(f"x{i}" for i in range(estimator.n_features_in_))


def _facts(estimator: Any, ledger: Ledger) -> tuple[tuple[str, str], ...]:
    return (
        ("Budget", ledger.budget.describe()),
        (
            "Neighbouring data sets",
            "replace one record" if ledger.relation == "replace" else "add or remove one record",
        ),
        ("Method", "residual descent" if estimator.method != "one-shot" else "one shot"),
        ("Bounds", "given" if estimator.bounds is not None else "found privately, charged below"),
        ("Directions", ", ".join(f"explains {value:.0%}" for value in estimator.eigenvalues_)),
    )


def _loadings(estimator: Any) -> tuple[Loading, ...]:
    """Directions per standard deviation of each feature, so that features in different units compare."""
    scaled = estimator.directions_ * estimator.scale_
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    values, errors = scaled / length, estimator.standard_errors_ * estimator.scale_ / length
    return tuple(
        Loading(name, _floats(values[:, j]), _floats(errors[:, j])) for j, name in enumerate(feature_names(estimator))
    )


def _spectrum(choice: Choice) -> Spectrum:
    return Spectrum(_floats(choice.singular_values), choice.edge, choice.n_directions, choice.why)


def _heatmap(picture: Picture) -> Heatmap:
    return Heatmap(
        x_edges=_floats(picture.direction_edges),
        y_edges=_floats(picture.response_edges),
        counts=tuple(_floats(row) for row in picture.counts),
        noise_std=picture.noise_std,
        x_label="first direction, in standard deviations",
        y_label=response_label(picture),
    )


def _row(entry: Entry, ledger: Ledger) -> LedgerRow:
    whole = sum(other.share for other in ledger.entries)
    delta = ledger.budget.delta or 1e-6
    return LedgerRow(
        purpose=entry.purpose,
        query=entry.query,
        mechanism=type(entry.event).__name__,
        sensitivity=entry.sensitivity,
        noise_std=entry.noise_std,
        epsilon_alone=total_epsilon((entry.event,), delta),
        share=entry.share / whole,
    )


def _notes(estimator: Any) -> tuple[str, ...]:
    notes = [
        "Loadings are per standard deviation of each feature (as released), so that features in different units "
        "compare; directions_ holds them in the units of the table.",
        "Everything on this page was computed from the noisy releases listed in the ledger. No record was read to "
        "draw it.",
    ]
    if estimator.bounds is not None:
        notes.append("Values outside the given bounds were moved to the nearest bound before anything was computed.")
    return tuple(notes)


def _floats(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
