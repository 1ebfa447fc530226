"""`sfumato datasets` and `sfumato demo`: the built-in data, and a private fit of some of it in a few seconds."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.output import new_file
from sfumato.cli.terminal import show_progress, stdout

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
    from rich import box
    from rich.table import Table

    from sfumato import datasets

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", style="bold")
    table.add_column("rows", justify="right")
    table.add_column("columns")
    for name in datasets.names():
        file = pq.ParquetFile(datasets.path(name))
        table.add_row(name, f"{file.metadata.num_rows:,}", ", ".join(file.schema_arrow.names))
    stdout().print(table)


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


def demo(
    out: Annotated[Path, typer.Option(help="The report to write.", dir_okay=False)] = Path("report.html"),
) -> None:
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
        sir = PrivateSIR(epsilon=1.0, delta=1e-6, picture=True, bounds=bounds).fit(source)
        shown = build_document(sir)
        draft.write_text(render(shown), encoding="utf-8")
    show_document(stdout(), shown, f"{RESPONSE} of flights from New York", meanings(sir))
    show_files(stdout(), [(str(out), "the report: open it in a browser")])
