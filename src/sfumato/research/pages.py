"""A study as a page: its picture, its curves, its table, and what it says about the printed values.

And one page of everything: each table and figure of the papers, what became of it, and how far its study has run.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sfumato.research.run import LEGEND, POINT, STUDIES, SYMBOLS, Results
from sfumato.research.study import (
    BEYOND,
    CHOSEN,
    COUNTED,
    INK,
    Item,
    Mark,
    Panel,
    Row,
    Summary,
    by_paper,
    compare,
    document,
    repeated,
    side_by_side,
)

OURS = "#1b5e8c"
OTHERS = ("#888888", "#b3402a", "#e08a6d", "#4f7942", "#a3c08a", "#7a5195", "#c3a2d6", "#d9a521", "#222222")
NOT_RIVALS = ("SIR", "Oracle-SIR", "Lasso-SIR", CHOSEN)
"""Printed columns that promise no privacy, or are no losses."""
_SIZE, _EDGE, _TOP = 320, 40, 28
"""Of a panel of curves."""
_LEFT, _WIDTH, _LINE, _NAME, _ACROSS = 190, 560, 26, 150, 5
"""Of the dots: rows `_LINE` apart, names of the legend `_ACROSS` to a line."""
_WIDE = 20.0
"""Values that differ by more than this factor are shown on a logarithmic axis."""


def colours(names: Sequence[str]) -> dict[str, str]:
    """Of every column; that of this package stands out in every picture."""
    others = [name for name in names if name != "sfumato"]
    return {name: OTHERS[others.index(name) % len(OTHERS)] if name in others else OURS for name in names}


def panels(results: Results) -> list[Panel]:
    """One panel for every row that has curves, averaged over replications."""
    found = ((row.label, _points(results, row)) for row in results.study.rows)
    return [_panel(label, points) for label, points in found if points]


def curves(results: Results) -> str:
    """The panels as parts of a page; empty if there are none."""
    return "".join(
        f"<figure><svg viewBox='0 0 {one.width} {one.height}' role='img' font-size='13' style='max-width:560px'>"
        f"<title>{escape(one.label)}</title>{one.marks}</svg></figure>"
        for one in panels(results)
    )


def _points(results: Results, row: Row) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for column, summary in results.of(row).items():
        if POINT in column:
            name, at = column.split(POINT)
            found.setdefault(name, []).append((float(at), summary.value))
    return found


def _panel(label: str, points: dict[str, list[tuple[float, float]]]) -> Panel:
    marks, shades = [_frame(label)], colours(list(points))
    for i, (name, line) in enumerate(points.items()):
        path = " ".join(f"{_EDGE + _SIZE * x:.1f},{_TOP + _SIZE * (1 - y):.1f}" for x, y in sorted(line))
        marks.append(f"<polyline points='{path}' fill='none' stroke='{shades[name]}' stroke-width='2'/>")
        where = f"x='{_EDGE + _SIZE + 8}' y='{_TOP + 16 + 18 * i}' fill='{shades[name]}'"
        marks.append(f"<text {where}>{escape(name)}</text>")
    return Panel(label, "".join(marks), _EDGE + _SIZE + 130, _TOP + _SIZE + 32)


def _frame(label: str) -> str:
    middle = _TOP + _SIZE / 2
    return (
        f"<text x='{_EDGE + _SIZE / 2}' y='{_TOP - 8}' text-anchor='middle'>{escape(label)}</text>"
        f"<rect x='{_EDGE}' y='{_TOP}' width='{_SIZE}' height='{_SIZE}' fill='none' stroke='#999'/>"
        f"<line x1='{_EDGE}' y1='{_TOP + _SIZE}' x2='{_EDGE + _SIZE}' y2='{_TOP}' stroke='#ccc'/>"
        f"<text x='{_EDGE + _SIZE / 2}' y='{_TOP + _SIZE + 22}' text-anchor='middle'>false positives</text>"
        f"<text x='14' y='{middle}' transform='rotate(-90 14 {middle})' text-anchor='middle'>true positives</text>"
    )


@dataclass(frozen=True, slots=True)
class Axis:
    """Where a value lies, in pixels; logarithmic where values are positive and far apart.

    >>> Axis.of([0.02, 2.0]).ticks, Axis.of([0.1, 1.4]).ticks
    ((0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4))
    """

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def of(cls, values: Sequence[float]) -> "Axis":
        """Room for all finite values."""
        known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if low > 0.0 and high > _WIDE * low:
            return cls(low / 1.1, high * 1.1, True)
        return cls(min(low, 0.0), (high * 1.05) or 1.0, False)

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers within the axis."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            round_ones = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
        else:
            step = 10.0 ** math.floor(math.log10(self.high - self.low)) / 5.0
            step *= 5.0 if (self.high - self.low) / step > 20 else 1.0
            first = math.ceil(self.low / step)
            round_ones = [round(i * step, 10) for i in range(first, first + 30)]
        return tuple(value for value in round_ones if self.low <= value <= self.high)

    def at(self, value: float) -> float:
        """Pixels from the left edge of the picture."""
        scale = math.log if self.logarithmic else float
        inside = min(max(value, self.low), self.high)
        part = (scale(inside) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return _LEFT + _WIDTH * part


def drawing(results: Results, data: str | None = None) -> str:
    """A file of its own: the study's own picture or curves if it has any, else its dots."""
    study = results.study
    if study.picture is not None and data is not None:
        return study.picture(data)
    found = panels(results)
    return side_by_side(found, study.title) if found else document(*dots(results), study.title)


