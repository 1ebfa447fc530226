"""sfumato: sufficient dimension reduction with a differential-privacy guarantee that is true.

The names below are the public face; they are imported on first use, so that ``import sfumato`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.bounds import Bounds as Bounds
    from sfumato.errors import AccuracyWarning as AccuracyWarning
    from sfumato.errors import BudgetError as BudgetError
    from sfumato.errors import InputError as InputError
    from sfumato.errors import PrivacyWarning as PrivacyWarning
    from sfumato.errors import SfumatoError as SfumatoError
    from sfumato.estimators.cca import PrivateCCA as PrivateCCA
    from sfumato.estimators.label import LabelPrivateSIR as LabelPrivateSIR
    from sfumato.estimators.lda import PrivateLDA as PrivateLDA
    from sfumato.estimators.local_sir import LocalSIR as LocalSIR
    from sfumato.estimators.pca import PrivatePCA as PrivatePCA
    from sfumato.estimators.reference import DR as DR
    from sfumato.estimators.reference import SAVE as SAVE
    from sfumato.estimators.reference import SIR as SIR
    from sfumato.estimators.regression import LabelPrivateIHT as LabelPrivateIHT
    from sfumato.estimators.second_order import PrivateDR as PrivateDR
    from sfumato.estimators.second_order import PrivateSAVE as PrivateSAVE
    from sfumato.estimators.sir import PrivateSIR as PrivateSIR
    from sfumato.estimators.sparse import PrivateSparseSIR as PrivateSparseSIR
    from sfumato.estimators.sparse_pca import PrivateSparsePCA as PrivateSparsePCA
    from sfumato.privacy.budget import Budget as Budget
    from sfumato.privacy.ledger import FileLedger as FileLedger
    from sfumato.privacy.ledger import Ledger as Ledger
    from sfumato.solve.subspace import principal_angles as principal_angles
    from sfumato.solve.subspace import subspace_distance as subspace_distance
    from sfumato.sources import scan as scan

__version__ = "0.1.0"

_HOME = {
    "AccuracyWarning": "errors",
    "Bounds": "bounds",
    "Budget": "privacy.budget",
    "BudgetError": "errors",
    "DR": "estimators.reference",
    "FileLedger": "privacy.ledger",
    "InputError": "errors",
    "LabelPrivateIHT": "estimators.regression",
    "LabelPrivateSIR": "estimators.label",
    "Ledger": "privacy.ledger",
    "LocalSIR": "estimators.local_sir",
    "PrivacyWarning": "errors",
    "PrivateCCA": "estimators.cca",
    "PrivateDR": "estimators.second_order",
    "PrivateLDA": "estimators.lda",
    "PrivatePCA": "estimators.pca",
    "PrivateSAVE": "estimators.second_order",
    "PrivateSIR": "estimators.sir",
    "PrivateSparsePCA": "estimators.sparse_pca",
    "PrivateSparseSIR": "estimators.sparse",
    "SAVE": "estimators.reference",
    "SIR": "estimators.reference",
    "SfumatoError": "errors",
    "principal_angles": "solve.subspace",
    "scan": "sources",
    "subspace_distance": "solve.subspace",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(import_module(f"sfumato.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
