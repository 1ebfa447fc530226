"""Federated fits: sites that may not pool their records, and a server that sees noisy sums alone.

`simulate` needs no network. The real thing runs on Flower (``pip install sfumato[federated]``): see
docs/howto/federated.md.
"""

from sfumato.federated.simulate import simulate
from sfumato.settings.federated import SitesLostError

__all__ = ["SitesLostError", "simulate"]
