"""A fitted estimator from JSON, every field checked."""

from os import PathLike
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.methods.base import PrivateReducer
from sfumato.model import account, inputs
from sfumato.model.fields import Sizes, checked
from sfumato.model.inputs import Inputs
from sfumato.model.kinds import OPTIONAL, Kind, kinds_for
from sfumato.model.renew import MEMBERS, VERSIONS, renewed
from sfumato.model.strict import Node, read_json
from sfumato.model.write import content
from sfumato.privacy.parameters import budget_of
from sfumato.records import HASH_BUCKETS


def load_model(path: str | PathLike[str]) -> Any:
    """The fitted estimator in a model file; see `save_model`.

    The file is data: nothing in it is run, and a file that does not say exactly what a model file must say is
    refused with an `InputError` that names the place.
    """
    return from_json(read_json(Path(path)))


def standalone(estimator: PrivateReducer) -> Any:
    """What a model file of `estimator` would load as: its own releases, without a ledger shared with others."""
    return from_json(Node(content(estimator)))


def load_inputs(path: str | PathLike[str]) -> Inputs:
    """How the features of a model file were made."""
    return inputs.read(_top(read_json(Path(path)))["inputs"])


def from_json(node: Node) -> Any:
    """The fitted estimator in the content of a model file."""
    top = _top(node)
    kinds = kinds_for(top["estimator"].value)
    kind, known = kinds[top["estimator"].one_of(kinds)], inputs.read(top["inputs"])
    sizes = _sizes(kind, known, top["inputs"])
    estimator = _unfitted(kind, top["parameters"], sizes)
    fields = top["released"].fields(*kind.released)
    for name, read in kind.released.items():
        setattr(estimator, kind.attribute(name), read(fields[name], sizes))
    kind.finish(estimator, top["released"])
    estimator.ledger_ = account.read(top["ledger"])
    known.remember(estimator)
    return estimator


def _top(node: Node) -> dict[str, Node]:
    """The members of a file of any version."""
    version = node.value.get("format") if isinstance(node.value, dict) else None
    if version not in VERSIONS:
        what = "is of an unknown version" if str(version).startswith("sfumato-model/") else "is not a model file"
        raise InputError(f"model: the file {what}; this sfumato reads {', '.join(map(repr, VERSIONS))}.")
    top = renewed(node).fields(*MEMBERS)
    top["sfumato"].text()
    return top


def _sizes(kind: Kind, known: Inputs, node: Node) -> Sizes:
    p, pairs = known.n_features, "y_mean" in kind.released
    if (known.second is not None) != pairs:
        Node(None, f"{node.place}.second").refuse("the second table" if pairs else "null: there is no second table")
    if known.second is None:
        return {"p": p, "most": p, "codes": HASH_BUCKETS}
    q = known.second.n_features
    return {"p": p, "q": q, "p + q": p + q, "most": min(p, q)}


def _unfitted(kind: Kind, node: Node, sizes: Sizes) -> Any:
    """The estimator before its fit."""
    told = [name for name in kind.parameters if name != OPTIONAL or OPTIONAL in dict(node.items())]
    fields = node.fields(*told)
    values = {name: kind.parameters[name](fields[name], sizes) for name in told}
    checked(node, lambda: budget_of(values["epsilon"], values["delta"], values["rho"]))
    return kind.make(**values)
