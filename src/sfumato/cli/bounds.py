"""`sfumato bounds`: a file that says what is known about each feature without looking at the data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.options import Decimal
from sfumato.cli.output import new_file
from sfumato.cli.terminal import stdout
from sfumato.errors import InputError
from sfumato.study import quote_key

if TYPE_CHECKING:
    from sfumato.sources.table import Table

bounds_app = typer.Typer(help="Bounds of the features: what is known without the data.")

HEADER = """\
# Bounds of the features: fill in the smallest and largest value that each can sensibly take,
#
#     "age" = [0, 110]
#
# from what is known about the measurement: a law, a scale, a form, an earlier study. Never look them up in the
# data: the smallest and largest value of a column are the values of two people. What lies outside is moved to the
# nearest bound, so narrow bounds cost accuracy, never privacy. Lines of columns that are no features may stay; remove
# those of features of which nothing is known: their bounds are then bought from the budget.

[bounds]
"""


@bounds_app.callback(invoke_without_command=True)
def group(context: typer.Context) -> None:
    """Bounds of the features: what is known about them without looking at the data."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@bounds_app.command("init")
def init(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or Feather file, or a pattern.")],
    out: Annotated[Path, typer.Option(help="The file to write.", dir_okay=False)] = Path("bounds.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    decimal: Decimal = ".",
) -> None:
    """Write a template with the names of the columns, to be filled in by hand.

    Only names are read: no value of the data is in the template.
    """
    if out.exists() and not force:
        raise InputError(f"out: {out} exists and may hold your numbers; name another file, or replace it with --force.")
    from sfumato.sources.formats import open_tables
    from sfumato.sources.names import find

    table = open_tables(find(data)[:1], decimal)[0]
    with new_file(out) as draft:
        draft.write_text(HEADER + "".join(_line(table, name) for name in table.names), encoding="utf-8")
    stdout().print(f"[bold]{out}[/]: fill in the numbers, then fit with --bounds {out}", soft_wrap=True)


def _line(table: "Table", name: str) -> str:
    key = quote_key(name)
    if table.kind(name) in ("number", "truth"):
        return f"{key} = []\n"
    return f"# {key} is not numeric: leave it out, or declare its categories with --categorical\n"
