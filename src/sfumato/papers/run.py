"""Running a study: replications in parallel, each kept in a file of JSON lines so that a run can be resumed."""

import json
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.papers.he import LOW
from sfumato.papers.he_wide import HIGH
from sfumato.papers.study import Study, Summary, Values, summarise
from sfumato.papers.xia import TABLES
from sfumato.papers.xia_slices import SLICES

STUDIES = {study.name: study for study in (*TABLES, SLICES, *LOW, *HIGH)}
Done = dict[tuple[str, int], Values]
"""Measured values by row and seed."""


def find(name: str) -> Study:
    """The study of that name."""
    if name not in STUDIES:
        raise InputError(f"there is no study {name!r}; choose among {', '.join(STUDIES)}.")
    return STUDIES[name]


def replicate(study: str, row: int, seed: int) -> Values:
    """One replication, in whatever process."""
    chosen = STUDIES[study]
    return chosen.run(*chosen.rows[row].arguments, seed)


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


def execute(study: Study, replications: int, path: Path, processes: int | None = None) -> Iterator[Done]:
    """Run what the file does not hold yet; yields the results so far after each replication, at least once."""
    done = load(path, study)
    todo = [
        (index, seed)
        for seed in range(replications)
        for index, row in enumerate(study.rows)
        if (row.label, seed) not in done
    ]
    yield done
    with path.open("a", encoding="utf-8") as file, ProcessPoolExecutor(processes, initializer=_quiet) as pool:
        jobs: dict[Future[Values], tuple[int, int]] = {
            pool.submit(replicate, study.name, index, seed): (index, seed) for index, seed in todo
        }
        try:
            for job in as_completed(jobs):
                index, seed = jobs[job]
                label, values = study.rows[index].label, job.result()
                entry = {"study": study.name, "row": label, "seed": seed, "values": values}
                file.write(json.dumps(entry) + "\n")
                file.flush()
                done[label, seed] = values
                yield done
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
    return printed, list(dict.fromkeys(column for _, column in summaries))


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


def _quiet(*_: Any) -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    warnings.simplefilter("ignore")
