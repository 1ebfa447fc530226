"""Every private estimator and method, ready to be attacked end to end."""

from typing import Any

from sfumato.audit.fits import Case
from sfumato.bounds import Bounds
from sfumato.methods import pca, sir, sparse_pca, sparse_sir
from sfumato.methods.cca import PrivateCCA
from sfumato.methods.lda import PrivateLDA
from sfumato.methods.pca import PrivatePCA
from sfumato.methods.second_order import PrivateDR, PrivateSAVE
from sfumato.methods.sir import PrivateSIR
from sfumato.methods.sparse_pca import PrivateSparsePCA
from sfumato.methods.sparse_sir import PrivateSparseSIR
from sfumato.records import Records
from sfumato.typing import Relation

BOX = Bounds(-1.0, 1.0)
CLASSES = (0.0, 1.0, 2.0)


def _two_tables(estimator: Any, records: Records, **also: Any) -> Any:
    return estimator.fit(records.x[:, :2], records.x[:, 2:], **also)


def cases(epsilon: float, delta: float, relation: Relation) -> dict[str, Case]:
    """One fit of every kind that claims a guarantee, with one direction and public bounds unless it says otherwise."""
    common: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": relation, "n_directions": 1}
    known, searched = common | {"bounds": BOX}, common | {"bounds": "search"}  # insist, however few records there are
    few = known | {"max_features": 2}
    return {
        **{f"PrivateSIR {method}": Case(PrivateSIR(**known, method=method)) for method in _named(sir.METHODS)},
        "PrivateSIR, bounds found, picture": Case(PrivateSIR(**searched, method="descent", picture=True)),
        **{
            f"PrivateSparseSIR {method}": Case(PrivateSparseSIR(**few, method=method), n_features=6)
            for method in _named(sparse_sir.METHODS)
        },
        "PrivateSparseSIR, bounds found": Case(PrivateSparseSIR(**searched, max_features=2), n_features=6),
        **{f"PrivatePCA {method}": Case(PrivatePCA(**known, method=method)) for method in _named(pca.METHODS)},
        **{
            f"PrivateSparsePCA {method}": Case(PrivateSparsePCA(**few, method=method), n_features=6)
            for method in _named(sparse_pca.METHODS)
        },
        "PrivateCCA": Case(PrivateCCA(**known, y_bounds=BOX), n_features=4, fit=_two_tables),
        "PrivateLDA": Case(PrivateLDA(**known, classes=CLASSES), responses=CLASSES),
        "PrivateSAVE": Case(PrivateSAVE(**known)),
        "PrivateDR": Case(PrivateDR(**known)),
    }


def _named(methods: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(method for method in methods if method != "auto")  # "auto" is one of the others
