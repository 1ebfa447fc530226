"""How to start: `sfumato demo`, a private fit in a few seconds; `sfumato datasets`; `sfumato serve`, in a browser."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from sfumato.cli.output import new_file
from sfumato.cli.terminal import make_table, note, show_progress, stdout
from sfumato.errors import InputError

datasets_app = typer.Typer(help="Built-in data to try things with: list and export them.")


def _complete(incomplete: str) -> list[str]:
    from sfumato.datasets import names

    return [name for name in names() if name.startswith(incomplete)]


@datasets_app.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    """Built-in data to try things with: list and export them."""
    if context.invoked_subcommand is None:
        list_()


@datasets_app.command("list")
def list_() -> None:
    """List the built-in data sets."""
    import pyarrow.parquet as pq

    from sfumato import datasets

    files = {name: pq.ParquetFile(datasets.path(name)) for name in datasets.names()}
    rows = (
        (Text(name, style="bold"), f"{file.metadata.num_rows:,}", ", ".join(file.schema_arrow.names))
        for name, file in files.items()
    )
    stdout().print(make_table(("name", ">rows", "columns"), rows))


@datasets_app.command("export")
def export(
    name: Annotated[str, typer.Argument(help="Which data set.", autocompletion=_complete)],
    path: Annotated[Path, typer.Argument(help="Where to: .csv, .parquet, .arrow or .feather.", dir_okay=False)],
) -> None:
    """Write a built-in data set to a file."""
    import pyarrow.parquet as pq

    from sfumato import datasets
    from sfumato.cli.results import open_writer

    table: Any = pq.read_table(datasets.path(name))
    with new_file(path) as draft, open_writer(draft, table.schema) as writer:
        writer.write_table(table)
    stdout().print(str(path), style="bold", soft_wrap=True)


RESPONSE = "arr_delay"
FEATURES = ("month", "day", "dep_delay", "arr_time", "sched_arr_time", "air_time", "distance")


def demo(out: Annotated[Path, typer.Option(help="The report to write.", dir_okay=False)] = Path("report.html")) -> None:
    """What explains the delay of 50,000 flights? A private answer, with its report.

    Spends epsilon = 1 at delta = 1e-6 on the built-in flights; the noise is cryptographic, so no two runs agree.
    """
    with new_file(out) as draft, show_progress("loading the library") as bar:
        from sfumato import datasets
        from sfumato.bounds import Bounds
        from sfumato.cli.show import show_document, show_files
        from sfumato.methods.sir import PrivateSIR
        from sfumato.report.build import build_document
        from sfumato.report.html import render
        from sfumato.report.words import meanings
        from sfumato.sources.files import open_source

        domain = datasets.domain("flights")
        bounds = Bounds(*zip(*(domain[name] for name in FEATURES), strict=True))
        bar.say("reading the flights")
        source = open_source([datasets.path("flights")], RESPONSE, FEATURES)
        # The first direction explains most; further ones, weaker and alike, would take turns from run to run.
        sir = PrivateSIR(epsilon=1.0, delta=1e-6, n_directions=1, picture=True, bounds=bounds).fit(source)
        shown = build_document(sir)
        draft.write_text(render(shown), encoding="utf-8")
    show_document(stdout(), shown, f"{RESPONSE} of flights from New York", meanings(sir))
    show_files(stdout(), [(str(out), "the report: open it in a browser")])


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