def picture(results: Results) -> str:
    """Part of a page."""
    marks, width, height = dots(results)
    title = f"<title>{escape(results.study.title)}</title>"
    return f"<svg viewBox='0 0 {width} {height}' role='img' {INK}>{title}{marks}</svg>"


def dots(results: Results) -> tuple[str, int, int]:
    """Marks, width and height: one axis, row by row."""
    study, drawn = results.study, [name for name in results.measured if not name.startswith(COUNTED)]
    axis = Axis.of(
        [one.value for (_, column), one in results.summaries.items() if column in drawn]
        + [value for row in study.rows for name, value in row.printed.items() if name != CHOSEN]
    )
    colour = colours(drawn)
    legend, top = _legend(colour, bool(results.printed))
    bottom = top + _LINE * len(study.rows)
    rows = [_row(row, top + _LINE * i, axis, results.of(row), colour) for i, row in enumerate(study.rows)]
    ticks = [
        f"<line x1='{axis.at(at):.1f}' x2='{axis.at(at):.1f}' y1='{top - 14}' y2='{bottom - 10}' stroke='#eee'/>"
        f"<text x='{axis.at(at):.1f}' y='{bottom + 8}' text-anchor='middle'>{at:g}</text>"
        for at in axis.ticks
    ]
    return "".join([legend, *ticks, *rows]), _LEFT + _WIDTH + 40, bottom + 16


def _row(row: Row, y: int, axis: Axis, found: Mapping[str, Summary], colour: Mapping[str, str]) -> str:
    marks = [
        f"<text x='{_LEFT - 12}' y='{y + 4}' text-anchor='end'>{escape(row.label)}</text>"
        f"<line x1='{_LEFT}' x2='{_LEFT + _WIDTH}' y1='{y}' y2='{y}' stroke='#eee'/>"
    ]
    for name, value in ((name, value) for name, value in row.printed.items() if name != CHOSEN):
        marks.append(_dot(axis.at(value), y, "none", "#555", f"printed {name}: {value}"))
    for name, shade in colour.items():
        if name in found:
            cell = found[name]
            ends = [axis.at(cell.value + side * cell.error) if math.isfinite(cell.error) else 0.0 for side in (-1, 1)]
            marks.append(f"<line x1='{ends[0]:.1f}' x2='{ends[1]:.1f}' y1='{y}' y2='{y}' stroke='{shade}'/>")
            marks.append(_dot(axis.at(cell.value), y, shade, shade, f"{name}: {cell}"))
    return "".join(marks)


