"""The Flower commands that a site and a coordinator run, so that neither needs to know them."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from sfumato.errors import InputError

ENVIRONMENT = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}


def environment(home: Path) -> dict[str, str]:
    """Variables for every Flower command: no telemetry, its files under `home`."""
    return {**os.environ, **ENVIRONMENT, "FLWR_HOME": str(home)}


def supernode(coordinator: str, ca: Path, key: Path, port: int, config: Mapping[str, str | int]) -> list[str]:
    """A site's SuperNode.

    >>> supernode("h:8000", Path("ca.crt"), Path("key"), 9094, {"name": "north", "seed": 7})[-1]
    'name="north" seed=7'
    """
    told = " ".join(
        f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}" for name, value in config.items()
    )
    where = ["--superlink", coordinator, "--root-certificates", str(ca), "--auth-supernode-private-key", str(key)]
    return ["flower-supernode", *where, "--host", "127.0.0.1", "--port", str(port), "--node-config", told]


def superlink(host: str, port: int, folder: Path, ca: Path, certificate: Path, key: Path) -> list[str]:
    """The coordinator's SuperLink: TLS, registered nodes only, nothing installed at run time."""
    files = ["--ssl-ca-certfile", str(ca), "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
    only = ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
    return [
        "flower-superlink",
        "--host",
        host,
        "--port",
        str(port),
        "--database",
        str(folder / "link.db"),
        *only,
        *files,
    ]


def connection(home: Path, address: str, ca: Path) -> None:
    """Write the connection called ``sfumato`` that ``flwr`` uses."""
    home.mkdir(parents=True, exist_ok=True)
    text = f'[superlink]\ndefault = "sfumato"\n\n[superlink.sfumato]\naddress = "{address}"\n'
    (home / "config.toml").write_text(f'{text}root-certificates = "{ca.absolute()}"\n', encoding="utf-8")


def demand_flower() -> None:
    """Refuse, with the remedy, where Flower is not installed."""
    if shutil.which("flower-superlink") is None:
        raise InputError("Flower is not installed; run: pip install 'sfumato[federated]'.")
