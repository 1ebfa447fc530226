"""Every private estimator and method of the family, ready to be attacked end to end."""

from collections.abc import Iterator
from typing import Any

from sfumato.audit.fits import Case
from sfumato.methods import FAMILY, added, load
from sfumato.methods.about import BOX, Attack
from sfumato.records import Records
from sfumato.typing import Relation


def attacks(epsilon: float, delta: float, relation: Relation) -> Iterator[Attack]:
    """What every member of the family has attacked, with one direction and public bounds unless it says otherwise."""
    known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": relation, "n_directions": 1, "bounds": BOX}
    for home in (*FAMILY.values(), *added().values()):
        yield from load(home).about.attacks(known)


def cases(epsilon: float, delta: float, relation: Relation) -> dict[str, Case]:
    """One fit of every kind that claims a guarantee."""
    return {attack.name: _case(attack) for attack in attacks(epsilon, delta, relation) if not attack.replay_only}


def _case(attack: Attack) -> Case:
    more: dict[str, Any] = {} if attack.responses is None else {"responses": attack.responses}
    if attack.two_tables:
        more["fit"] = _fit_two_tables
    return Case(attack.estimator, n_features=attack.n_features, **more)


def _fit_two_tables(estimator: Any, records: Records, **also: Any) -> Any:
    half = records.x.shape[1] // 2
    return estimator.fit(records.x[:, :half], records.x[:, half:], **also)
