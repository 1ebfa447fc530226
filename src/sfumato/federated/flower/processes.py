"""Flower's servers as child processes: each in a group of its own, so that stopping it leaves nothing behind."""

import errno
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import InputError

GRACE = 5.0
"""Seconds a server has to end by itself before it is killed."""


@contextmanager
def started(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
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
        with socket.socket() as probe:
            probe.settimeout(1.0)
            if probe.connect_ex((host, port)) == 0:
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
