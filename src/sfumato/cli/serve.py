"""`sfumato serve`: the analyst's desk in a browser, on this machine."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.terminal import note, stdout
from sfumato.errors import InputError


def serve(
    folder: Annotated[Path, typer.Argument(help="The folder with the tables.", show_default="here")] = Path("."),
    account: Annotated[
        Path | None,
        typer.Option(help="The ledger file of these tables; sfumato/account.jsonl in the folder if not given."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    name: Annotated[
        list[str] | None, typer.Option(help="Name under which a proxy with TLS passes requests on, desk.example.org.")
    ] = None,
    remote: Annotated[
        bool, typer.Option("--remote", help="Listen beyond this machine; only behind a proxy with TLS.")
    ] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the link in a browser.")] = True,
) -> None:
    """Work in a browser: choose a table, declare, plan, fit, read the report.

    Everything stays on this machine. The link that is printed lets in one browser, once. End with Ctrl-C.
    """
    try:
        from sfumato.web.server import Server
    except ModuleNotFoundError as error:
        raise InputError(f"serve: it needs {error.name}; install it with pip install 'sfumato[web]'.") from None
    server = Server(folder, account, host, port, name or (), remote)
    stdout().print(server.link, soft_wrap=True, style="bold")
    note("open this link in a browser on this machine; it works once. Ctrl-C ends the desk.")
    with _opened(server.link) if browser and _has_browser() else nullcontext():
        server.run()


def _has_browser() -> bool:
    """Whether somebody sits before a screen."""
    screen = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return screen and sys.stdout.isatty()


@contextmanager
def _opened(link: str) -> Iterator[None]:
    """Open a link without telling it to everybody who lists the processes: through a file that we alone can read."""
    import webbrowser

    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        page = Path(folder) / "open.html"
        page.write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={link}"><title>sfumato</title>')
        webbrowser.open(page.as_uri())
        yield
