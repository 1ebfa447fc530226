"""`sfumato transform` and `sfumato report`: what can be done with a model file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.output import new_file
from sfumato.cli.progress import working
from sfumato.cli.terminal import note, stdout
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.estimators.sir import PrivateSIR
    from sfumato.files import Columns

ROWS = 2**15


def transform(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or Feather file, or a pattern.")],
    model: Annotated[Path, typer.Option(help="The model.json of a fit.")],
    out: Annotated[Path, typer.Option(help="Where to: .csv, .parquet, .arrow or .feather.", dir_okay=False)],
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")] = False,
) -> None:
    """Coordinates of records along the directions of a model, one row per record.

    They are values of the records themselves, so they are not private: keep them where the data are.
    """
    with new_file(out) as draft, working("loading the library") as bar:
        from sfumato.files import open_tables
        from sfumato.files.names import find
        from sfumato.model import load_inputs, load_model

        estimator, columns = load_model(model), load_inputs(model).features()
        tables = open_tables(find(data))
        for table in tables:
            columns.check(table)
        bar.say("projecting the records")
        _project(estimator, columns, tables, draft, drop_missing)
    stdout().print(str(out), style="bold", soft_wrap=True)
    note(f"{out} holds values of the records and is not private; keep it where the data are.")


def _project(estimator: "PrivateSIR", columns: "Columns", tables: list[Any], draft: Path, drop: bool) -> None:
    import numpy as np
    import pyarrow as pa

    from sfumato.cli.writer import open_writer

    names = [f"direction_{k + 1}" for k in range(len(estimator.directions_))]
    with open_writer(draft, pa.schema([(name, pa.float64()) for name in names])) as writer:
        for table in tables:
            for part in range(table.parts()):
                for batch in table.batches(part, columns.features, ROWS):
                    x = columns.encode(batch, table)
                    complete = np.isfinite(x).all(axis=1)
                    if not complete.all() and not drop:
                        raise InputError("data: some rows have missing values; impute them, or add --drop-missing.")
                    if complete.any():
                        kept = pa.table(list(x[complete].T), names=list(columns.names))
                        writer.write_table(pa.table(list(estimator.transform(kept).T), names=names))


def report(
    model: Annotated[Path, typer.Argument(help="The model.json of a fit.")],
    out: Annotated[Path, typer.Option(help="The report to write.", dir_okay=False)] = Path("report.html"),
) -> None:
    """Write the report of a model file: one HTML page with released values only, to look at and to send."""
    with new_file(out) as draft, working("loading the library"):
        from sfumato.model import load_model

        load_model(model).report(draft)
    stdout().print(str(out), style="bold", soft_wrap=True)
