"""`sfumato local`: labels randomised by their owners (randomize), and the analyst who sees nothing else (fit)."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.output import new_file
from sfumato.cli.terminal import note, show_progress, stdout
from sfumato.errors import InputError
from sfumato.study.options import read_count, split_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sfumato.local.answers import Randomiser
    from sfumato.sources.table import Kind

FORM = b"sfumato.form"
local_app = typer.Typer(help="Private labels, randomised where they are: the analyst never sees a true one.")


@local_app.command()
def randomize(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Feather file with the label and public features.")],
    response: Annotated[str, typer.Option("--response", "-y", help="Column with the private label.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Parquet file with randomised labels: all that may leave.")],
    epsilon: Annotated[float, typer.Option(help="Privacy of each person's answer.")] = 1.0,
    delta: Annotated[float, typer.Option(help="0 for a pure guarantee.")] = 0.0,
    edges: Annotated[str | None, typer.Option(help="Report the slice: public edges, as -1,0,1.")] = None,
    classes: Annotated[list[str] | None, typer.Option(help="Report the class: public classes, as a,b,c.")] = None,
    within: Annotated[str | None, typer.Option("--range", help="Report the number: public range, as 0,100.")] = None,
    mechanism: Annotated[str, typer.Option(help="auto, gaussian, laplace or two-point (with --range).")] = "auto",
    seed: Annotated[int | None, typer.Option(min=0, help="Seeded noise, for a rehearsal: NOT private.")] = None,
) -> None:
    """Randomise the label of every row, on the device that holds it.

    sfumato local randomize me.csv -y income --edges 30000,60000 --epsilon 2 --out answer.parquet
    """
    with new_file(out) as draft, show_progress("randomising the labels"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        from sfumato.local.forms import to_text
        from sfumato.privacy.parameters import noise_of

        form = _form(epsilon, delta, edges, split_names(classes), within, mechanism)
        table = _read(data, {response: "text" if classes else "number"})
        if response not in table.column_names:
            raise InputError(f"response: there is no column {response!r} in {data}; check the name.")
        answers = form.randomize(_labels(table, response), noise_of(seed))
        place = table.column_names.index(response)
        randomised = table.set_column(place, response, pa.array(answers.values))
        pq.write_table(randomised.replace_schema_metadata({FORM: to_text(answers, response)}), draft)
    if answers.rehearsal:
        note("the noise was seeded: these answers protect nobody.")
    stdout().print(f"{len(answers):,} labels randomised ({form.question}), epsilon {epsilon:g} each, in {out}.")


@local_app.command(name="fit")
def fit_answers(
    answers: Annotated[Path, typer.Argument(help="The file that `sfumato local randomize` wrote.")],
    directions: Annotated[str, typer.Option(help="Number of directions (slices), or 'auto'.")] = "auto",
    active: Annotated[str | None, typer.Option(help="Number of features to keep, or 'auto'; all if left out.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file for directions or coefficients.")] = None,
) -> None:
    """Fit randomised labels: directions from slices or classes, a sparse regression from numbers."""
    with show_progress("fitting the answers"):
        fitted, features = _fitted(answers, directions, active)
    is_sir = hasattr(fitted, "directions_")
    rows = fitted.directions_ if is_sir else fitted.coef_[None, :]
    header = ["feature", *(f"direction_{i + 1}" if is_sir else "coefficient" for i in range(len(rows)))]
    if out is not None:
        with new_file(out) as draft, draft.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(header)
            writer.writerows([name, *(repr(float(row[j])) for row in rows)] for j, name in enumerate(features))
    _show(header, features, rows)
    stdout().print(fitted.ledger_.guarantee, soft_wrap=True)


def _fitted(path: Path, directions: str, active: str | None) -> tuple[Any, list[str]]:
    from sfumato.local.forms import answers_from, from_text
    from sfumato.local.slices import SliceRandomiser
    from sfumato.methods.label_iht import LabelPrivateIHT
    from sfumato.methods.label_sir import LabelPrivateSIR

    table = _read(path)
    form, response, rehearsal = from_text((table.schema.metadata or {}).get(FORM))
    if response not in table.column_names:
        raise InputError(f"answers: {path} has lost its column {response!r}; randomise the labels again.")
    answers = answers_from(table.column(response).to_numpy(), form, rehearsal)
    x = table.drop_columns([response])
    kept = None if active is None else read_count(active, "active")
    if isinstance(form, SliceRandomiser):
        estimator: Any = LabelPrivateSIR(n_directions=read_count(directions, "directions"), n_active=kept)
    else:
        estimator = LabelPrivateIHT(n_active="auto" if kept is None else kept)
    return estimator.fit(x, answers), list(x.column_names)


def _form(
    epsilon: float, delta: float, edges: str | None, classes: Any, within: str | None, mechanism: str
) -> "Randomiser":
    from sfumato.local import NumberRandomiser, SliceRandomiser

    if sum(option is not None for option in (edges, classes, within)) != 1:
        raise InputError("edges, classes or range must be given, one of them; for instance --edges 0.")
    if within is not None:
        ends = _numbers("range", within)
        if len(ends) != 2:
            raise InputError(f"range must be two numbers, as 0,100, got {within!r}.")
        return NumberRandomiser(ends[0], ends[1], epsilon, delta, mechanism)
    return SliceRandomiser(epsilon, None if edges is None else _numbers("edges", edges), classes)


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{name} must be numbers separated by commas, got {text!r}.") from None


def _labels(table: Any, response: str) -> Any:
    column = table.column(response)
    if column.null_count:
        raise InputError(f"response: column {response!r} has missing values; a device without a label has no answer.")
    try:
        return column.to_numpy()
    except UnicodeDecodeError:  # its text would quote the bytes
        raise InputError(f"response: column {response!r} has text that is not UTF-8; write it as UTF-8.") from None


def _read(path: Path, kinds: "Mapping[str, Kind] | None" = None) -> Any:
    """A whole file; what its private column is read as does not hang on what is in it."""
    from sfumato.sources.formats import open_tables

    if not path.is_file():
        raise InputError(f"path: {path} does not name a file; check the name.")
    return open_tables([path])[0].whole(kinds or {})


def _show(header: list[str], features: list[str], rows: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False)
    for name in header:
        shown.add_column(name, justify="left" if name == "feature" else "right")
    order = sorted(range(len(features)), key=lambda j: -abs(rows[:, j]).max())
    for j in order[:20]:
        if abs(rows[:, j]).max() > 0:
            shown.add_row(Text(features[j]), *(f"{row[j]:.3f}" for row in rows))
    stdout().print(shown)
