"""The Flower commands that a site and a coordinator run, so that neither needs to know them."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from sfumato.errors import InputError

ENVIRONMENT = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
CONNECTION = "sfumato"
"""What ``flwr`` calls the coordinator in its own settings."""


def environment(home: Path) -> dict[str, str]:
    """Variables for every Flower command: no telemetry, its files under `home`, its helpers beside this Python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, **ENVIRONMENT, "FLWR_HOME": str(home.absolute()), "PATH": path}


def supernode(coordinator: str, ca: Path, key: Path, port: int, config: Mapping[str, str | int]) -> list[str]:
    """A site's SuperNode.

    >>> supernode("h:8000", Path("ca.crt"), Path("key"), 9094, {"name": "north", "seed": 7})[-1]
    'name="north" seed=7'
    """
    told = " ".join(f"{name}={_quoted(name, value)}" for name, value in config.items())
    where = ["--superlink", coordinator, "--root-certificates", str(ca), "--auth-supernode-private-key", str(key)]
    return ["flower-supernode", *where, "--host", "127.0.0.1", "--port", str(port), "--node-config", told]


def superlink(host: str, port: int, folder: Path, ca: Path, certificate: Path, key: Path) -> list[str]:
    """The coordinator's SuperLink: TLS, registered nodes only, nothing installed at run time."""
    listen = ["--host", host, "--port", str(port), "--database", str(folder / "link.db")]
    files = ["--ssl-ca-certfile", str(ca), "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
    only = ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
    return ["flower-superlink", *listen, *only, *files]


def connection(home: Path, address: str, ca: Path) -> None:
    """Write the connection that ``flwr`` uses."""
    home.mkdir(parents=True, exist_ok=True)
    text = f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\naddress = "{address}"\n'
    (home / "config.toml").write_text(f'{text}root-certificates = "{ca.absolute()}"\n', encoding="utf-8")


def register(key: Path) -> list[str]:
    """Admit the site with this public key."""
    return ["flwr", "supernode", "register", str(key.absolute()), CONNECTION]


def fit(app: Path) -> list[str]:
    """Start the fit that the app folder describes."""
    return ["flwr", "run", str(app), CONNECTION]


def demand_flower() -> None:
    """Refuse, with the remedy, where Flower is not installed."""
    path = environment(Path())["PATH"]
    if shutil.which("flower-superlink", path=path) is None:
        raise InputError("Flower is not installed; run: pip install 'sfumato[federated]'.")


def demand_files(**files: Path) -> None:
    """Refuse, by the option's name, a file that is not there."""
    for option, path in files.items():
        if not path.is_file():
            raise InputError(f"{option}: there is no file {path}.")


def _quoted(name: str, value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    if set(value) & set('"\\\n\r'):
        raise InputError(f"{name} must not contain quotes, backslashes or line breaks, got {value!r}.")
    return f'"{value}"'
