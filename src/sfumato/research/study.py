"""Study: one table or figure of a paper, as data: its rows, what was printed there, and how one replication is run.

And what to know when reading them (``notes.toml``), and the catalogue of every table and figure of the five papers,
with what became of it (``catalogue.csv``).
"""

import csv
import math
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any, Literal, cast

import numpy as np

RESAMPLES = 1000
CHOSEN = "k-hat"
"""Beginning of the names of columns that hold a number of directions, no distance."""
COUNTED = (CHOSEN, "features kept")
"""Beginnings of the names of columns that are counts: they stand in the table, and not on the picture's axis."""
INK = "font-family='system-ui, sans-serif' font-size='12' fill='#444'"
Values = Mapping[str, float]
"""What one replication measures, by column."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its name, the arguments of a replication, and the printed values by column.

    A row `beside` the printed table repeats a printed row in another reading; it does not count in the verdict.
    """

    label: str
    arguments: tuple[str | int | float, ...]
    printed: Values
    beside: bool = False


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
    picture : callable, optional
        Draws a picture (SVG) from the path of the table, in place of the dots of the results.
    """

    name: str
    title: str
    note: str
    rows: tuple[Row, ...]
    run: Callable[..., Values]
    statistic: Literal["mean", "median"] = "mean"
    data: str = ""
    picture: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Marks in a box of this size."""

    label: str
    marks: str
    width: int
    height: int


def side_by_side(panels: Sequence[Panel], title: str) -> str:
    """A drawing of all panels in a row."""
    placed, left = [], 0
    for one in panels:
        placed.append(f"<g transform='translate({left} 0)'>{one.marks}</g>")
        left += one.width
    return document("".join(placed), left, max(one.height for one in panels), title)


def document(marks: str, width: int, height: int, title: str) -> str:
    """A drawing as a file of its own."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {INK}><title>{escape(title)}</title>"
        f"<rect width='100%' height='100%' fill='white'/>{marks}</svg>\n"
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean or median of the replications of a cell, with its standard error."""

    value: float
    error: float
    replications: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


def summarise(values: Sequence[float], statistic: Literal["mean", "median"]) -> Summary:
    """The statistic with its bootstrap standard error (seeded), which holds for samples of two peaks, too.

    >>> summarise([0.0] * 30 + [1.4] * 29, "median")
    Summary(value=0.0, error=0.69..., replications=59)
    """
    array = np.asarray(values, dtype=float)
    of = np.mean if statistic == "mean" else np.median
    if len(array) < 2:
        return Summary(float(of(array)), float("nan"), len(array))
    draws = np.random.default_rng(len(array)).integers(0, len(array), (RESAMPLES, len(array)))
    return Summary(float(of(array)), float(of(array[draws], axis=1).std(ddof=1)), len(array))


Mark = Literal["same", "lower", "higher"]
"""Of a printed value: what was measured is the same within two standard errors, lower, or higher, so not reached."""
LAST_DIGIT = 0.0005
"""Half a unit of the last digit that the papers print."""


def compare(printed: float, found: Summary) -> Mark | None:
    """Where the measured value lies, seen from the printed one; a single replication tells nothing.

    >>> [compare(0.2, Summary(value, 0.02, 20)) for value in (0.21, 0.25, 0.1)]
    ['same', 'higher', 'lower']
    """
    if not math.isfinite(found.error):
        return None
    gap = found.value - printed
    if abs(gap) <= 2.0 * found.error + LAST_DIGIT:
        return "same"
    return "higher" if gap > 0.0 else "lower"


def repeated(name: str, measured: Collection[str]) -> str | None:
    """The measured column that repeats a printed one: with the printed noise, or as it is where there is no noise.

    >>> repeated("DP-SIR", ["SIR", "DP-SIR tight", "DP-SIR paper"]), repeated("IID", ["IID as printed"])
    ('DP-SIR paper', 'IID as printed')
    """
    return next((found for found in (f"{name} paper", f"{name} as printed", name) if found in measured), None)


def _text(name: str) -> str:
    """A file that comes with the package."""
    return files("sfumato.research").joinpath(name).read_text(encoding="utf-8")


def lines_of(name: str) -> Iterator[dict[str, str]]:
    """The lines of a table that comes with the package."""
    yield from csv.DictReader(_text(name).splitlines())


NOTES: Mapping[str, Any] = tomllib.loads(_text("notes.toml"))
"""What to know when reading a study, by its name or by what several have in common."""


def printed_table(source: str, table: int) -> dict[tuple[str, int, int], dict[str, float]]:
    """Printed values of a table of Xia, Zhang and Cai by (model, n, p) and method; the mean chosen k as `CHOSEN`.

    >>> printed_table("002", 1)["M1", 20_000, 15]["DP-SIR"]
    0.222
    """
    rows: dict[tuple[str, int, int], dict[str, float]] = {}
    for line in lines_of("xia_tables.csv"):
        if line["source"].endswith(source) and line["table"] == str(table):
            key = (line["model"], int(line["n"]), int(line["p"]))
            row = rows.setdefault(key, {})
            row[line["method"]] = float(line["distance"])
            if line["mean_selected_k"]:
                row[CHOSEN] = float(line["mean_selected_k"])
    return rows


Verdict = Literal["reproduced", "partly reproduced", "refuted", "not reproducible here"]
"""Refuted: the printed values do not come out of what the paper states; how they were made is not known."""

FIRST = "DP-SIR, first version (Xia, Zhang and Cai)"
NEWEST = "DP-SIR, newest version (Xia, Zhang and Cai)"
FSIR = "FSIR (He, Zhang and Chen)"
GEP = "DP-GEP (Hu, Xiang, Liu and Wang)"
IHT = "DP-IHT (Wang, Smith and Xu)"
BEYOND = "Beyond the papers"
PAPERS = {"first": FIRST, "newest": NEWEST, "fsir": FSIR, "gep": GEP, "iht": IHT}


@dataclass(frozen=True, slots=True)
class Item:
    """One table or figure: where it stands, what became of it and why, and the study that repeats it, if any does."""

    paper: str
    name: str
    verdict: Verdict
    why: str
    study: str = ""


ITEMS = tuple(
    Item(PAPERS[line["paper"]], line["name"], cast(Verdict, line["verdict"]), line["why"], line["study"])
    for line in lines_of("catalogue.csv")
)
"""In the order of the papers."""


def by_paper() -> Iterator[tuple[str, list[Item]]]:
    """The items of each paper."""
    for paper, items in groupby(ITEMS, lambda item: item.paper):
        yield paper, list(items)
