"""The papers behind this package: their algorithms, simulation models, tables and figures.

Nothing else in the package imports it. The estimators are kept for comparison, each with the papers' printed noise
(``calibration="paper"``, no guarantee) beside a correct one (``calibration="tight"``); what to use instead is in
`sfumato` itself. The names below are imported on first use.
"""

from typing import TYPE_CHECKING, Any

from sfumato.methods import load
from sfumato.research.family import FAMILY

if TYPE_CHECKING:
    from sfumato.research.components import DPSPCA as DPSPCA
    from sfumato.research.components import RayleighFlowPCA as RayleighFlowPCA
    from sfumato.research.components import TruncatedRayleighFlowPCA as TruncatedRayleighFlowPCA
    from sfumato.research.pairs import RayleighFlowCCA as RayleighFlowCCA
    from sfumato.research.pairs import RayleighFlowLDA as RayleighFlowLDA
    from sfumato.research.sir import DPSIR as DPSIR
    from sfumato.research.sir import DPSSIR as DPSSIR
    from sfumato.research.sir import DPIni as DPIni
    from sfumato.research.sir import DPSIni as DPSIni
    from sfumato.research.sir import RayleighFlowSIR as RayleighFlowSIR
    from sfumato.research.sir import TruncatedRayleighFlowSIR as TruncatedRayleighFlowSIR

_HOME = {home.rpartition(".")[2]: home for home in FAMILY.values()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.research' has no attribute {name!r}")
    return load(_HOME[name])
