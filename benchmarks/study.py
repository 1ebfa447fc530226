"""What the accuracy studies share: replications in parallel, means with standard errors, a Markdown table."""

import subprocess
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from rich.progress import track

RESULTS = Path(__file__).parent / "results"

TABLE_1 = (
    *(("M1", n, p) for n in (20_000, 40_000) for p in (15, 30)),
    *(("M2", n, p) for n in (20_000, 40_000) for p in (15, 30)),
    *(("M3", n, p) for n in (30_000, 50_000) for p in (10, 15)),
    *(("M4", n, p) for n in (30_000, 50_000) for p in (10, 15)),
)
"""Rows of Table 1 of Xia, Zhang and Cai: model, n, p."""


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean over replications with its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.error:.4f}"


def mean(values: Sequence[float]) -> Mean:
    """Mean and standard error."""
    array = np.asarray(values, dtype=float)
    return Mean(float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array))))


def replicate(job: Callable[..., tuple[float, ...]], replications: int, *args: object) -> np.ndarray:
    """``job(*args, seed)`` for every seed, over all cores: array (replications, outputs)."""
    with ProcessPoolExecutor(initializer=_quiet) as pool:
        runs = pool.map(partial(job, *args), range(replications), chunksize=4)
        label = " ".join(map(str, args))
        return np.array(list(track(runs, description=label, total=replications, transient=True)))


def _quiet() -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    warnings.simplefilter("ignore")


def write(name: str, command: str, intro: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table with the command that made it; printed, and kept under benchmarks/results."""
    lines = [f"# {intro.splitlines()[0]}", "", *intro.splitlines()[1:], ""]
    lines += [f"Command: `{command}`, {commit()}.", ""]
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def commit() -> str:
    """The commit and the date, for the line that says how a result was made."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return f"commit {done.stdout.strip() or 'unknown'}, {datetime.now(UTC):%Y-%m-%d}"
