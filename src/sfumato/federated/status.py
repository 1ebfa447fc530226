"""What a coordinator's folder tells of its runs, for its operator."""

from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.coordinator import summarise_outcome
from sfumato.federated.store import read_journal, read_object, unreadable
from sfumato.hints import visible


def describe_status(folder: Path) -> str:
    """The run that is going on or was interrupted, and the last result, in a few lines."""
    if not folder.is_dir():
        raise InputError(f"folder: there is no {folder}; name the folder of a coordinator, as 'server --folder' did.")
    journal, result = folder / "run.json", folder / "result" / "outcome.json"
    found = _describe_run(read_journal(journal)) if journal.exists() else ["no run is going on"]
    if result.exists():
        found += ["", f"last result ({result}):", *_describe_outcome(result).split("\n")]
    return "\n".join(map(visible, found))


def _describe_run(run: dict[str, Any]) -> list[str]:
    """Who takes part, and which lines were answered by how many; a run that has not begun has no members."""
    members, accepted = run["members"], run["accepted"]
    known = f"run {run['run'][:8]} is going on, or was interrupted"
    found = [f"{known}: the same command goes on with it, --anew gives it up"]
    for site, size in members.items():
        records = "records" if size is None else f"{size:,} records"
        found.append(f"  {site}: {records}, {'takes part' if site in accepted else 'has not accepted (yet)'}")
    heard = [f"{turn.partition(':')[0]} ({len(sites)})" for turn, sites in run["heard"].items()]
    found.append(f"  answered so far, by so many sites: {', '.join(heard) or 'nothing'}")
    if run.get("abandoned"):
        found.append(f"  {len(run['abandoned'])} run(s) given up, of which sites are told when they are there")
    return found


def _describe_outcome(path: Path) -> str:
    try:
        return summarise_outcome(read_object(path))
    except (KeyError, TypeError, AttributeError):
        raise InputError(unreadable(path)) from None
