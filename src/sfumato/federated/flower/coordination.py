"""One command for a coordinator: server, registration, fit, outcome. Start it again and it goes on."""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.federated.flower import commands
from sfumato.federated.flower.app import write_app
from sfumato.federated.flower.processes import await_listener, finished, refuse_if_taken, started
from sfumato.federated.wire import canonical
from sfumato.settings.federated import SitesLostError

START, COMMAND = 120.0, 120.0
"""Seconds a server may take to start, and a command of Flower's to end, on a busy machine."""
ROUNDS = 40
"""More than a fit ever asks for."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens, and the files of its certificate."""

    host: str
    port: int
    ca: Path
    certificate: Path
    key: Path


def coordinate(
    address: Address, keys: Sequence[Path], folder: Path, settings: Mapping[str, str | int | float]
) -> dict[str, Any]:
    """Fit over the sites with these public keys; the outcome, which is also in ``folder/result``.

    The name of the run is kept in `folder` until the run has an outcome: the same command in the same folder goes on
    with a run that was interrupted, and its sites repeat what they had answered, at no further cost.
    """
    home, result = (folder / "home").absolute(), (folder / "result").absolute()
    refuse_if_taken(address.host, address.port)
    commands.connection(home, f"{address.host}:{address.port}", address.ca)
    run = name_of_run(folder, settings)
    app = write_app(folder.absolute() / "app", sites=len(keys), out=str(result), run=run, **settings)
    outcome = result / "outcome.json"
    outcome.unlink(missing_ok=True)
    environment, log = commands.environment(home), folder / "server.log"
    files = (address.ca.absolute(), address.certificate.absolute(), address.key.absolute())
    command = commands.superlink(address.host, address.port, folder.absolute(), *files)
    with started(command, environment, log) as server:
        await_listener(address.host, address.port, server, log, START)
        for key in keys:  # a key that is registered already is refused, which changes nothing
            _note(log, finished(commands.register(key), environment, COMMAND))
        _note(log, finished(commands.fit(app), environment, COMMAND))
        found = _awaited(outcome, float(settings["wait"]) + ROUNDS * float(settings["timeout"]), log)
    if "failed" in found:
        raise SitesLostError(f"{found['failed']} Start the same command again to go on with this run.")
    (folder / "run.json").unlink()
    return found


def name_of_run(folder: Path, settings: Mapping[str, Any]) -> str:
    """The run that was interrupted here, if it had the same settings; a new one otherwise."""
    kept, wanted = folder / "run.json", canonical(dict(settings))
    if kept.exists():
        known = json.loads(kept.read_text(encoding="utf-8"))
        if known["settings"] == wanted:
            return str(known["run"])
    run = secrets.token_hex(16)
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"run": run, "settings": wanted}), encoding="utf-8")
    return run


def _awaited(outcome: Path, seconds: float, log: Path) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if outcome.exists():
            found: dict[str, Any] = json.loads(outcome.read_text(encoding="utf-8"))
            return found
        time.sleep(0.3)
    raise SitesLostError(f"the fit has no outcome after {seconds:.0f} s; see {log}, and start the same command again.")


def _note(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(text)
