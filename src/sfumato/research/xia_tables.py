"""Tables and figures of Xia, Zhang and Cai: low and high dimension, newest and first version, slices, validation."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from sfumato import SIR, Bounds, PrivateSIR, PrivateSparseSIR, subspace_distance
from sfumato.errors import PrivacyWarning
from sfumato.research.models import Sample, xia
from sfumato.research.pencil import arctan_edges, bic_dimension, cut
from sfumato.research.sir import DPSIR, DPSSIR, DPIni, DPSIni, RayleighFlowSIR, TruncatedRayleighFlowSIR
from sfumato.research.study import CHOSEN, NOTES, Row, Study, Values, printed_table

Version = Literal["newest", "first"]


def low_dimension(model: Literal["M1", "M2", "M3", "M4"], n: int, p: int, version: Version, seed: int) -> Values:
    """One replication of Table 1."""
    sample = xia(model, n=n, p=p, version=version, random_state=seed)
    measured = _distances(low_fits(version, n, len(sample.directions)), sample)
    return measured | (_chosen(DPIni, n, sample) | sir_with_chosen(sample, 20) if version == "newest" else {})


def sir_with_chosen(sample: Sample, slices: int) -> dict[str, float]:
    """Loss of SIR without privacy where DP-BIC chooses k, as the newest version's tables have it, and that k."""
    fit = SIR(n_slices=slices).fit(sample.x, sample.y)
    k = bic_dimension(fit.eigenvalues_, float(len(sample.y)), slices)
    return {
        "SIR, k chosen": subspace_distance(fit.directions_[:k], sample.directions),
        f"{CHOSEN} without privacy": float(k),
    }


def low_fits(version: Version, n: int, k: int) -> dict[str, Any]:
    """Every column of Table 1, with the slices and the printed noise of that version of the paper."""
    slices, bounds, delta = 20 if version == "newest" else 4, _bounds(version), n**-1.1
    return {
        "SIR": SIR(n_directions=k, n_slices=slices),
        **_both_noises({"DP-Ini": DPIni, "DP-SIR": DPSIR}, version, n, k, slices),
        "DP-SIR full batch": DPSIR(1.0, delta, k, bounds, batches="full", n_slices=slices),
        **_both_noises({"DP-RF": RayleighFlowSIR}, version, n, 1, slices),
        "sfumato": PrivateSIR(1.0, delta, k, bounds),
    }


def _both_noises(kinds: Mapping[str, type], version: Version, n: int, k: int, slices: int) -> dict[str, Any]:
    """The papers' estimators, each with the noise that its version prints and with correct noise."""
    noises = {"paper": "paper" if version == "newest" else "first", "tight": "tight"}
    return {
        f"{name} {noise}": kind(1.0, n**-1.1, k, _bounds(version), n_slices=slices, calibration=calibration)
        for name, kind in kinds.items()
        for noise, calibration in noises.items()
    }


def high_dimension(model: Literal["M1", "M2", "M3", "M4"], n: int, p: int, version: Version, seed: int) -> Values:
    """One replication of Table 2; the oracle knows the first six features."""
    sample = xia(model, n=n, p=p, version=version, high_dimensional=True, random_state=seed)
    fits = high_fits(version, n, len(sample.directions))
    known = fits.pop("Oracle-SIR").fit(sample.x[:, :6], sample.y).directions_
    measured = {"Oracle-SIR": subspace_distance(np.pad(known, ((0, 0), (0, p - 6))), sample.directions)}
    measured |= _distances(fits, sample)
    return measured | (_chosen(DPSIni, n, sample) if version == "newest" else {})


def _chosen(kind: type[DPIni] | type[DPSIni], n: int, sample: Sample) -> dict[str, float]:
    """How many directions DP-BIC takes."""
    found = {}
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        for calibration in ("paper", "tight"):
            fit = kind(1.0, n**-1.1, "auto", _bounds("newest"), calibration=calibration).fit(sample.x, sample.y)
            found[f"{CHOSEN} {calibration}"] = float(len(fit.directions_))
    return found


