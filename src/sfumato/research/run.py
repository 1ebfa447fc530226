"""Running a study: replications in parallel, each kept in a file of JSON lines so that a run can be resumed."""

import json
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from sfumato.errors import InputError
from sfumato.research import he_tables, real_data, xia_tables
from sfumato.research.study import Mark, Row, Study, Summary, Values, compare, repeated, summarise

STUDIES = {study.name: study for study in (*xia_tables.STUDIES, *real_data.STUDIES, *he_tables.STUDIES)}
POINT = "|"
"""In the name of a column: one point of a curve, which belongs in the picture and not in the table."""
SYMBOLS: dict[Mark, str] = {"same": "✓", "lower": "↓", "higher": "✗"}
LEGEND = "Of a printed value: ✓ measured the same within two standard errors, ↓ lower, ✗ higher, so not reached."
Done = dict[tuple[str, int], Values]
"""Measured values by row and seed."""


def rounds(replications: int) -> Iterator[int]:
    """So many replications of everything, then twice as many, until all: whoever stops early has something of all.

    >>> list(rounds(11))
    [1, 2, 4, 8, 11]
    """
    wanted = 1
    while wanted < replications:
        yield wanted
        wanted *= 2
    yield replications


def table_in(folder: Path | None, study: Study) -> Path | None:
    """The table of a study of real data in a folder of such tables: the study's name, as CSV or Parquet."""
    named = [] if folder is None else [folder / f"{study.name}{ending}" for ending in (".csv", ".parquet")]
    return next((path for path in named if path.is_file()), None)


def find(name: str) -> Study:
    """The study of that name."""
    if name not in STUDIES:
        raise InputError(f"there is no study {name!r}; choose among {', '.join(STUDIES)}.")
    return STUDIES[name]


def replicate(study: str, row: int, seed: int, data: str | None = None) -> Values:
    """One replication, in whatever process."""
    chosen = STUDIES[study]
    given = (data,) if chosen.data else ()
    return chosen.run(*given, *chosen.rows[row].arguments, seed)


def check_data(study: Study, data: Path | None) -> str | None:
    """The path of the study's table; refused if it is missing, or not needed."""
    if study.data and (data is None or not data.is_file()):
        raise InputError(f"data must be the path of a file with {study.data}; the package does not ship it.")
    if data is not None and not study.data:
        raise InputError(f"data is not needed: {study.name} simulates its own; leave it out.")
    return None if data is None else str(data)


def load(path: Path, study: Study) -> Done:
    """Replications already in the file, but for lines cut short by an interruption and rows whose arguments changed."""
    done: Done = {}
    arguments = {row.label: list(row.arguments) for row in study.rows}
    if not path.exists():
        return done
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            kept = json.loads(line)
        except ValueError:
            continue
        if kept.get("study") != study.name or kept["row"] not in arguments:
            continue
        if kept.get("arguments", arguments[kept["row"]]) == arguments[kept["row"]]:
            done[kept["row"], kept["seed"]] = kept["values"]
    return done


def execute(
    study: Study, replications: int, path: Path, processes: int | None = None, data: Path | None = None
) -> Iterator[Done]:
    """Run what the file does not hold yet; yields the results so far after each replication, at least once."""
    table, done = check_data(study, data), load(path, study)
    todo = [
        (index, seed)
        for seed in range(replications)
        for index, row in enumerate(study.rows)
        if (row.label, seed) not in done
    ]
    yield done
    cut_short = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" if cut_short else "")  # or the next line would be lost with the broken one
        for index, seed, values in _measured(study, todo, processes, table):
            row = study.rows[index]
            kept = {"study": study.name, "row": row.label, "arguments": row.arguments, "seed": seed, "values": values}
            file.write(json.dumps(kept) + "\n")
            file.flush()
            done[row.label, seed] = values
            yield done


