"""Files of a survey in waves: questions go out, answers come back, and everything in them is public."""

import secrets
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import InputError
from sfumato.local.answers import Answers
from sfumato.local.forms import Sheet, answers_from
from sfumato.local.randomisers import ThresholdRandomiser
from sfumato.local.waves import Survey
from sfumato.methods.inputs import fit_source
from sfumato.methods.label_sir import LabelPrivateSIR
from sfumato.people import keys
from sfumato.privacy.noise import Noise
from sfumato.typing import FloatArray, IntArray

HEADER = b"sfumato.sheet"


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """All answers so far: people's features, in the order of `answers`; the last wave that was answered."""

    last: Sheet
    features: tuple[str, ...]
    x: FloatArray
    answers: Answers


def is_sheet(table: Any) -> bool:
    """Whether a table has the header of a survey in waves."""
    return HEADER in (table.schema.metadata or {})


def read_answers(tables: Sequence[Any]) -> Answered:
    """The answers of one survey from any number of files; a person who is in two of them is refused."""
    sheets = [_sheet(table, answered=True) for table in tables]
    last = max(sheets, key=lambda sheet: sheet.wave)
    if any(_same(sheet) != _same(last) for sheet in sheets):
        raise InputError("answers: these files are of different surveys; give those of one.")
    if any(table.column_names != tables[0].column_names for table in tables):
        raise InputError("answers: these files have different columns; give those of one survey.")
    ids = [key for table in tables for key in _ids(table, last)]
    if len(set(ids)) < len(ids):
        raise InputError("answers: somebody is in two of these files, and a person answers once; leave one out.")
    whole = pa.concat_tables([table.replace_schema_metadata(None) for table in tables], promote_options="permissive")
    form = ThresholdRandomiser(last.survey.epsilon, whole.column(last.threshold).to_numpy())
    rehearsal = any(sheet.rehearsal for sheet in sheets)
    answers = answers_from(whole.column(last.response).to_numpy(), form, rehearsal)
    public = whole.drop_columns([last.response, last.person, last.threshold])
    return Answered(last, tuple(public.column_names), _features(public), answers)


def begin(table: Any, response: str, person: str | None, key: str | None, **plan: Any) -> Sheet:
    """The sheet of a new survey of the people of a table, which is without their labels."""
    if person is not None and person not in table.column_names:
        raise InputError(f"person: there is no column {person!r}; check the name, or leave it out.")
    if len(table) == 0:
        raise InputError("data has no row; give a row for each person.")
    survey = Survey.plan(n_people=len(table), key=secrets.token_hex(8) if key is None else key, **plan)
    id_column, threshold = person or _fresh("person", table, response), _fresh("threshold", table, response)
    return Sheet(survey, 0, response, id_column, threshold, len(table), numbered=person is None)


def next_wave(table: Any, sheet: Sheet, answered: Answered | None) -> tuple[Any, Sheet]:
    """The questions of the next wave that has people, as a table with its header."""
    if len(table) != sheet.n_people:
        raise InputError(f"data must have the {sheet.n_people} people of the first wave, in the same order.")
    if sheet.numbered:
        table = table.append_column(sheet.person, pa.array(np.arange(len(table))))
    ids = _ids(table, sheet)
    if len(set(ids)) < len(ids):
        raise InputError("person: some ids are there twice, and a person answers once; keep one row of each.")
    wave, begun = sheet.survey.wave_of(ids), -1 if answered is None else answered.last.wave
    left = wave[wave > begun]
    if not len(left):
        raise InputError("answers: all waves have been answered; go on with `sfumato local fit`.")
    number = int(left.min())
    x = _features(table.drop_columns([sheet.person]))
    rows = np.flatnonzero(wave == number)
    asked, answers = (x[:0], None) if answered is None else (answered.x, answered.answers)
    if asked.shape[1] != x.shape[1]:
        raise InputError("data must have the columns that it had in the first wave.")
    form = sheet.survey.ask(number, x[rows], asked, answers)
    questions = table.take(rows).append_column(sheet.threshold, pa.array(form.thresholds))
    return questions, replace(sheet, wave=number, answered=False, rehearsal=False)