def high_fits(version: Version, n: int, k: int) -> dict[str, Any]:
    """Every column of Table 2, with the slices and the printed noise of that version of the paper."""
    slices = 10 if version == "newest" else 4
    return {
        "Oracle-SIR": SIR(n_directions=k, n_slices=slices),
        **_both_noises({"DP-SIni": DPSIni, "DP-SSIR": DPSSIR}, version, n, k, slices),
        **_both_noises({"DP-TRF": TruncatedRayleighFlowSIR}, version, n, 1, slices),
        "sfumato": PrivateSparseSIR(1.0, n**-1.1, k, _bounds(version)),
    }


def _distances(fits: Mapping[str, Any], sample: Sample) -> dict[str, float]:
    """Of every fit's directions to the true ones."""
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        return {
            name: subspace_distance(fit.fit(sample.x, sample.y).directions_, sample.directions)
            for name, fit in fits.items()
        }


def _bounds(version: Version) -> Bounds:
    return Bounds(-1.5, 1.5) if version == "newest" else Bounds(-1.0, 1.0)


def _study(name: str, title: str, source: str, table: int, version: Version) -> Study:
    rows = tuple(
        Row(f"{model} ({n}, {p})", (model, n, p, version), printed)
        for (model, n, p), printed in printed_table(source, table).items()
    )
    if (table, version) == (2, "newest"):
        rows += tuple(
            Row(f"M2 ({n // 2}, {p // 2}) by the text", ("M2", n // 2, p // 2, version), printed, True)
            for (model, n, p), printed in printed_table(source, table).items()
            if model == "M2"
        )
    run = low_dimension if table == 1 else high_dimension
    notes = ["xia-tables", *(["xia-tables-high"] if table == 2 else []), f"xia-tables-{version}"]
    notes += ["xia-table-2-text"] if (table, version) == (2, "newest") else []
    statistic: Literal["mean", "median"] = "mean" if version == "newest" else "median"
    return Study(name, title, " ".join(map(NOTES.__getitem__, notes)), rows, run, statistic)


TABLES = (
    _study("xia-table-1", "DP-SIR, newest version, Table 1: low dimension", "002", 1, "newest"),
    _study("xia-table-2", "DP-SIR, newest version, Table 2: high dimension", "002", 2, "newest"),
    _study("xia-first-table-1", "DP-SIR, first version, Table 1: low dimension", "000", 1, "first"),
    _study("xia-first-table-2", "DP-SIR, first version, Table 2: high dimension", "000", 2, "first"),
)


_PANELS: dict[str, tuple[tuple[int, float, int, int], ...]] = {
    "C.2, C.3": tuple((n, 0.1, int(np.ceil(8 * n ** (1 / 3))), 10) for n in (250, 500, 1000, 2000, 4000)),
    "C.4, C.5": tuple((1000, epsilon, 20, 10) for epsilon in (0.01, 0.03, 0.1, 0.3, 1.0)),
    "C.6, C.7": tuple((1000, 0.1, bins, 10) for bins in (5, 10, 20, 50, 100, 200)),
    "C.8, C.9": tuple((1000, 1.0, bins, 10) for bins in (5, 10, 20, 50, 100, 200)),
    "C.10, C.11": tuple((1000, 0.1, 50, slices) for slices in (5, 10, 15, 20)),
}
"""Figures, of the eigen-gap and of the loss, and their points: records, epsilon, bins, slices."""


def slice_study(model: Literal["M1", "M3"], n: int, epsilon: float, bins: int, slices: int, seed: int) -> Values:
    """Eigen-gap (the k-th generalised eigenvalue) and loss with private slices and with sample quantiles; p = 10.

    Only the slices are private here, as in the paper: Laplace noise of scale 2 / epsilon on the bins of arctan(y).
    """
    sample = xia(model, n=n, p=10, random_state=seed)
    k = len(sample.directions)
    edges = arctan_edges(bins)
    counts = np.bincount(np.searchsorted(edges, sample.y, side="right"), minlength=bins)
    noisy = counts + np.random.default_rng(seed).laplace(scale=2.0 / epsilon, size=bins)
    label = np.searchsorted(cut(np.maximum(noisy, 0.0), slices), sample.y)
    fits = {
        "quantiles": SIR(n_directions=k, n_slices=slices).fit(sample.x, sample.y),
        "private slices": SIR(n_directions=k, n_slices=slices).fit(sample.x, label.astype(str)),
    }
    gaps = {f"eigen-gap, {name}": float(fit.eigenvalues_[-1]) for name, fit in fits.items()}
    losses = {f"loss, {name}": subspace_distance(fit.directions_, sample.directions) for name, fit in fits.items()}
    return gaps | losses


SLICES = Study(
    "xia-slices",
    "DP-SIR, newest version, figures C.2 to C.11: private slices (p = 10)",
    NOTES["xia-slices"],
    tuple(
        Row(
            f"{figures}: {model} n={n} epsilon={epsilon:g} bins={bins} slices={slices}",
            (model, n, epsilon, bins, slices),
            {},
        )
        for figures, points in _PANELS.items()
        for model in ("M1", "M3")
        for n, epsilon, bins, slices in points
    ),
    slice_study,
)


def validation_study(n: int, p: int, seed: int) -> Values:
    """Distance of DP-SSIR with s known (two) and validated among one to eight, and of the flagship; epsilon = 1."""
    sample = xia("M1", n=n, p=p, high_dimensional=True, random_state=seed)
    bounds, delta = _bounds("newest"), n**-1.1
    fits = {
        "DP-SSIR, s known": DPSSIR(1.0, delta, 1, bounds, max_features=2),
        "DP-SSIR, s validated": DPSSIR(1.0, delta, 1, bounds, max_features="validate"),
        "DP-SIni, s known": DPSIni(1.0, delta, 1, bounds, max_features=2),
        "DP-SIni, s validated": DPSIni(1.0, delta, 1, bounds, max_features="validate"),
        "sfumato": PrivateSparseSIR(1.0, delta, 1, bounds),
    }
    return _distances(fits, sample)


VALIDATION = Study(
    "xia-validation",
    "DP-SIR, newest version, figure C.12: validation of the number of features (M1, p = 1000)",
    NOTES["xia-validation"],
    tuple(Row(f"n = {n}", (n, 1000), {}) for n in (2000, 5000, 10_000, 20_000)),
    validation_study,
)

DRAWS = 6
"""Of the coefficients, in the study that holds them."""


def fixed_coefficients(model: Literal["M1", "M2", "M3", "M4"], n: int, p: int, draw: int, seed: int) -> Values:
    """Losses on one draw of the coefficients, records drawn anew: k given, and chosen by DP-BIC."""
    sample = xia(model, n=n, p=p, coefficients=draw, random_state=seed)
    k, delta = len(sample.directions), n**-1.1
    fits = {
        "SIR": SIR(n_directions=k, n_slices=20),
        "DP-Ini tight": DPIni(1.0, delta, k, _bounds("newest")),
        "sfumato": PrivateSIR(1.0, delta, k, _bounds("newest")),
    }
    return _distances(fits, sample) | sir_with_chosen(sample, 20)


FIXED = Study(
    "xia-fixed",
    "DP-SIR, newest version, models M1 to M4 with coefficients that stay the same",
    NOTES["xia-fixed"],
    tuple(
        Row(f"{model} ({n}, {p}) draw {draw}", (model, n, p, draw), {})
        for model, n, p in (("M1", 20_000, 15), ("M2", 20_000, 15), ("M3", 30_000, 10), ("M4", 30_000, 10))
        for draw in range(DRAWS)
    ),
    fixed_coefficients,
)

STUDIES = (*TABLES, SLICES, VALIDATION, FIXED)
