"""`sfumato local`: labels randomised by owners (randomize, answer), an analyst who sees nothing else (ask, fit)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.output import new_file
from sfumato.cli.results import weight_lines, write_lines
from sfumato.cli.terminal import UNTOLD, command_group, note, show_progress, stdout
from sfumato.errors import InputError
from sfumato.study import read_count, split_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sfumato.local.answers import Randomiser
    from sfumato.sources.table import Kind

FORM = b"sfumato.form"
local_app = command_group("Private labels, randomised where they are: the analyst never sees a true one.")


OTHER_ENDINGS = (".csv", ".tsv", ".txt", ".arrow", ".feather", ".xlsx", ".json")


def _check_parquet(out: Path) -> None:
    """Refuse a name that promises another format."""
    if out.suffix.lower() in OTHER_ENDINGS:
        raise InputError(f"out: answers are kept as Parquet, with what was asked; name it {out.stem}.parquet.")


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
    _check_parquet(out)
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


@local_app.command()
def ask(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Feather file with public features of all people.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Parquet file with the questions of the next wave.")],
    answers: Annotated[list[Path] | None, typer.Argument(help="All answers so far; none for the first wave.")] = None,
    response: Annotated[str | None, typer.Option("--response", "-y", help="Name of the private number.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy of each person's answer; 1 if left out.")] = None,
    waves: Annotated[int | None, typer.Option(help="Number of waves, 2 to 20; 6 if left out.")] = None,
    edges: Annotated[str | None, typer.Option(help="Public values between which y lies, as 0,50000,100000.")] = None,
    person: Annotated[str | None, typer.Option(help="Column with ids; the number of the row if left out.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Public text that says who is in which wave; drawn if left out.")
    ] = None,
) -> None:
    """Ask the people of the next wave, each once: is your y at least t? t follows from the answers so far.

    sfumato local ask people.csv -y income --waves 6 --out wave1.parquet
    """
    _check_parquet(out)
    with new_file(out) as draft, show_progress("placing the questions"):
        from sfumato.cli import sheets

        if answers:
            if any(option is not None for option in (response, epsilon, waves, edges, person, key)):
                raise InputError("answers carry the plan of the survey; leave its options out after the first wave.")
            answered = sheets.read_answers([_read(path) for path in answers])
            table, sheet = _read(data, keep=lambda name: name != answered.last.response), answered.last
        elif response is None:
            raise InputError("response must be given for the first wave; name the private number, as -y income.")
        else:
            answered, known = None, None if edges is None else _numbers("edges", edges)
            cost, count = 1.0 if epsilon is None else epsilon, 6 if waves is None else waves
            table = _read(data, keep=lambda name: name != response)
            sheet = sheets.begin(table, response, person, key, epsilon=cost, waves=count, edges=known)
        questions, sheet = sheets.next_wave(table, sheet, answered)
        sheets.write(questions, sheet, draft)
    purpose = "where y lies" if sheet.wave < sheet.survey.search else "about directions"
    of = f"wave {sheet.wave + 1} of {sheet.survey.n_waves} ({purpose})"
    stdout().print(f"{of}: {len(questions):,} people asked, epsilon {sheet.survey.epsilon:g} each, in {out}.")


@local_app.command()
def answer(
    questions: Annotated[Path, typer.Argument(help="The file that `sfumato local ask` wrote.")],
    labels: Annotated[Path, typer.Argument(help="File with the private number, of one person or of many.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Parquet file with randomised answers: all that may leave.")],
    most: Annotated[float | None, typer.Option(help="Refuse if an answer costs more than this epsilon.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seeded noise, for a rehearsal: NOT private.")] = None,
) -> None:
    """Answer a wave's question on the device that holds the number; who is in another wave is not asked.

    sfumato local answer wave1.parquet me.csv --out answer1.parquet
    """
    _check_parquet(out)
    with new_file(out) as draft, show_progress("randomising the answers"):
        from sfumato.cli import sheets
        from sfumato.local.forms import Sheet
        from sfumato.privacy.parameters import noise_of

        asked = _read(questions)
        sheet = Sheet.from_text((asked.schema.metadata or {}).get(sheets.HEADER))
        own = _read(labels, {sheet.response: "number"}, lambda name: name in (sheet.response, sheet.person))
        replies, sheet = sheets.answer(asked, own, most, noise_of(seed))
        sheets.write(replies, sheet, draft)
    if sheet.rehearsal:
        note("the noise was seeded: these answers protect nobody.")
    stdout().print(
        f"{len(replies):,} answers to wave {sheet.wave + 1}, epsilon {sheet.survey.epsilon:g} each, in {out}."
    )


@local_app.command(name="fit")
def fit_answers(
    answers: Annotated[list[Path], typer.Argument(help="What `randomize` wrote, or the answers of all waves.")],
    directions: Annotated[str, typer.Option(help="Number of directions (slices), or 'auto'.")] = "auto",
    active: Annotated[str | None, typer.Option(help="Number of features to keep, or 'auto'; all if left out.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file for directions or coefficients.")] = None,
) -> None:
    """Fit randomised labels: directions from slices, classes or waves, a sparse regression from numbers."""
    with show_progress("fitting the answers"):
        fitted, features = _fitted(answers, directions, active)
    is_sir = hasattr(fitted, "directions_")
    rows = fitted.directions_ if is_sir else fitted.coef_[None, :]
    headings = [f"direction_{i + 1}" if is_sir else "coefficient" for i in range(len(rows))]
    if out is not None:
        with new_file(out) as draft:
            write_lines(draft, [["feature", *headings], *weight_lines(features, range(len(features)), rows)])
    from sfumato.cli.show import show_weights

    show_weights(stdout(), features, rows, headings, most=20)
    note(UNTOLD)
    stdout().print(fitted.ledger_.guarantee, soft_wrap=True)


def _fitted(paths: list[Path], directions: str, active: str | None) -> tuple[Any, list[str]]:
    from sfumato.cli import sheets
    from sfumato.local.forms import answers_from, from_text
    from sfumato.local.randomisers import SliceRandomiser
    from sfumato.methods.label_iht import LabelPrivateIHT
    from sfumato.methods.label_sir import LabelPrivateSIR

    path, tables = paths[0], [_read(path) for path in paths]
    kept = None if active is None else read_count(active, "active")
    if len(tables) > 1 or sheets.is_sheet(tables[0]):
        answered = sheets.read_answers(tables)
        index = LabelPrivateSIR(n_directions=read_count(directions, "directions"), n_active=kept)
        return index.fit(answered.x, answered.answers), list(answered.features)
    table = tables[0]
    form, response, rehearsal = from_text((table.schema.metadata or {}).get(FORM))
    if response not in table.column_names:
        raise InputError(f"answers: {path} has lost its column {response!r}; randomise the labels again.")
    answers = answers_from(table.column(response).to_numpy(), form, rehearsal)
    x = table.drop_columns([response])
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


def _read(
    path: Path, kinds: "Mapping[str, Kind] | None" = None, keep: "Callable[[str], bool]" = lambda name: True
) -> Any:
    """A whole file, or the columns to keep; what its private column is read as does not hang on what is in it."""
    from sfumato.sources.formats import open_tables

    if not path.is_file():
        raise InputError(f"path: {path} does not name a file; check the name.")
    table = open_tables([path])[0]
    names = [name for name in table.names if keep(name)]
    return table.whole(kinds or {}, names or None)
