"""The one command of Flower's that is started: its server."""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from sfumato.errors import InputError

ENVIRONMENT = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
_CODE = """import sys
from flwr.supercore.app_utils import start_parent_process_monitor
from flwr.superlink.cli import flower_superlink
start_parent_process_monitor(int(sys.argv.pop(1)))
flower_superlink()
"""
"""``flower-superlink`` that ends with the process that started it, whatever ends that."""


def environment(home: Path) -> Mapping[str, str]:
    """Variables for Flower: no telemetry, its files under `home`."""
    return {**os.environ, **ENVIRONMENT, "FLWR_HOME": str(home.absolute())}


def superlink(host: str, port: int, secret: Path, nodes: Path, ca: Path, certificate: Path, key: Path) -> list[str]:
    """Flower's server: TLS, registered nodes only; it starts no app. Who is registered stays in the file `nodes`."""
    listen = ["--host", host, "--port", str(port), "--database", str(nodes)]
    files = ["--ssl-ca-certfile", str(ca), "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
    only = ["--enable-supernode-auth", "--isolation", "process", "--superexec-auth-secret-file", str(secret)]
    return [sys.executable, "-c", _CODE, str(os.getpid()), *listen, *only, *files]


def demand_flower() -> None:
    """Refuse, with the remedy, where Flower is not installed."""
    if find_spec("flwr") is None:
        raise InputError("Flower is not installed; run: pip install 'sfumato[federated]'.")


def demand_files(**files: Path) -> None:
    """Refuse, by the option's name, a file that is not there."""
    for option, path in files.items():
        if not path.is_file():
            raise InputError(f"{option}: there is no file {path}.")
