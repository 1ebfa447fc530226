"""`sfumato transform` and `sfumato report`: what can be done with a model file."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.output import new_file
from sfumato.cli.progress import working
from sfumato.cli.terminal import note, stdout
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.files import Columns

ROWS = 2**15


def transform(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or Feather file, or a pattern.")],
    model: Annotated[Path, typer.Option(help="The model.json of a fit.")],
    out: Annotated[Path, typer.Option(help="Where to: .csv, .parquet, .arrow or .feather.", dir_okay=False)],
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")] = False,
) -> None:
    """Coordinates of records along the directions of a model, one row per record.

    A model of canonical pairs (cca) gives those of both sets of columns, one of declared classes (lda) also the class
    that each record most likely has.

    They are values of the records themselves, so they are not private: keep them where the data are.
    """
    with new_file(out) as draft, working("loading the library") as bar:
        from sfumato.files import open_tables
        from sfumato.files.names import find
        from sfumato.model import load_inputs, load_model

        estimator, inputs = load_model(model), load_inputs(model)
        sides = [side.features() for side in (inputs, inputs.second) if side is not None]
        tables = open_tables(find(data))
        for table in tables:
            for columns in sides:
                columns.check(table)
        bar.say("projecting the records")
        _project(estimator, sides, tables, draft, drop_missing)
    stdout().print(str(out), style="bold", soft_wrap=True)
    note(f"{out} holds values of the records and is not private; keep it where the data are.")


def _project(estimator: Any, sides: "list[Columns]", tables: list[Any], draft: Path, drop: bool) -> None:
    """Write the coordinates of every record (of canonical pairs both), and its likeliest class or mean response."""
    import numpy as np
    import pyarrow as pa

    from sfumato.cli.writer import open_writer

    sets = ("",) if len(sides) == 1 else ("first_", "second_")
    names = [f"{name}direction_{k + 1}" for name in sets for k in range(len(estimator.directions_))]
    schema = pa.schema([(name, pa.float64()) for name in names])
    predicts = hasattr(estimator, "predict")
    kind = ("class", pa.string()) if getattr(estimator, "classes", None) is not None else ("predicted", pa.float64())
    if predicts:
        schema = schema.append(pa.field(*kind))
    with open_writer(draft, schema) as writer:
        for encoded in _encoded(sides, tables, drop):
            kept = [pa.table(list(x.T), names=list(side.names)) for x, side in zip(encoded, sides, strict=True)]
            found = estimator.transform(*kept)
            columns = list((found if len(sides) == 1 else np.hstack(found)).T)
            if predicts:
                found = estimator.predict(*kept)
                columns.append(pa.array(found if kind[0] == "predicted" else found.astype(str)))
            writer.write_table(pa.table(columns, schema=schema))


def _encoded(sides: "list[Columns]", tables: list[Any], drop: bool) -> Iterator[list[Any]]:
    """The complete records, chunk by chunk: one array for each set of columns."""
    import numpy as np

    wanted = [name for columns in sides for name in columns.features]
    kinds = {name: kind for columns in sides for name, kind in columns.kinds.items()}
    for table in tables:
        for part in range(table.parts()):
            for batch in table.batches(part, wanted, ROWS, kinds):
                encoded = [columns.encode(batch) for columns in sides]
                complete = np.isfinite(np.hstack(encoded)).all(axis=1)
                if not complete.all() and not drop:
                    raise InputError("data: some rows have missing values; impute them, or add --drop-missing.")
                if complete.any():
                    yield [x[complete] for x in encoded]


def report(
    model: Annotated[Path, typer.Argument(help="The model.json of a fit.")],
    out: Annotated[Path, typer.Option(help="The report to write.", dir_okay=False)] = Path("report.html"),
) -> None:
    """Write the report of a model file: one HTML page with released values only, to look at and to send."""
    with new_file(out) as draft, working("loading the library"):
        from sfumato.model import load_model

        load_model(model).report(draft)
    stdout().print(str(out), style="bold", soft_wrap=True)
