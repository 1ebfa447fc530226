"""The folder that ``flwr run`` wants: two files that point back here, and their settings."""

from pathlib import Path

CONFIG: dict[str, str | int | float] = {
    "sites": 2,
    "minimum": 2,
    "wait": 60.0,
    "timeout": 120.0,
    "least": 1,
    "sparse": 0,
    "out": "result",
    "run": "",
    "epsilon": 1.0,
    "delta": 1e-6,
    "directions": "auto",
    "method": "auto",
    "lower": "",
    "upper": "",
    "classes": "",
}
"""Run configuration: how many sites to wait for, how many must stay, and the parameters of the fit."""

_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "sfumato-federation"
version = "1.0.0"
description = "Private sliced inverse regression over sites"
license = "Apache-2.0"
dependencies = []

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "sfumato"

[tool.flwr.app.components]
serverapp = "sfumato_federation.server:app"
clientapp = "sfumato_federation.client:app"

[tool.flwr.app.config]
{config}
"""
_SERVER = "from sfumato.federated.flower.server import server_app\n\napp = server_app()\n"
_CLIENT = "from sfumato.federated.flower.client import client_app\n\napp = client_app()\n"


def write_app(folder: Path, **config: str | int | float) -> Path:
    """Write the app, with `config` in place of the defaults; returns the folder."""
    unknown = set(config) - set(CONFIG)
    if unknown:
        raise KeyError(f"unknown settings: {sorted(unknown)}")
    package = folder / "sfumato_federation"
    package.mkdir(parents=True, exist_ok=True)
    settings = "\n".join(f"{name} = {_toml(value)}" for name, value in (CONFIG | config).items())
    (folder / "pyproject.toml").write_text(_PROJECT.format(config=settings), encoding="utf-8")
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "server.py").write_text(_SERVER, encoding="utf-8")
    (package / "client.py").write_text(_CLIENT, encoding="utf-8")
    return folder


def _toml(value: str | int | float) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
