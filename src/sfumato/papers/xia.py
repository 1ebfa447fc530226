"""Tables of Xia, Zhang and Cai: low and high dimension, newest and first version."""

import warnings
from typing import Literal

import numpy as np

from sfumato import SIR, Bounds, PrivateSIR, PrivateSparseSIR, subspace_distance
from sfumato.errors import PrivacyWarning
from sfumato.papers.study import Row, Study, Values, printed_table
from sfumato.simulate import xia

Version = Literal["newest", "first"]
_NOTE = (
    "Printed: the paper's own column, other draws of the same models; its methods charge slices, initial value and "
    "steps the stated epsilon each. 'paper' is the algorithm with the printed noise formulas, 'tight' the same "
    "algorithm with correct noise, everything within a total of epsilon = 1, delta = n^-1.1; k is given."
)


def low_dimension(model: Literal["M1", "M2", "M3", "M4"], n: int, p: int, version: Version, seed: int) -> Values:
    """One replication of Table 1."""
    sample = xia(model, n=n, p=p, version=version, random_state=seed)
    k, bounds, delta = len(sample.directions), _bounds(version), n**-1.1
    fits: dict[str, SIR | PrivateSIR] = {
        "SIR": SIR(n_directions=k, n_slices=20),
        "DP-Ini paper": PrivateSIR(1.0, delta, k, bounds, "dp-ini", calibration="paper"),
        "DP-Ini tight": PrivateSIR(1.0, delta, k, bounds, "dp-ini"),
        "DP-SIR paper": PrivateSIR(1.0, delta, k, bounds, "dp-sir", calibration="paper"),
        "DP-SIR tight": PrivateSIR(1.0, delta, k, bounds, "dp-sir"),
        "DP-SIR full batch": PrivateSIR(1.0, delta, k, bounds, "dp-sir-full"),
        "DP-RF paper": PrivateSIR(1.0, delta, 1, bounds, "rayleigh-flow", calibration="paper"),
        "DP-RF tight": PrivateSIR(1.0, delta, 1, bounds, "rayleigh-flow"),
        "sfumato": PrivateSIR(1.0, delta, k, bounds),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return {
            name: subspace_distance(fit.fit(sample.x, sample.y).directions_, sample.directions)
            for name, fit in fits.items()
        }


def high_dimension(model: Literal["M1", "M2", "M3", "M4"], n: int, p: int, version: Version, seed: int) -> Values:
    """One replication of Table 2; the oracle knows the first six features."""
    sample = xia(model, n=n, p=p, version=version, high_dimensional=True, random_state=seed)
    k, bounds, delta = len(sample.directions), _bounds(version), n**-1.1
    known = SIR(n_directions=k, n_slices=10).fit(sample.x[:, :6], sample.y).directions_
    measured = {"Oracle-SIR": subspace_distance(np.pad(known, ((0, 0), (0, p - 6))), sample.directions)}
    fits = {
        "DP-SIni paper": PrivateSparseSIR(1.0, delta, k, bounds, "dp-sini", calibration="paper"),
        "DP-SIni tight": PrivateSparseSIR(1.0, delta, k, bounds, "dp-sini"),
        "DP-SSIR paper": PrivateSparseSIR(1.0, delta, k, bounds, "dp-ssir", calibration="paper"),
        "DP-SSIR tight": PrivateSparseSIR(1.0, delta, k, bounds, "dp-ssir"),
        "DP-TRF paper": PrivateSparseSIR(1.0, delta, 1, bounds, "truncated-rayleigh-flow", calibration="paper"),
        "DP-TRF tight": PrivateSparseSIR(1.0, delta, 1, bounds, "truncated-rayleigh-flow"),
        "sfumato": PrivateSparseSIR(1.0, delta, k, bounds),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for name, fit in fits.items():
            measured[name] = subspace_distance(fit.fit(sample.x, sample.y).directions_, sample.directions)
    return measured


def _bounds(version: Version) -> Bounds:
    return Bounds(-1.5, 1.5) if version == "newest" else Bounds(-1.0, 1.0)


def _study(name: str, title: str, source: str, table: int, version: Version) -> Study:
    rows = tuple(
        Row(f"{model} ({n}, {p})", (model, n, p, version), printed)
        for (model, n, p), printed in printed_table(source, table).items()
    )
    run = low_dimension if table == 1 else high_dimension
    return Study(name, title, _NOTE, rows, run, "mean" if version == "newest" else "median")


TABLES = (
    _study("xia-table-1", "DP-SIR, newest version, Table 1: low dimension", "002", 1, "newest"),
    _study("xia-table-2", "DP-SIR, newest version, Table 2: high dimension", "002", 2, "newest"),
    _study("xia-first-table-1", "DP-SIR, first version, Table 1: low dimension", "000", 1, "first"),
    _study("xia-first-table-2", "DP-SIR, first version, Table 2: high dimension", "000", 2, "first"),
)
