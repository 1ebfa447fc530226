"""`sfumato datasets`: the built-in data."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.output import new_file
from sfumato.cli.terminal import stdout

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
    from sfumato.cli.writer import open_writer

    table: Any = pq.read_table(datasets.path(name))
    with new_file(path) as draft, open_writer(draft, table.schema) as writer:
        writer.write_table(table)
    stdout().print(str(path), style="bold", soft_wrap=True)
