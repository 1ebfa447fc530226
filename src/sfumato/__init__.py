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

_PLACES = {
    "bounds": "Bounds",
    "errors": "AccuracyWarning BudgetError InputError PrivacyWarning SfumatoError",
    "methods.cca": "PrivateCCA",
    "methods.censored_sir": "PrivateCensoredSIR",
    "methods.label_iht": "LabelPrivateIHT",
    "methods.label_sir": "LabelPrivateSIR",
    "methods.lda": "PrivateLDA",
    "methods.local_sir": "LocalSIR",
    "methods.multi_sir": "PrivateMultiSIR",
    "methods.normal_scores": "PrivateNormalScores",
    "methods.pca": "PrivatePCA",
    "methods.phd": "PrivatePHD",
    "methods.reference": "DR SAVE SIR",
    "methods.second_order": "PrivateDR PrivateSAVE",
    "methods.sir": "PrivateSIR",
    "methods.sparse_pca": "PrivateSparsePCA",
    "methods.sparse_sir": "PrivateSparseSIR",
    "privacy.budget": "Budget",
    "privacy.ledger": "FileLedger Ledger",
    "privacy.ledger.file": "account",
    "sources": "scan",
    "steps.subspace": "principal_angles subspace_distance",
}
_HOME = dict(sorted((name, place) for place, names in _PLACES.items() for name in names.split()))

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(import_module(f"sfumato.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])


# here, above all layers: `report` reads estimators, and an estimator has a `report`
set_displays(lambda: import_module("sfumato.report.build"))