def _dot(x: float, y: float, fill: str, stroke: str, title: str) -> str:
    shape = f"cx='{x:.1f}' cy='{y}' r='4.5' fill='{fill}' stroke='{stroke}'"
    return f"<circle {shape}><title>{escape(title)}</title></circle>"


def _legend(colour: Mapping[str, str], printed: bool) -> tuple[str, int]:
    """What the colours mean, a few names to a line, and where the rows may begin."""
    parts, names = [], [*colour, *(["printed in the paper"] if printed else [])]
    for i, name in enumerate(names):
        x, y, shade = 10 + _NAME * (i % _ACROSS), 16 + 20 * (i // _ACROSS), colour.get(name, "none")
        parts.append(_dot(x, y, shade, colour.get(name, "#555"), name))
        parts.append(f"<text x='{x + 9}' y='{y + 4}'>{escape(name)}</text>")
    return "".join(parts), 56 + 20 * ((len(names) - 1) // _ACROSS)


STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;font-size:13px}"
    "td,th{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right}"
    "td:first-child,th:first-child{text-align:left}"
    ".same{background:#dcefdc}.lower{background:#d9e8f5}.higher{background:#f6ddd8}"
    ".words td,.words th{text-align:left;vertical-align:top}"
)


def document_of(title: str, body: str) -> str:
    """A page as text; it loads nothing from elsewhere."""
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def page(results: Results, command: str, data: str | None = None) -> str:
    """The page of a study; printed values are coloured by whether they are reached."""
    study, (header, rows) = results.study, results.table()
    own = study.picture(data) if study.picture is not None and data is not None else picture(results)
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in verdict(results))
    return document_of(
        study.title,
        f"<p>{escape(study.note)}</p><ul>{remarks}</ul>{own}{curves(results)}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{study.statistic} over replications ± bootstrap standard error.{' ' + LEGEND if results.marks else ''} "
        f"Made by <code>{escape(command)}</code>.</p>",
    )


def _cell(text: str) -> str:
    return f"<td class='{mark}'>{escape(text)}</td>" if (mark := mark_of(text)) else f"<td>{escape(text)}</td>"


def mark_of(text: str) -> Mark | None:
    """What a cell of the table is marked with.

    >>> mark_of("0.222 ✗"), mark_of("0.222")
    ('higher', None)
    """
    return next((mark for mark, symbol in SYMBOLS.items() if text.endswith(symbol)), None)


def verdict(results: Results) -> list[str]:
    """One sentence for each printed column that was measured as printed, one on the tight noise, and one on ours.

    Studies of a user's own table have none: their columns are no distances, and were printed for another table.
    """
    if results.study.data:
        return []
    sentences = []
    for method in (name for name in results.printed if name != CHOSEN):
        pairs, noisy = [], False
        for row in results.study.rows:
            found = results.of(row)
            column = repeated(method, found)
            if method in row.printed and column is not None and not row.beside:
                noisy = column != method
                pairs.append((row.printed[method], found[column]))
        if pairs:
            sentences.append(_reached(method, pairs) if noisy else _repeated(method, pairs))
    return [*sentences, *filter(None, (_tight(results.summaries), _below(results)))]


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def _reached(method: str, pairs: list[tuple[float, Summary]]) -> str:
    """Reached: measured at most two standard errors above what is printed."""
    reached = sum(compare(printed, found) in ("same", "lower") for printed, found in pairs)
    return (
        f"{method}: printed {_range([value for value, _ in pairs])}; with the printed noise we measure "
        f"{_range([found.value for _, found in pairs])}. "
        + ("No row reaches" if reached == 0 else f"{reached} of {len(pairs)} rows reach")
        + " the printed value within two standard errors (the authors' code was not seen)."
    )


def _repeated(method: str, pairs: list[tuple[float, Summary]]) -> str:
    """A column without noise: on draws of the same model it should come out the same."""
    found = [compare(printed, one) for printed, one in pairs]
    return (
        f"{method}: printed {_range([value for value, _ in pairs])}, measured "
        f"{_range([one.value for _, one in pairs])}; the same within two standard errors in {found.count('same')} of "
        f"{len(pairs)} rows, lower in {found.count('lower')}, higher in {found.count('higher')}."
    )


