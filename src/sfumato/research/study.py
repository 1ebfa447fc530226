"""Study: one table or figure of a paper, as data: its rows, what was printed there, and how one replication is run."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

import numpy as np

Values = Mapping[str, float]
"""What one replication measures, by column."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its name, the arguments of a replication, and the printed values by column."""

    label: str
    arguments: tuple[str | int | float, ...]
    printed: Values


@dataclass(frozen=True, slots=True)
class Study:
    """One table or figure.

    Attributes
    ----------
    name : str
        As given on the command line.
    title : str
        Where it stands.
    note : str
        What to know when reading it.
    rows : tuple of Row
    run : callable
        ``run(*row.arguments, seed)`` measures one replication; a function of a module, so that processes can call it.
    statistic : {"mean", "median"}
        What the paper printed.
    data : str
        What the table must hold that the user gives by path, which is then the first argument of `run`; empty if the
        data are simulated.
    """

    name: str
    title: str
    note: str
    rows: tuple[Row, ...]
    run: Callable[..., Values]
    statistic: Literal["mean", "median"] = "mean"
    data: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean or median of the replications of a cell, with its standard error."""

    value: float
    error: float
    replications: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


def summarise(values: Sequence[float], statistic: Literal["mean", "median"]) -> Summary:
    """The statistic with its standard error; that of a median is 1.2533 times that of a mean (normal theory).

    >>> str(summarise([1.0, 2.0, 3.0], "mean"))
    '2.000 ± 0.577'
    """
    array = np.asarray(values, dtype=float)
    spread = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else float("nan")
    if statistic == "mean":
        return Summary(float(array.mean()), spread, len(array))
    return Summary(float(np.median(array)), 1.2533 * spread, len(array))


def printed_table(source: str, table: int) -> dict[tuple[str, int, int], dict[str, float]]:
    """Printed values of a table of Xia, Zhang and Cai by (model, n, p) and method.

    >>> printed_table("002", 1)["M1", 20_000, 15]["DP-SIR"]
    0.222
    """
    rows: dict[tuple[str, int, int], dict[str, float]] = {}
    text = files("sfumato.research").joinpath("xia_tables.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(text.splitlines()):
        if line["source"].endswith(source) and line["table"] == str(table):
            key = (line["model"], int(line["n"]), int(line["p"]))
            rows.setdefault(key, {})[line["method"]] = float(line["distance"])
    return rows
