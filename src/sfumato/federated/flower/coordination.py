"""One command for a coordinator: server, admission, fit, outcome. Start it again and it goes on."""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.federated.coordinator import fit_remote
from sfumato.federated.flower import commands, library
from sfumato.federated.flower.keys import authority, demand_pair, public_keys
from sfumato.federated.flower.link import open_grid
from sfumato.federated.flower.processes import await_listener, refuse_if_taken, started
from sfumato.federated.flower.transport import FlowerTransport
from sfumato.federated.journal import Journal
from sfumato.federated.outcome import outcome, write_outcome
from sfumato.methods.sir import PrivateSIR
from sfumato.settings.federated import SitesLostError

START = 120.0
"""Seconds a server may take to start on a busy machine."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens, and the files of its certificate."""

    host: str
    port: int
    ca: Path
    certificate: Path
    key: Path

    @property
    def reached_at(self) -> str:
        """Where this machine finds the server; the certificate must name it."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
        return f"{everywhere.get(self.host, self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Whom to wait for, and how long: seconds until the sites appear and for each answer, sites that must stay."""

    wait: float
    timeout: float
    minimum: int
    least: int | None = None
    leave_out: bool = False
    own_units: bool = False


def coordinate(
    address: Address,
    sites: Sequence[Path],
    folder: Path,
    estimator: PrivateSIR,
    limits: Limits,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Fit over the sites with these public keys; the outcome, which is also in ``folder/result``.

    What the run needs to go on is kept in `folder` until it has an outcome: the same command in the same folder goes on
    with a run that was interrupted, and its sites repeat what they had answered, at no further cost. Patience
    (`minimum`, `wait`, `timeout`) may differ.
    """
    keys, ca = public_keys(sites), authority(address.ca)
    demand_pair(address.certificate, address.key)
    refuse_if_taken(address.host, address.port)
    journal = Journal.resume(folder / "run.json", _settings(estimator, limits))
    with _server(address, folder, keys) as secret, open_grid(address.reached_at, ca, secret, keys) as (grid, nodes):
        say(f"waiting for {len(sites)} site(s) on {address.host}:{address.port}; Ctrl-C keeps the run.")
        transport = FlowerTransport(grid, frozenset(nodes), limits.wait, limits.timeout)
        met = set(transport.nodes.values())
        for path in (path for path, node in zip(sites, nodes, strict=True) if node not in met):
            say(f"the site with the key {path} did not appear within {limits.wait:g} s.")
        try:
            fitted = fit_remote(
                estimator,
                transport,
                tuple(transport.nodes),
                minimum=limits.minimum,
                run=journal,
                least=limits.least,
                leave_out=limits.leave_out,
                own_units=limits.own_units,
            )
        except SitesLostError as error:
            raise SitesLostError(f"{error} Start the same command again to go on with this run.") from None
        except library.HTTPError:
            log = folder / "server.log"
            raise SitesLostError(f"the server was lost; see {log}, and start the same command again.") from None
    write_outcome(fitted, folder / "result")
    journal.forget()
    return outcome(fitted)


@contextmanager
def _server(address: Address, folder: Path, keys: Sequence[bytes]) -> Iterator[bytes]:
    """Flower's server; yields the secret that only it and this process know."""
    folder.mkdir(parents=True, exist_ok=True)
    secret, file, log = secrets.token_bytes(32), folder / "secret", folder / "server.log"
    files = (address.ca.absolute(), address.certificate.absolute(), address.key.absolute())
    command = commands.superlink(address.host, address.port, file.absolute(), _nodes(folder, keys), *files)
    try:
        file.unlink(missing_ok=True)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(secret)
        with started(command, commands.environment(folder / "home"), log) as server:
            await_listener(address.host, address.port, server, log, START)
            file.unlink()
            yield secret
    finally:
        file.unlink(missing_ok=True)


def _nodes(folder: Path, keys: Sequence[bytes]) -> Path:
    """Where the server remembers these sites and no others: a SuperNode of Flower's ends if it is forgotten."""
    return folder.absolute() / f"nodes-{hashlib.sha256(b''.join(sorted(keys))).hexdigest()[:12]}.db"


def _settings(estimator: PrivateSIR, limits: Limits) -> Mapping[str, Any]:
    """What makes a run this run and no other."""
    given = {name: repr(value) for name, value in estimator.get_params().items()}
    own = {"least": limits.least, "leave_out": limits.leave_out, "own_units": limits.own_units}
    return {"estimator": type(estimator).__name__, **given, **own}
