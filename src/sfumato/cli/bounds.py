"""`sfumato bounds`: a file that says what is known about each feature without looking at the data."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.output import new_file
from sfumato.cli.terminal import stdout
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.bounds import Bounds
    from sfumato.sources.columns import Columns
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
) -> None:
    """Write a template with the names of the columns, to be filled in by hand.

    Only names are read: no value of the data is in the template.
    """
    if out.exists() and not force:
        raise InputError(f"out: {out} exists and may hold your numbers; name another file, or replace it with --force.")
    from sfumato.sources.formats import open_tables
    from sfumato.sources.names import find

    table = open_tables(find(data)[:1])[0]
    with new_file(out) as draft:
        draft.write_text(HEADER + "".join(_line(table, name) for name in table.names), encoding="utf-8")
    stdout().print(f"[bold]{out}[/]: fill in the numbers, then fit with --bounds {out}", soft_wrap=True)


def read_bounds(path: Path, columns: "Columns", table_names: Sequence[str]) -> "Bounds | dict[str, Any]":
    """The bounds of the features, from a file: of all, or of those that have a line; 0 and 1 for categories."""
    from sfumato.bounds import Bounds
    from sfumato.sources.names import suggest

    given = _given(path)
    for name in given:
        suggest(name, table_names, f"bounds: {path}")
    numeric = [name for name in columns.features if name not in columns.categorical]
    known: dict[str, Any] = {name: _range(name, given[name]) for name in numeric if name in given}
    if any(name not in known for name in numeric):
        return known
    return Bounds(*zip(*(known.get(name, (0.0, 1.0)) for name in columns.names), strict=True))


def _given(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"bounds: {path} cannot be read ({error.strerror}); write a template with 'sfumato bounds init DATA'."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"bounds: {path} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"bounds: {path} is not valid TOML ({error}).") from None
    bounds = content.get("bounds")
    if not isinstance(bounds, dict):
        raise InputError(f'bounds: {path} has no [bounds] section; it needs one with lines such as "age" = [0, 110].')
    return bounds


def _range(name: str, value: Any) -> tuple[float, float]:
    if value == []:
        raise InputError(f"bounds: {name!r} is not filled in yet; write [lower, upper], or remove the line to buy it.")
    is_pair = isinstance(value, list) and len(value) == 2
    if not is_pair or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value):
        raise InputError(f"bounds: {name!r} must be two numbers, [lower, upper].")
    lower, upper = map(float, value)
    if not lower < upper:
        raise InputError(f"bounds: {name!r} has a lower bound that is not below its upper bound; swap or widen them.")
    return lower, upper


def _line(table: "Table", name: str) -> str:
    key = json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
    if table.kind(name) in ("number", "truth"):
        return f"{key} = []\n"
    return f"# {key} is not numeric: leave it out, or declare its categories with --categorical\n"
