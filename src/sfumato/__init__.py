"""sfumato: sufficient dimension reduction with a differential-privacy guarantee that is true.

The names below are the public face; they are imported on first use, so that ``import sfumato`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sfumato.displays import set_displays

if TYPE_CHECKING:
    from sfumato.bounds import Bounds as Bounds
    from sfumato.errors import AccuracyWarning as AccuracyWarning
    from sfumato.errors import BudgetError as BudgetError
    from sfumato.errors import InputError as InputError
    from sfumato.errors import PrivacyWarning as PrivacyWarning
    from sfumato.errors import SfumatoError as SfumatoError
    from sfumato.methods.cca import PrivateCCA as PrivateCCA
    from sfumato.methods.censored_sir import PrivateCensoredSIR as PrivateCensoredSIR
    from sfumato.methods.label_iht import LabelPrivateIHT as LabelPrivateIHT
    from sfumato.methods.label_sir import LabelPrivateSIR as LabelPrivateSIR
    from sfumato.methods.lda import PrivateLDA as PrivateLDA
    from sfumato.methods.local_sir import LocalSIR as LocalSIR
    from sfumato.methods.multi_sir import PrivateMultiSIR as PrivateMultiSIR
    from sfumato.methods.normal_scores import PrivateNormalScores as PrivateNormalScores
    from sfumato.methods.pca import PrivatePCA as PrivatePCA
    from sfumato.methods.phd import PrivatePHD as PrivatePHD
    from sfumato.methods.reference import DR as DR
    from sfumato.methods.reference import SAVE as SAVE
    from sfumato.methods.reference import SIR as SIR
    from sfumato.methods.second_order import PrivateDR as PrivateDR
    from sfumato.methods.second_order import PrivateSAVE as PrivateSAVE
    from sfumato.methods.sir import PrivateSIR as PrivateSIR
    from sfumato.methods.sparse_pca import PrivateSparsePCA as PrivateSparsePCA
    from sfumato.methods.sparse_sir import PrivateSparseSIR as PrivateSparseSIR
    from sfumato.privacy.budget import Budget as Budget
    from sfumato.privacy.ledger import FileLedger as FileLedger
    from sfumato.privacy.ledger import Ledger as Ledger
    from sfumato.privacy.ledger.file import account as account
    from sfumato.sources import scan as scan
    from sfumato.steps.subspace import principal_angles as principal_angles
    from sfumato.steps.subspace import subspace_distance as subspace_distance

__version__ = "0.1.0"

_HOME = {
    "AccuracyWarning": "errors",
    "Bounds": "bounds",
    "Budget": "privacy.budget",
    "BudgetError": "errors",
    "DR": "methods.reference",
    "FileLedger": "privacy.ledger",
    "InputError": "errors",
    "LabelPrivateIHT": "methods.label_iht",
    "LabelPrivateSIR": "methods.label_sir",
    "Ledger": "privacy.ledger",
    "LocalSIR": "methods.local_sir",
    "PrivacyWarning": "errors",
    "PrivateCCA": "methods.cca",
    "PrivateCensoredSIR": "methods.censored_sir",
    "PrivateDR": "methods.second_order",
    "PrivateLDA": "methods.lda",
    "PrivateMultiSIR": "methods.multi_sir",
    "PrivateNormalScores": "methods.normal_scores",
    "PrivatePCA": "methods.pca",
    "PrivatePHD": "methods.phd",
    "PrivateSAVE": "methods.second_order",
    "PrivateSIR": "methods.sir",
    "PrivateSparsePCA": "methods.sparse_pca",
    "PrivateSparseSIR": "methods.sparse_sir",
    "SAVE": "methods.reference",
    "SIR": "methods.reference",
    "SfumatoError": "errors",
    "account": "privacy.ledger.file",
    "principal_angles": "steps.subspace",
    "scan": "sources",
    "subspace_distance": "steps.subspace",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(import_module(f"sfumato.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])


def _load_displays() -> Any:
    return import_module("sfumato.report.build")


set_displays(_load_displays)  # here, above all layers: `report` reads estimators, and an estimator has a `report`
