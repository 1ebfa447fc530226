"""Model files of earlier versions, told again in the words of this one."""

from typing import Any

from sfumato.methods.parameters import MOVED
from sfumato.model.strict import Node
from sfumato.model.write import FORMAT

MEMBERS = ("format", "sfumato", "estimator", "inputs", "parameters", "released", "ledger")
FIRST, SECOND = "sfumato-model/1", "sfumato-model/2"
VERSIONS = (FIRST, SECOND, FORMAT)
CALIBRATED = ("PrivateSIR", "PrivateSparseSIR", "PrivatePCA", "PrivateLDA", "PrivateCCA")
"""Estimators that once had the papers' methods among their own, with a calibration each."""
ASSESSED_LATER = ("PrivateSIR", "PrivateSparseSIR")
"""Estimators that say more about their errors since."""
LOW, HIGH = (20, 100), (10, 50)
SLICING = {"DPIni": LOW, "DPSIR": LOW, "RayleighFlowSIR": LOW} | dict.fromkeys(
    ("DPSIni", "DPSSIR", "TruncatedRayleighFlowSIR"), HIGH
)
"""Slices and bins of the papers' methods, which could not be chosen."""


def renewed(node: Node) -> Node:
    """The file as one of the newest version."""
    for version, renew in ((FIRST, _from_first), (SECOND, _from_second)):
        if node.value["format"] == version:
            node = renew(node)
    return node


def _from_first(node: Node) -> Node:
    """It held a `PrivateSIR`, of which the papers' noise was not said."""
    top = node.fields(*MEMBERS)
    top["estimator"].one_of(["PrivateSIR"])
    inputs, parameters = (_members(top[name]) for name in ("inputs", "parameters"))
    changed = {"inputs": inputs | {"second": None}, "parameters": parameters | {"calibration": "tight"}}
    return Node(node.value | changed | {"format": SECOND})


def _from_second(node: Node) -> Node:
    """The papers' methods were among those of the estimators; now they are estimators of their own."""
    top = node.fields(*MEMBERS)
    name, parameters, released = top["estimator"].value, _members(top["parameters"]), _members(top["released"])
    if isinstance(released.get("choice"), dict):  # nothing was tested
        released["choice"] = {"p_values": []} | released["choice"]
    if "bounds" in released:  # nor was it said which features were not seen
        released["unseen"] = None
    if isinstance(released.get("picture"), dict):  # nor what it tells in the units of y
        released["picture"] |= dict.fromkeys(("response_values", "response_cuts", "score_scale"))
    changed: dict[str, Any] = {"format": FORMAT, "released": released}
    if not isinstance(name, str) or name not in MOVED:
        return Node(node.value | changed)
    method = parameters.get("method")
    moved = MOVED[name].get(method) if isinstance(method, str) else None
    if name in CALIBRATED:
        Node(parameters.get("calibration"), "parameters.calibration").one_of(("tight", "paper"))
    if moved is None:
        parameters.pop("calibration", None)
        if name in ASSESSED_LATER:
            released |= dict.fromkeys(("privacy_errors", "loadings_errors", "verdict"))
        return Node(node.value | changed | {"parameters": parameters})
    for gone in ("method", "picture"):
        parameters.pop(gone, None)
    for gone in ("picture", "screen"):
        released.pop(gone, None)
    if moved in SLICING:
        parameters["n_slices"], parameters["n_bins"] = SLICING[moved]
    if moved == "DPSIR":
        parameters["batches"] = "full" if method == "dp-sir-full" else "parts"
    return Node(node.value | changed | {"estimator": moved, "parameters": parameters})


def _members(node: Node) -> dict[str, Any]:
    return {name: member.value for name, member in node.items()}
