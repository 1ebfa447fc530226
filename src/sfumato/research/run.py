"""Running a study: replications in parallel, each kept in a file of JSON lines so that a run can be resumed."""

import json
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from sfumato.errors import InputError
from sfumato.research import he_tables, real_data, xia_tables
from sfumato.research.study import Study, Summary, Values, summarise

STUDIES = {study.name: study for study in (*xia_tables.STUDIES, *real_data.STUDIES, *he_tables.STUDIES)}
ELSEWHERE = {
    "DP-SIR, both versions, figures 1 and 2; first version, Table 3": "not reproducible here: no supermarket data",
    "FSIR, figure 1": "reproduced: the tracing attack, sfumato audit trace",
    "FSIR, figure 5": "not reproducible here: the human-activity records cannot be had, only means of them",
    "DP-GEP": "its experiments are in an appendix that is not at hand; its methods are rows of DP-SIR's tables",
    "DP-IHT": "prints no table and no figure; LabelPrivateIHT is measured in benchmarks/results",
}
"""Tables and figures of the papers that are no study, and why."""
POINT = "|"
"""In the name of a column: one point of a curve, which belongs in the picture and not in the table."""
Done = dict[tuple[str, int], Values]
"""Measured values by row and seed."""


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
    """Replications already in the file; a line cut short by an interruption is ignored."""
    done: Done = {}
    if not path.exists():
        return done
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            kept = json.loads(line)
        except ValueError:
            continue
        if kept.get("study") == study.name:
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
    with path.open("a", encoding="utf-8") as file:
        for index, seed, values in _measured(study, todo, processes, table):
            label = study.rows[index].label
            file.write(json.dumps({"study": study.name, "row": label, "seed": seed, "values": values}) + "\n")
            file.flush()
            done[label, seed] = values
            yield done


def _measured(
    study: Study, todo: list[tuple[int, int]], processes: int | None, data: str | None
) -> Iterator[tuple[int, int, Values]]:
    """Replications as they finish; with one process in this one, which leaves nothing behind when it is killed."""
    if processes == 1:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
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


def cells(study: Study, done: Done) -> dict[tuple[str, str], Summary]:
    """Summaries by row and column."""
    gathered: dict[tuple[str, str], list[float]] = {}
    for (label, _), values in sorted(done.items()):
        for column, value in values.items():
            gathered.setdefault((label, column), []).append(value)
    return {key: summarise(values, study.statistic) for key, values in gathered.items()}


def columns(study: Study, summaries: dict[tuple[str, str], Summary]) -> tuple[list[str], list[str]]:
    """Names of the printed and of the measured columns, in order."""
    printed = list(dict.fromkeys(name for row in study.rows for name in row.printed))
    return printed, list(dict.fromkeys(column for _, column in summaries if POINT not in column))


def table(study: Study, done: Done) -> tuple[list[str], list[list[str]]]:
    """Header and rows, as text."""
    summaries = cells(study, done)
    printed, measured = columns(study, summaries)
    header = ["row", *(f"printed {name}" for name in printed), *measured]
    rows = [
        [
            row.label,
            *(f"{row.printed[name]:.3f}" if name in row.printed else "" for name in printed),
            *(str(summaries.get((row.label, column), "")) for column in measured),
        ]
        for row in study.rows
    ]
    return header, rows


def markdown(study: Study, done: Done, command: str, picture: str, remarks: Sequence[str] = ()) -> str:
    """A page for the documentation: what to know, the command that made it, the picture's file, and the table."""
    header, rows = table(study, done)
    counts = sorted({sum(label == row.label for label, _ in done) for row in study.rows})
    lines = [f"# {study.title}", "", study.note, "", *(f"* {remark}" for remark in remarks), *([""] if remarks else [])]
    lines += [
        f"`{command}`: {study.statistic} over {' to '.join(map(str, counts))} replications ± bootstrap standard error.",
        "",
    ]
    shown = "Every row of the table below as dots on one axis, or as curves."
    shown = shown if study.picture is None else "The points of the study along the directions of every method."
    lines += [f"![{shown}]({picture})", ""]
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def _quiet(*_: Any) -> None:
    threadpool_limits(1)
    warnings.simplefilter("ignore")
