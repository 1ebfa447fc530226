"""The family of private estimators: one file and one line here for each.

A file holds everything there is to know of a method: the public facts of a fit with its steps, the population that its
forecast assumes, its scikit-learn face, and what the rest of the package asks of it (`sfumato.methods.about.About`).
Model files, reports, the command line, audits and docs read this registry. Other packages add members by an entry point
of the group ``sfumato.methods`` that names a mapping like `FAMILY`.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

FAMILY = {
    "sir": "sfumato.methods.sir.PrivateSIR",
    "sparse-sir": "sfumato.methods.sparse_sir.PrivateSparseSIR",
    "multi-sir": "sfumato.methods.multi_sir.PrivateMultiSIR",
    "censored-sir": "sfumato.methods.censored_sir.PrivateCensoredSIR",
    "save": "sfumato.methods.second_order.PrivateSAVE",
    "dr": "sfumato.methods.second_order.PrivateDR",
    "phd": "sfumato.methods.phd.PrivatePHD",
    "pca": "sfumato.methods.pca.PrivatePCA",
    "sparse-pca": "sfumato.methods.sparse_pca.PrivateSparsePCA",
    "lda": "sfumato.methods.lda.PrivateLDA",
    "cca": "sfumato.methods.cca.PrivateCCA",
}
"""Estimators by the name they have at the command line."""
DEVICES = (
    "sfumato.methods.label_sir.LabelPrivateSIR",
    "sfumato.methods.label_iht.LabelPrivateIHT",
    "sfumato.methods.local_sir.LocalSIR",
)
"""Estimators of answers that their owners randomised."""
PREPARING = ("sfumato.methods.normal_scores.PrivateNormalScores",)
"""What makes features ready for a fit, at a budget of its own."""


@cache
def added() -> Mapping[str, str]:
    """Members of other packages, and of `sfumato.research`; they are looked for only when somebody asks for them."""
    found: dict[str, str] = {}
    for point in entry_points(group="sfumato.methods"):
        found |= point.load()
    return found


def load(home: str) -> Any:
    """The class at home there.

    >>> load(FAMILY["dr"]).about.title
    'Private directional regression'
    """
    module, _, name = home.rpartition(".")
    return getattr(import_module(module), name)


def find_class(name: object) -> Any:
    """The member whose class has this name; None if there is none.

    >>> find_class("PrivateSAVE") is load(FAMILY["save"]), find_class("KMeans")
    (True, None)
    """
    for family in (FAMILY, added()) if isinstance(name, str) else ():
        for home in family.values():
            if home.endswith(f".{name}"):
                return load(home)
    return None
