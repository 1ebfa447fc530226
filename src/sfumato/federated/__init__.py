"""Federated fits: sites that may not pool their records, and a server that sees noisy sums alone.

`simulate` needs no network. The real thing runs on Flower (``pip install sfumato[federated]``): see
docs/howto/federated.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.federated.simulation import simulate
    from sfumato.settings.federated import SitesLostError

_HOME = {"SitesLostError": "sfumato.settings.federated", "simulate": "sfumato.federated.simulation"}
__all__ = ["SitesLostError", "simulate"]


def __getattr__(name: str) -> Any:
    """Import when asked: a deployed site, which starts a process for every message, needs neither of them."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
