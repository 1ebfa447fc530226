"""What a coordinator keeps of a federated fit: directions, every site's spending, who was left out, bytes sent."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from sfumato.estimators.sir import PrivateSIR


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
    }


def summary(fitted: PrivateSIR) -> str:
    """In a few lines, for the terminal."""
    spent = [f"  {name}: epsilon {float(told['epsilon']):.4g} spent" for name, told in fitted.spending_.items()]
    lost = [f"  left out: {name}, {why}" for name, why in fitted.left_out_.items()]
    lost += [f"  {name} disagrees with the others in {found.about}" for name, found in fitted.disagreeing_.items()]
    head = f"{len(fitted.directions_)} direction(s) from {len(fitted.sites_)} site(s)"
    return "\n".join([head, *spent, *lost])


def write_outcome(fitted: PrivateSIR, folder: Path) -> None:
    """Write ``outcome.json`` and ``report.html``."""
    (folder / "outcome.json").write_text(json.dumps(outcome(fitted), indent=1), encoding="utf-8")
    fitted.report(folder / "report.html")
