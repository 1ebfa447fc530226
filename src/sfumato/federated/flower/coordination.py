"""One command for a coordinator: server, admission, fit, outcome. Start it again and it goes on.

Flower's server is a child process, in a group of its own, so that stopping it leaves nothing behind.
"""

import errno
import hashlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.coordinator import write_outcome
from sfumato.federated.flower import library
from sfumato.federated.flower.keys import authority, demand_pair, public_keys
from sfumato.federated.flower.link import open_grid, pull_replies
from sfumato.federated.flower.transport import FlowerTransport
from sfumato.federated.run_settings import Limits, fit_within, settings_of
from sfumato.federated.store import Journal
from sfumato.methods.base import PrivateReducer
from sfumato.settings.federated import SitesLostError


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
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def coordinate(
    address: Address,
    sites: Sequence[Path],
    folder: Path,
    estimator: PrivateReducer,
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
    journal = Journal.resume(folder / "run.json", settings_of(estimator, limits), anew=limits.anew)
    with _server(address, folder, keys) as secret, open_grid(address.reached_at, ca, secret, keys) as (grid, nodes):
        say(f"waiting for {len(sites)} site(s) on {address.host}:{address.port}; Ctrl-C keeps the run.")
        transport = FlowerTransport(grid, len(nodes), limits.wait, limits.timeout, frozenset(nodes), pull_replies)
        met = set(transport.nodes.values())
        for path in (path for path, node in zip(sites, nodes, strict=True) if node not in met):
            say(f"the site with the key {path} did not appear within {limits.wait:g} s.")
        try:
            again = "Start the same command again to go on with this run."
            fitted = fit_within(limits, estimator, transport, journal, again)
        except library.HTTPError:
            log = folder / "server.log"
            raise SitesLostError(f"the server was lost; see {log}, and start the same command again.") from None
    found = write_outcome(fitted, folder / "result")
    journal.forget()
    return found


@contextmanager
def _server(address: Address, folder: Path, keys: Sequence[bytes]) -> Iterator[bytes]:
    """Flower's server; yields the secret that only it and this process know."""
    folder.mkdir(parents=True, exist_ok=True)
    secret, file, log = secrets.token_bytes(32), folder / "secret", folder / "server.log"
    files = (address.ca.absolute(), address.certificate.absolute(), address.key.absolute())
    command = superlink_command(address.host, address.port, file.absolute(), _nodes(folder, keys), *files)
    try:
        file.unlink(missing_ok=True)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(secret)
        environment = {**os.environ, **QUIET, "FLWR_HOME": str((folder / "home").absolute())}
        with run_server(command, environment, log) as server:
            await_listener(address.host, address.port, server, log, START)
            file.unlink()
            yield secret
    finally:
        file.unlink(missing_ok=True)


def _nodes(folder: Path, keys: Sequence[bytes]) -> Path:
    """Where the server remembers these sites and no others: a SuperNode of Flower's ends if it is forgotten."""
    name = f"nodes-{hashlib.sha256(b''.join(sorted(keys))).hexdigest()[:12]}.db"
    clean_databases(folder, name)
    return folder.absolute() / name


QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""Variables for Flower: no telemetry."""
FORGOTTEN = 30 * 24 * 3600.0
"""Seconds after which the server's notes of other sets of sites are deleted; they hold uploads, which are noisy."""


def clean_databases(folder: Path, kept: str) -> None:
    """Delete what servers noted for other sets of sites that nobody has used for a month."""
    for path in folder.glob("nodes-*.db*"):
        if not path.name.startswith(kept) and time.time() - path.stat().st_mtime > FORGOTTEN:
            path.unlink(missing_ok=True)


def superlink_command(
    host: str, port: int, secret: Path, nodes: Path, ca: Path, certificate: Path, key: Path
) -> list[str]:
    """Flower's server: TLS, registered nodes only; it starts no app. Who is registered stays in the file `nodes`."""
    listen = ["--host", host, "--port", str(port), "--database", str(nodes)]
    files = ["--ssl-ca-certfile", str(ca), "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
    only = ["--enable-supernode-auth", "--isolation", "process", "--superexec-auth-secret-file", str(secret)]
    gate = [sys.executable, "-m", "sfumato.federated.flower.gate", str(os.getpid()), str(secret)]
    return [*gate, *listen, *only, *files]


START = 120.0
"""Seconds a server may take to start on a busy machine."""
GRACE = 5.0
"""Seconds a server has to end by itself before it is killed."""


@contextmanager
def run_server(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server for as long as the block lasts; what it says goes to the file `log`.

    Flower's servers start helpers of their own. They share the server's process group, and the group is ended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        process = subprocess.Popen(
            list(command), env=dict(environment), stdout=file, stderr=file, stdin=subprocess.DEVNULL, process_group=0
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    finally:  # also if the wait is interrupted once more
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def await_listener(host: str, port: int, process: subprocess.Popen[bytes], log: Path, seconds: float) -> None:
    """Wait until a server accepts connections; a sentence if it ends or takes too long."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        with suppress(OSError), socket.create_connection((host, port), timeout=1.0):
            return
        time.sleep(0.05)
    raise InputError(f"the server did not start to listen on {host}:{port}; see {log}.")


def refuse_if_taken(host: str, port: int) -> None:
    """Refuse a place where the server cannot listen; somebody who listens there already would be taken for it."""
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port: something listens on {host}:{port} already; stop it or choose another port."
            ) from None
        if error.errno == errno.EACCES:
            raise InputError(f"port: {port} needs more rights; choose one from 1024 on.") from None
        raise InputError(f"host: {host} is not an address of this machine; 0.0.0.0 stands for all of them.") from None
