"""The gate of the coordinator's port: sites pass to what sites need, and nobody else to anything.

Flower's server has one port for three interfaces. Sites use the fleet's, where every request is signed by a key that
was admitted. The control and runtime interfaces admit and forget nodes and start and stop runs, for whoever reaches the
port; here they are for the process that started the server, which alone knows its secret.
"""

import hmac
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from sfumato.federated.flower import library

HEADER = "x-sfumato-secret"
_FLEET = (
    "activate-node deactivate-node send-node-heartbeat pull-messages push-messages pull-object push-object "
    "confirm-message-received get-run get-fab"
)
OPEN = frozenset(f"/v1/fleet/{name}" for name in _FLEET.split())
"""What sites and SuperNodes ask for; Flower checks their signatures. Registering and unregistering is not among it."""


def password_of(secret: bytes) -> str:
    """What opens the gate; not the secret itself, which Flower uses for something else."""
    return hmac.digest(secret, b"sfumato: control and runtime", "sha256").hex()


class Gate:
    """ASGI middleware before Flower's server: whatever is not for sites is forbidden without the password."""

    def __init__(self, app: Callable[..., Awaitable[None]], password: str) -> None:
        self._app, self._password = app, password.encode("ascii")

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or self._passes(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _passes(self, scope: Mapping[str, Any]) -> bool:
        if scope["type"] != "http":
            return False
        told = next((value for name, value in scope["headers"] if name.lower() == HEADER.encode("ascii")), b"")
        return scope["path"] in OPEN or hmac.compare_digest(told, self._password)


class Password:
    """Lets the requests of one of Flower's clients through the gate."""

    def __init__(self, secret: bytes) -> None:
        self._password = password_of(secret)

    def intercept(self, context: Any, call_next: Callable[[Any], Any]) -> Any:
        """Add the header to a request."""
        context.request.headers[HEADER] = self._password
        return call_next(context)


def serve() -> None:
    """``flower-superlink`` behind the gate; it ends with the process that started it, whatever ends that."""
    parent, secret = int(sys.argv.pop(1)), Path(sys.argv.pop(1)).read_bytes()
    guard = library.Middleware(Gate, password=password_of(secret))
    library.start_parent_process_monitor(parent)
    library.serve_behind(guard)


if __name__ == "__main__":
    serve()