def _tight(summaries: Mapping[tuple[str, str], Summary]) -> str:
    """Whether tight noise is at least as accurate as printed noise, row by row, within two standard errors."""
    worse, compared = [], 0
    for (label, column), paper in summaries.items():
        tight = summaries.get((label, column.replace(" paper", " tight")))
        if column.endswith(" paper") and tight is not None and not column.startswith(CHOSEN):
            compared += 1
            if tight.value - paper.value > 2.0 * (tight.error**2 + paper.error**2) ** 0.5:
                worse.append(f"{column.removesuffix(' paper')} in {label}")
    if not compared:
        return ""
    if not worse:
        return (
            f"Tight noise is at least as accurate as printed noise in all {compared} comparisons (two standard errors)."
        )
    return (
        f"Tight noise is at least as accurate as printed noise in {compared - len(worse)} of {compared} comparisons; "
        f"not so: {', '.join(worse)}. No printed row has a guarantee."
    )


def _below(results: Results) -> str:
    """In how many rows ours is below all private columns printed there, by two standard errors, and where it is not."""
    found: dict[str, list[str]] = {"below": [], "level": [], "above": []}
    for row in results.study.rows:
        printed = [value for name, value in row.printed.items() if name not in NOT_RIVALS]
        ours = results.of(row).get("sfumato")
        if printed and ours is not None and not row.beside:
            reach = 2.0 * ours.error if math.isfinite(ours.error) else 0.0
            gap = ours.value - min(printed)
            found["below" if gap < -reach else "above" if gap > reach else "level"].append(row.label)
    rows = sum(map(len, found.values()))
    if not rows:
        return ""
    rest = [
        f"{words}: {'; '.join(found[side])}"
        for side, words in (("level", "within two standard errors of it"), ("above", "above it"))
        if found[side]
    ]
    whole = (
        f"sfumato is below the best private value printed in {len(found['below'])} of {rows} rows (two standard errors)"
    )
    return "; ".join([whole, *rest]) + "."


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a study has run: replications that every row has, and how its printed values compare."""

    replications: int
    compared: Mapping[Mark, int]

    @classmethod
    def of(cls, results: Results) -> "Progress":
        """From what was measured."""
        return cls(results.complete, Counter(results.marks.values()))


def index(progress: Mapping[str, Progress], command: str) -> str:
    """The page; studies that have run are linked to the pages beside it."""
    parts = [f"<h2>{escape(paper)}</h2>{_table(items, progress)}" for paper, items in by_paper()]
    named = {item.study for _, items in by_paper() for item in items}
    others = [
        f"<li>{escape(study.title)}: {_link(name, progress)}</li>"
        for name, study in STUDIES.items()
        if name not in named
    ]
    return document_of(
        "The papers' tables and figures, printed and measured",
        f"<p>{LEGEND} A verdict is that of the committed pages; the last column, of this run.</p>{''.join(parts)}"
        f"<h2>{BEYOND}</h2><ul>{''.join(others)}</ul><p>Made by <code>{escape(command)}</code>.</p>",
    )


def _table(items: Iterable[Item], progress: Mapping[str, Progress]) -> str:
    rows = "".join(
        f"<tr><td>{escape(item.name)}</td><td>{item.verdict}</td><td>{escape(item.why)}</td>"
        f"<td>{_link(item.study, progress)}</td></tr>"
        for item in items
    )
    head = "".join(f"<th>{name}</th>" for name in ("", "verdict", "why", "this run"))
    return f"<table class='words'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _link(study: str, progress: Mapping[str, Progress]) -> str:
    if not study:
        return ""
    found = progress.get(study)
    if found is None:
        return f"{study}: needs its table" if STUDIES[study].data else f"{study}: not run"
    compared = " ".join(
        f"{symbol} {found.compared[mark]}" for mark, symbol in SYMBOLS.items() if found.compared.get(mark)
    )
    return f"<a href='{study}.html'>{study}</a>, {found.replications} replications {compared}".rstrip()