def _measured(
    study: Study, todo: list[tuple[int, int]], processes: int | None, data: str | None
) -> Iterator[tuple[int, int, Values]]:
    """Replications as they finish; with one process in this one, which leaves nothing behind when it is killed."""
    if processes == 1:
        with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
            for index, seed in todo:
                yield index, seed, replicate(study.name, index, seed, data)
        return
    with ProcessPoolExecutor(processes, initializer=_quiet) as pool:
        jobs: dict[Future[Values], tuple[int, int]] = {
            pool.submit(replicate, study.name, index, seed, data): (index, seed) for index, seed in todo
        }
        try:
            for job in as_completed(jobs):
                yield *jobs[job], job.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Results:
    """A study, and what was measured of it so far."""

    study: Study
    done: Done

    @cached_property
    def summaries(self) -> dict[tuple[str, str], Summary]:
        """By row and column."""
        gathered: dict[tuple[str, str], list[float]] = {}
        for (label, _), values in sorted(self.done.items()):
            for column, value in values.items():
                gathered.setdefault((label, column), []).append(value)
        return {key: summarise(values, self.study.statistic) for key, values in gathered.items()}

    @property
    def printed(self) -> list[str]:
        """Names of the printed columns, in order."""
        return list(dict.fromkeys(name for row in self.study.rows for name in row.printed))

    @property
    def measured(self) -> list[str]:
        """Names of the measured columns, in order, but for points of curves."""
        return list(dict.fromkeys(column for _, column in self.summaries if POINT not in column))

    def of(self, row: Row) -> dict[str, Summary]:
        """The summaries of a row, by column."""
        return {column: one for (label, column), one in self.summaries.items() if label == row.label}

    @cached_property
    def marks(self) -> dict[tuple[str, str], Mark]:
        """How each printed value compares with the measured column that repeats it, by row and printed column.

        Values of a study of a user's own table were printed for another one: they are not compared.
        """
        found: dict[tuple[str, str], Mark] = {}
        for row in () if self.study.data else self.study.rows:
            measured = self.of(row)
            for name, value in row.printed.items():
                column = repeated(name, measured)
                mark = None if column is None else compare(value, measured[column])
                if mark is not None:
                    found[row.label, name] = mark
        return found

    @property
    def complete(self) -> int:
        """Replications, from the first on, that every row has."""
        seeds, rows = range(len(self.done) + 1), self.study.rows
        return min((next(seed for seed in seeds if (row.label, seed) not in self.done) for row in rows), default=0)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows, as text; printed values with their marks."""
        symbols = {at: f" {SYMBOLS[mark]}" for at, mark in self.marks.items()}
        rows = []
        for row in self.study.rows:
            printed = {name: f"{value:.3f}{symbols.get((row.label, name), '')}" for name, value in row.printed.items()}
            found = self.of(row)
            shown = (printed.get(name, "") for name in self.printed)
            rows.append([row.label, *shown, *(str(found.get(column, "")) for column in self.measured)])
        return ["row", *(f"printed {name}" for name in self.printed), *self.measured], rows


def markdown(results: Results, command: str, picture: str, remarks: Sequence[str] = ()) -> str:
    """A page for the documentation: what to know, the command that made it, the picture's file, and the table."""
    study, (header, rows) = results.study, results.table()
    counts = sorted({sum(label == row.label for label, _ in results.done) for row in study.rows})
    lines = [f"# {study.title}", "", study.note, "", *(f"* {remark}" for remark in remarks), *([""] if remarks else [])]
    lines += [
        f"`{command}`: {study.statistic} over {' to '.join(map(str, counts))} replications ± bootstrap standard error.",
        "",
    ]
    shown = "Every row of the table below as dots on one axis, or as curves."
    shown = shown if study.picture is None else "The points of the study along the directions of every method."
    lines += [f"![{shown}]({picture})", ""]
    lines += [LEGEND, ""] if results.marks else []
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def _quiet(*_: Any) -> None:
    threadpool_limits(1)
    warnings.simplefilter("ignore")
