"""What a fit leaves behind (model, directions, report), and what is done with it: `transform`, `report`, `compare`."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.options import Decimal
from sfumato.cli.output import new_file
from sfumato.cli.terminal import note, show_progress, stdout
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.report import Document
    from sfumato.sources.columns import Columns
    from sfumato.sources.files import FileSource

RESULTS = {
    "report.html": "the report: open it in a browser",
    "model.json": "the model, for sfumato transform",
    "directions.csv": "the directions, in the units of the table",
}


def write_model(estimator: Any, source: "FileSource", response: str | None, draft: Path) -> None:
    """Write the model and the directions."""
    from sfumato.model import save_model

    save_model(estimator, draft / "model.json", response=response, columns=source.columns, second=source.second)
    lines = _pairs(estimator) if hasattr(estimator, "y_weights_") else _directions(estimator)
    write_lines(draft / "directions.csv", lines)


def write_report(shown: "Document", draft: Path) -> None:
    """Write the report."""
    from sfumato.report.html import render

    (draft / "report.html").write_text(render(shown), encoding="utf-8")


def write_lines(path: Path, lines: Iterable[Sequence[str]]) -> None:
    """Write a CSV file, its headings first."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(lines)


def _directions(estimator: Any) -> Iterator[list[str]]:
    """One line for each feature; a sparse method has those that it kept."""
    from sfumato.report.words import feature_names, kept_features

    names, chosen = feature_names(estimator), kept_features(estimator)
    places = range(len(names)) if chosen is None else chosen.tolist()
    yield ["feature", *_headings(("direction", "standard_error"), len(estimator.directions_))]
    yield from weight_lines(names, places, estimator.directions_, estimator.standard_errors_)


def _pairs(estimator: Any) -> Iterator[list[str]]:
    """One line for each feature of either set: its canonical weights, and the directions that transform uses."""
    from sfumato.report.words import feature_names, second_names

    x, y = feature_names(estimator), second_names(estimator)
    yield ["set", "feature", *_headings(("weight", "direction"), len(estimator.directions_))]
    for line in weight_lines(x, range(len(x)), estimator.x_weights_, estimator.directions_):
        yield ["first", *line]
    for line in weight_lines(y, range(len(y)), estimator.y_weights_, estimator.y_directions_):
        yield ["second", *line]


def _headings(words: tuple[str, ...], n_directions: int) -> list[str]:
    return [f"{word}_{i}" for i in range(1, n_directions + 1) for word in words]


def weight_lines(names: Sequence[str], places: Iterable[int], *tables: Any) -> Iterator[list[str]]:
    """The name of each feature and what it weighs, to the last bit."""
    rows = [row for together in zip(*tables, strict=True) for row in together]
    for j in places:
        yield [_as_text(names[j]), *(repr(float(row[j])) for row in rows)]


def _as_text(name: str) -> str:
    """A name as a cell that no spreadsheet takes for a formula.

    >>> _as_text("=1+1"), _as_text("age")
    ("'=1+1", 'age')
    """
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


ROWS = 2**15


def transform(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or Feather file, or a pattern.")],
    model: Annotated[Path, typer.Option(help="The model.json of a fit.")],
    out: Annotated[Path, typer.Option(help="Where to: .csv, .parquet, .arrow or .feather.", dir_okay=False)],
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")] = False,
    decimal: Decimal = ".",
) -> None:
    """Coordinates of records along the directions of a model, one row per record.

    A model of canonical pairs (cca) gives those of both sets of columns. One with a picture of the response gives also
    the response to expect, one of declared classes (also lda) the class that each record most likely has.

    They are values of the records themselves, so they are not private: keep them where the data are.
    """
    with new_file(out) as draft, show_progress("loading the library") as bar:
        from sfumato.model import load_inputs, load_model
        from sfumato.sources.formats import open_tables
        from sfumato.sources.names import find

        estimator, inputs = load_model(model), load_inputs(model)
        used = (inputs, inputs.second) if hasattr(estimator, "y_weights_") else (inputs,)
        sides = [side.features() for side in used if side is not None]
        tables = open_tables(find(data), decimal)
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

    sets = ("",) if len(sides) == 1 else ("first_", "second_")
    names = [f"{name}direction_{k + 1}" for name in sets for k in range(len(estimator.directions_))]
    schema = pa.schema([(name, pa.float64()) for name in names])
    predicts = hasattr(estimator, "predict")  # discriminants of declared classes, and fits that bought a picture
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
                told = found if kind[0] == "predicted" else list(map(_as_text, found.astype(str)))
                columns.append(pa.array(told))
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
    with new_file(out) as draft, show_progress("loading the library"):
        from sfumato.model import load_model

        load_model(model).report(draft)
    stdout().print(str(out), style="bold", soft_wrap=True)


def compare(
    first: Annotated[Path, typer.Argument(help="The model.json of a fit.")],
    second: Annotated[Path, typer.Argument(help="That of another fit of the same columns.")],
) -> None:
    """How far the directions of two fits are apart, how far errors alone would bring them, and what each spent.

    From released values alone: comparing costs nothing.
    """
    with show_progress("loading the library"):
        from sfumato.cli.show import show_pairs
        from sfumato.model import load_model
        from sfumato.report.agreement import compare_fits

        found = compare_fits(load_model(first), load_model(second))
    stdout().print(found.sentence, soft_wrap=True)
    show_pairs(stdout(), found.rows())


def open_writer(path: Path, schema: Any) -> Any:
    """A writer with ``write_table``, to be used in a ``with`` block."""
    import pyarrow as pa
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq

    match path.suffix.lower():
        case ".csv":
            return pcsv.CSVWriter(path, schema)
        case ".parquet":
            return pq.ParquetWriter(path, schema)
        case ".arrow" | ".feather":
            return pa.ipc.new_file(path, schema)
    raise InputError(f"out: the ending of {path.name} tells no format; use .csv, .parquet, .arrow or .feather.")
