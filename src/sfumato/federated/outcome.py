"""What a coordinator keeps of a federated fit: directions, every site's spending, who was left out, bytes sent."""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from sfumato.methods.sir import PrivateSIR


def outcome(fitted: PrivateSIR) -> dict[str, Any]:
    """As plain data."""
    traffic: dict[str, dict[str, int]] = defaultdict(dict)
    for transfer in fitted.transfers_:
        traffic[transfer.line][transfer.site] = transfer.received
    return {
        "directions": fitted.directions_.tolist(),
        "eigenvalues": fitted.eigenvalues_.tolist(),
        "guarantee": fitted.ledger_.guarantee,
        "sites": {name: facts.n_records for name, facts in fitted.sites_.items()},
        "left_out": dict(fitted.left_out_),
        "disagreeing": {name: found.about for name, found in fitted.disagreeing_.items()},
        "spending": fitted.spending_,
        "uploaded_bytes": dict(traffic),
        **_extras(fitted),
    }


def _extras(fitted: PrivateSIR) -> dict[str, Any]:
    """The support of a sparse fit; the bounds of sites in units of their own."""
    found: dict[str, Any] = {}
    if hasattr(fitted, "support_"):
        found["support"] = fitted.support_.tolist()
    if hasattr(fitted, "local_"):
        sides = {name: (bounds.lower.tolist(), bounds.upper.tolist()) for name, bounds in fitted.local_.items()}
        found["own_units"] = {name: {"lower": lower, "upper": upper} for name, (lower, upper) in sides.items()}
    return found


def summary(found: dict[str, Any]) -> str:
    """An outcome in a few lines, for the terminal."""
    spent = [
        f"  {name}: epsilon {float(told['epsilon']):.4g} spent in all runs, cap {told.get('cap')}"
        for name, told in found["spending"].items()
    ]
    lost = [f"  left out: {name}, {why}" for name, why in found["left_out"].items()]
    lost += [f"  {name} disagrees with the others in {about}" for name, about in found["disagreeing"].items()]
    head = f"{len(found['directions'])} direction(s) from {len(found['sites'])} site(s)"
    return "\n".join([head, *spent, *lost])


def write_outcome(fitted: PrivateSIR, folder: Path) -> None:
    """Write ``report.html``, then ``outcome.json``: whoever waits for the outcome finds both."""
    folder.mkdir(parents=True, exist_ok=True)
    fitted.report(folder / "report.html")
    write_json(outcome(fitted), folder)


def write_json(found: dict[str, Any], folder: Path) -> None:
    """Write ``outcome.json`` in one step, so that nobody reads half of it."""
    part = folder / "outcome.part"
    part.write_text(json.dumps(found, indent=1), encoding="utf-8")
    os.replace(part, folder / "outcome.json")
