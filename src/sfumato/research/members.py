"""What the rest of the package is told of the papers' estimators: their model files, and cases for the audit."""

from typing import Any

import numpy as np

from sfumato.audit.fits import Case
from sfumato.audit.releases import FEATURES
from sfumato.bounds import Bounds
from sfumato.model.fields import Reader, bounds, optional, places, whole, word
from sfumato.model.kinds import (
    CLASSES,
    COMPONENTS,
    EXPLAINING,
    INVERSE,
    PAIRS,
    PARAMETERS,
    RULE,
    SUPPORT,
    Kind,
    discriminant,
    number_or,
    pair,
)
from sfumato.model.strict import Node
from sfumato.records import Records
from sfumato.research.components import DPSPCA, RayleighFlowPCA, TruncatedRayleighFlowPCA
from sfumato.research.pairs import RayleighFlowCCA, RayleighFlowLDA
from sfumato.research.printed_noise import CALIBRATIONS, FIRST
from sfumato.research.sir import (
    BATCHES,
    DPSIR,
    DPSSIR,
    DPIni,
    DPSIni,
    RayleighFlowSIR,
    TruncatedRayleighFlowSIR,
)
from sfumato.research.sums import CandidateSums, IndexProducts, ProductRows, SliceSums
from sfumato.statistics.histograms import Bins
from sfumato.statistics.parts import Part
from sfumato.sums import BoundedSum
from sfumato.typing import Relation

CALIBRATED: dict[str, Reader] = PARAMETERS | {"calibration": word(CALIBRATIONS)}
SIR: dict[str, Reader] = (
    PARAMETERS | {"calibration": word((*CALIBRATIONS, FIRST))} | CLASSES | {"n_slices": whole(2), "n_bins": whole(1)}
)
SPARSE_SIR: dict[str, Reader] = SIR | {"max_features": number_or("auto", "validate")}
SPARSE_PCA: dict[str, Reader] = PARAMETERS | {"max_features": number_or()}
FOUND: dict[str, Reader] = {name: reader for name, reader in INVERSE.items() if name != "picture"}


def _classified(estimator: Any, node: Node) -> None:
    """With the printed noise only the direction was released; else everything that predicts."""
    if (estimator._rule is None) != (estimator._used is None) or (
        estimator._rule is None and estimator.calibration == "tight"
    ):
        node.refuse("complete: rule and used go together")
    if estimator._rule is None:
        estimator.centres_, estimator.priors_ = np.empty((0, 1)), np.empty(0)
    else:
        discriminant(estimator, node)


MODELS = (
    *(Kind(make, SIR, FOUND) for make in (DPIni, RayleighFlowSIR)),
    Kind(DPSIR, SIR | {"batches": word(BATCHES)}, FOUND),
    *(Kind(make, SPARSE_SIR, FOUND | SUPPORT) for make in (DPSIni, DPSSIR, TruncatedRayleighFlowSIR)),
    Kind(RayleighFlowPCA, CALIBRATED, COMPONENTS),
    *(Kind(make, SPARSE_PCA, COMPONENTS | SUPPORT) for make in (DPSPCA, TruncatedRayleighFlowPCA)),
    Kind(
        RayleighFlowLDA,
        CALIBRATED | CLASSES,
        EXPLAINING | {"rule": optional(RULE), "used": optional(places("h", "codes"))},
        _classified,
    ),
    Kind(RayleighFlowCCA, CALIBRATED | {"y_bounds": optional(bounds("q"))}, PAIRS, pair),
)
KINDS = {kind.make.__name__: kind for kind in MODELS}


def queries() -> dict[str, BoundedSum]:
    """One query of every kind that only these estimators put to records."""
    grid, bins = Bounds(-1.0, 1.0).grid(FEATURES), Bins(np.array([-1.0, 0.0, 1.0]))
    table = np.array([[1.0, 0.5], [-1.0, 0.5], [1.0, -0.5], [-1.0, -0.5]])
    mixing = np.array([[1.0, 0.3], [0.3, 1.0], [0.0, 0.1]])
    products = ProductRows(grid, bins, table, np.array([0]), np.zeros((1, 2)), 0.5)
    return {
        "sums by slice": SliceSums(grid, bins),
        "product rows": products,
        "product rows of a part": Part(products, 0, 2),
        "products of indices": IndexProducts(grid, mixing, 0.5),
        "projections of candidates": CandidateSums(grid, bins, (np.eye(FEATURES)[:, :1], mixing), 1.0),
    }


def cases(epsilon: float, delta: float, relation: Relation) -> dict[str, Case]:
    """One fit of every kind that claims a guarantee, with one direction and public bounds."""
    box, classes = Bounds(-1.0, 1.0), (0.0, 1.0, 2.0)
    known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": relation, "n_directions": 1, "bounds": box}
    few = known | {"max_features": 2}
    return {
        **{make.__name__: Case(make(**known)) for make in (DPIni, DPSIR, RayleighFlowSIR, RayleighFlowPCA)},
        "DPSIR, full batches": Case(DPSIR(**known, batches="full")),
        **{
            make.__name__: Case(make(**few), n_features=6)
            for make in (DPSIni, DPSSIR, TruncatedRayleighFlowSIR, DPSPCA, TruncatedRayleighFlowPCA)
        },
        "DPSIni, validated": Case(DPSIni(**known, max_features="validate"), n_features=6),
        "RayleighFlowLDA": Case(RayleighFlowLDA(**known, classes=classes), responses=classes),
        "RayleighFlowCCA": Case(RayleighFlowCCA(**known, y_bounds=box), n_features=4, fit=_two_tables),
    }


def _two_tables(estimator: Any, records: Records, **also: Any) -> Any:
    return estimator.fit(records.x[:, :2], records.x[:, 2:], **also)
