"""The app that Flower wants for a run: three lines for SuperNodes, which point at the code that a site has installed.

`sfumato federated site` does not even look at it, and nobody runs its server's part: the fit runs in the process of
`sfumato federated server`.
"""

from sfumato.federated.flower import library

_PROJECT = b"""[project]
name = "sfumato-federation"
version = "1.0.0"
description = "Private sliced inverse regression over sites"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "sfumato"
[tool.flwr.app.components]
serverapp = "sfumato_federation.client:app"
clientapp = "sfumato_federation.client:app"
"""
_CLIENT = b"from sfumato.federated.flower.client import client_app\n\napp = client_app()\n"


def build_app() -> bytes:
    """The app as Flower's own builder packs it; the same bytes every time."""
    files = {"pyproject.toml": _PROJECT, "sfumato_federation/__init__.py": b"", "sfumato_federation/client.py": _CLIENT}
    built: bytes = library.build_fab_from_files(files)[0]
    return built
