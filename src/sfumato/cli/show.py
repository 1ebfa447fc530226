"""What a person sees in the terminal: a `Document` or a plan, laid out. Only numbers already released."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.bar import Bar
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sfumato.cli.terminal import UNTOLD, make_table
from sfumato.hints import visible
from sfumato.report.document import Document, Heatmap, figure, figures, percent, plural

if TYPE_CHECKING:
    from sfumato.forecast.assessment import Verdict
    from sfumato.methods.explanation import Explanation
    from sfumato.typing import FloatArray

MOST_ROWS, MOST_DIRECTIONS = 12, 4
PLUS, MINUS, QUIET = "cyan", "magenta", "bright_black"
VERDICTS = {"reliable": "green", "weak": "yellow", "noise": "red"}
SHADES = " ·░▒▓█"


def show_document(console: Console, document: Document, title: str, meanings: Sequence[str]) -> None:
    """A fit: directions with what is known of each, picture, ledger, guarantee."""
    console.print()
    if document.verdict is not None:
        show_verdict(console, document.verdict)
    else:
        console.print(Text(UNTOLD))
    console.print(Text(visible(title), style="bold"), Text(f" · {document.subtitle}", style=QUIET), sep="")
    console.print()
    console.print(_directions(document, meanings))
    if document.heatmap is not None:
        console.print(_picture(document.heatmap))
    console.print(_ledger(document))
    colour = "yellow" if document.rehearsal or document.guarantee.startswith("No ") else "green"
    console.print(Panel(Text(document.guarantee), border_style=colour, title="guarantee", title_align="left"))


def show_verdict(console: Console, verdict: "Verdict") -> None:
    """Whether a fit is to be believed: what is read first."""
    console.print(
        Text(f"{verdict.headline}. ", style=f"bold {VERDICTS[verdict.level]}"), Text(verdict.sentence), sep=""
    )


def show_plan(console: Console, plan: "Explanation", title: str) -> None:
    """A plan: every release, before anything is read."""
    headings = ("release", ">share", ">epsilon alone", ">noise / sensitivity", "sensitivity")
    rows = ([*map(Text, row[:-1]), Text(row[-1], style=QUIET)] for row in plan.rows())
    console.print()
    console.print(make_table(headings, rows, title))
    console.print(f"All {len(plan.plan.lines)} releases together: [bold]{plan.budget.describe()}[/].")
    show_forecast(console, plan)


def show_forecast(console: Console, plan: "Explanation") -> None:
    """Expected loss by assumed signal, and advice; nothing where there is no forecast."""
    if not plan.has_forecast:
        return
    title = f"Expected distance to the true directions, by {plan.meaning}"
    headings = (">signal", ">expected loss", ">without privacy", ">random directions")
    console.print(make_table(headings, (map(Text, row) for row in plan.expectations()), title))
    for sentence in plan.advice():
        console.print(sentence, highlight=False, soft_wrap=True)


def _directions(document: Document, meanings: Sequence[str]) -> RenderableType:
    shown = range(min(document.n_directions, MOST_DIRECTIONS))
    blocks: list[RenderableType] = [_direction(document, k, meanings[k : k + 1]) for k in shown]
    hidden = document.n_directions - len(blocks)
    more = [Text(f"and {hidden} more {plural(document.unit)}", style=QUIET)] if hidden else []
    why = "" if document.spectrum is None else document.spectrum.why
    return Group(Columns(blocks, padding=(0, 4)), *more, Text(why, style=QUIET))


def _direction(document: Document, k: int, meaning: Sequence[str]) -> Table:
    """One direction, heaviest features first."""
    values = figures(row.values[k] for row in document.loadings)
    errors = figures((row.errors[k] for row in document.loadings), 2)
    order = sorted(range(len(values)), key=lambda i: -abs(document.loadings[i].values[k]))
    level = document.level_of(k)
    title = Text.assemble(
        (f"{document.unit} {k + 1}", "bold"), *(f" · {words}" for words in (level, *meaning) if words)
    )
    table = Table(box=None, show_header=False, title=title, title_justify="left", title_style=QUIET, pad_edge=False)
    for justify in ("left", "left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    for i in order[:MOST_ROWS]:
        value = document.loadings[i].values[k]
        noise = level == "noise" or (document.verdict is not None and document.verdict.level == "noise")
        colour = QUIET if noise else PLUS if value >= 0 else MINUS
        bar = Bar(1.0, 0.0, min(abs(value), 1.0), width=14, color=colour)
        error = Text(f"± {errors[i]}" if document.has_errors else "", style=QUIET)
        table.add_row(Text(visible(document.loadings[i].feature)), bar, values[i], error)
    if len(order) > MOST_ROWS:
        table.add_row(Text(f"and {len(order) - MOST_ROWS} more", style=QUIET))
    table.add_row()
    return table


def _picture(heatmap: Heatmap) -> RenderableType:
    """Noisy counts as shades: response upward, first direction to the right."""
    most, noise = max(max(row) for row in heatmap.counts), heatmap.noise_std
    rows = ["".join(_shade(cell, most, noise) * 2 for cell in line) for line in zip(*heatmap.counts, strict=True)]
    body = Text("\n".join(reversed(rows)), style=PLUS)
    up, right = f"{heatmap.y_label} ↑", f"{heatmap.x_label} →"
    frame = Panel(body, title=up, title_align="left", subtitle=right, subtitle_align="right", expand=False, style=QUIET)
    return Padding(frame, (1, 0, 0, 0))


def _shade(count: float, most: float, noise: float) -> str:
    """Counts that do not stand out of their noise stay blank; the root makes the small ones visible."""
    level = math.sqrt(count / most) if count > 2 * noise else 0.0
    return SHADES[round(level * (len(SHADES) - 1))]


def _ledger(document: Document) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    table.add_column("ledger", footer=document.total)
    for heading in ("sensitivity", "noise", "share", "epsilon alone"):
        table.add_column(heading, justify="right")
    for row in document.ledger:
        cells = (figure(row.sensitivity), figure(row.noise_std), percent(row.share), figure(row.epsilon_alone))
        table.add_row(Text(row.purpose), *cells)
    return table


def show_weights(
    console: Console, names: Sequence[str], rows: "FloatArray", headings: Sequence[str], most: int | None = None
) -> None:
    """What each feature weighs, the heaviest first; those that weigh nothing are left out."""
    heaviest = abs(rows).max(axis=0)
    shown = [j for j in (-heaviest).argsort(kind="stable").tolist() if heaviest[j] > 0.0][:most]
    lines: list[list[str | Text]] = [[Text(visible(names[j])), *(f"{row[j]:+.4f}" for row in rows)] for j in shown]
    console.print(make_table(["feature", *(f">{heading}" for heading in headings)], lines))


def show_files(console: Console, files: Iterable[tuple[str, str]]) -> None:
    """What was written: path and purpose."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for path, purpose in files:
        table.add_row(Text(path, style="bold"), Text(purpose, style=QUIET))
    console.print(table, soft_wrap=True)


def show_pairs(console: Console, rows: Iterable[tuple[str, str]]) -> None:
    """Name and value pairs."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows:
        table.add_row(Text(name, style=QUIET), Text(value))
    console.print(table)