def answer(questions: Any, labels: Any, most: float | None, noise: Noise) -> tuple[Any, Sheet]:
    """The answers of the people of a wave whose labels are here, as a table with its header."""
    sheet = _sheet(questions, answered=False)
    if most is not None and sheet.survey.epsilon > most:
        raise InputError(f"most: an answer costs epsilon {sheet.survey.epsilon:g}, more than {most:g}; do not answer.")
    asked = _ids(questions, sheet)
    if len(set(asked)) < len(asked) or (sheet.survey.wave_of(asked) != sheet.wave).any():
        raise InputError("questions: some people are not in this wave, or asked twice; do not answer.")
    rows, places = _matched(asked, _own_ids(labels, sheet))
    form = ThresholdRandomiser(sheet.survey.epsilon, questions.column(sheet.threshold).to_numpy()[rows])
    column = labels.column(sheet.response).take(places)
    if column.null_count:
        raise InputError(f"response: column {sheet.response!r} has missing values; a device without one cannot answer.")
    told = form.randomize(column.to_numpy(), noise)
    replies = questions.take(rows).append_column(sheet.response, pa.array(told.values))
    return replies, replace(sheet, answered=True, rehearsal=told.rehearsal)


def write(table: Any, sheet: Sheet, path: Path) -> None:
    """A table with its header."""
    pq.write_table(table.replace_schema_metadata({HEADER: sheet.to_text()}), path)


def _sheet(table: Any, *, answered: bool) -> Sheet:
    sheet = Sheet.from_text((table.schema.metadata or {}).get(HEADER))
    expected = [sheet.person, sheet.threshold, *([sheet.response] if answered else [])]
    if sheet.answered != answered or not set(expected) <= set(table.column_names):
        kind = "answers" if answered else "questions"
        raise InputError(f"{kind}: this file does not hold {kind} of a wave; check which file is which.")
    return sheet


def _same(sheet: Sheet) -> Sheet:
    """What sheets of one survey agree in."""
    return replace(sheet, wave=0, rehearsal=False)


def _ids(table: Any, sheet: Sheet) -> list[Hashable]:
    if sheet.person not in table.column_names:
        raise InputError(f"person: there is no column {sheet.person!r}; give the table with the ids of the survey.")
    return keys(table.column(sheet.person).to_pylist(), "person")


def _own_ids(labels: Any, sheet: Sheet) -> list[Hashable]:
    """Whose labels these are."""
    if sheet.response not in labels.column_names:
        raise InputError(f"response: there is no column {sheet.response!r} in labels; check the name.")
    if not sheet.numbered:
        own = _ids(labels, sheet)
    elif len(labels) == sheet.n_people:
        own = list(range(len(labels)))
    else:
        raise InputError(f"labels must have all {sheet.n_people} rows, as people have no ids; ask with --person.")
    if len(set(own)) < len(own):
        raise InputError("labels: some ids are there twice, and a person answers once; keep one row of each.")
    return own


def _matched(asked: list[Hashable], own: list[Hashable]) -> tuple[IntArray, IntArray]:
    """Rows of the questions that can be answered, and where their labels are."""
    place = {key: row for row, key in enumerate(own)}
    rows = np.array([row for row, key in enumerate(asked) if key in place], dtype=np.int64)
    if not len(rows):
        raise InputError("labels: nobody here is asked in this wave; wait for the next one.")
    return rows, np.array([place[asked[row]] for row in rows.tolist()], dtype=np.int64)


def _features(table: Any) -> FloatArray:
    return fit_source(LabelPrivateSIR(), table, np.zeros(len(table)), None).pooled().x


def _fresh(name: str, table: Any, response: str) -> str:
    while name in (*table.column_names, response):
        name += "_"
    return name
