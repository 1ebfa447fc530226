"""The server: the desk behind its guard, on this machine."""

import ipaddress
import socket
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp

from sfumato.errors import InputError
from sfumato.web.desk import Desk
from sfumato.web.guard import Guard, Keys
from sfumato.web.pages import Pages


class Server:
    """A desk that is open to one browser; the parameters are the options of ``sfumato serve``.

    It speaks plain HTTP: beyond this machine only behind a proxy with TLS, by whose `names` it may be called, too.
    """

    def __init__(
        self,
        folder: Path,
        account: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 8765,
        names: Sequence[str] = (),
        remote: bool = False,
    ) -> None:
        self.desk = Desk(folder, account)
        self.desk.check()
        self._socket = _listening(host, port, remote)
        try:
            self.desk.open()
        except InputError:
            self._socket.close()
            raise
        self.port = int(self._socket.getsockname()[1])
        self.keys = Keys(self.port)
        self._hosts = _hosts(host, self.port, names)
        self._scheme = "https" if names else "http"

    @property
    def link(self) -> str:
        """The link that lets one browser in, once."""
        host = next(iter(self._hosts))
        return f"{self._scheme}://{host}/enter?token={self.keys.token}"

    def app(self) -> ASGIApp:
        """The app behind its guard."""
        inner = Starlette(routes=Pages(self.desk, self.keys.form_token).routes())
        return Guard(inner, self.keys, frozenset(self._hosts), self._scheme)

    def run(self) -> None:
        """Serve until interrupted; a fit that is running then is ended in order."""
        config = uvicorn.Config(
            self.app(), access_log=False, log_level="warning", server_header=False, lifespan="off", ws="none",
            timeout_keep_alive=30, timeout_graceful_shutdown=5, h11_max_incomplete_event_size=2**15,
        )  # fmt: skip
        try:
            uvicorn.Server(config).run(sockets=[self._socket])
        finally:
            self.desk.bench.close()


def _listening(host: str, port: int, remote: bool) -> socket.socket:
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise InputError(f"host: {host!r} is no address; write one such as 127.0.0.1.") from None
    if not address.is_loopback and not remote:
        raise InputError(
            f"host: {host} can be reached from other machines; leave it out, or add --remote if a proxy with TLS "
            "stands before it."
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((str(address), port))
        opened.listen()  # from now on whoever follows the link waits instead of being turned away
    except (OSError, OverflowError):
        opened.close()
        raise InputError(f"port: {port} of {host} cannot be used; another program may have it. Try --port 0.") from None
    return opened


def _hosts(host: str, port: int, names: Sequence[str]) -> dict[str, None]:
    """What a browser may call this server, the usual name first."""
    if names:
        return dict.fromkeys(names)
    literal = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):  # any address of this machine, as in a container: no browser goes to these
        literal = "127.0.0.1"
    return dict.fromkeys(f"{name}:{port}" for name in (literal, "localhost"))
