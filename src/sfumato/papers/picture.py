"""A study as a picture: a dot for every column of every row, with its standard error; hollow dots are printed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sfumato.papers.curves import colours, panels
from sfumato.papers.run import POINT, Done, cells, columns
from sfumato.papers.study import Row, Study, Summary

_LEFT, _WIDTH, _LINE, _NAME, _ACROSS = 190, 560, 26, 150, 5
_INK = "font-family='system-ui, sans-serif' font-size='12' fill='#444'"
_WIDE = 20.0
"""Values that differ by more than this factor are shown on a logarithmic axis."""


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


def drawing(study: Study, done: Done) -> str:
    """A file of its own: the curves of a study that has any, else its dots."""
    found = panels(study, done)
    if not found:
        return _document(*dots(study, done), study.title)
    width, height = sum(one.width for one in found), max(one.height for one in found)
    placed, left = [], 0
    for one in found:
        placed.append(f"<g transform='translate({left} 0)'>{one.marks}</g>")
        left += one.width
    return _document("".join(placed), width, height, study.title)


def _document(marks: str, width: int, height: int, title: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {_INK}><title>{escape(title)}</title>"
        f"<rect width='100%' height='100%' fill='white'/>{marks}</svg>\n"
    )


def picture(study: Study, done: Done) -> str:
    """Part of a page."""
    marks, width, height = dots(study, done)
    title = f"<title>{escape(study.title)}</title>"
    return f"<svg viewBox='0 0 {width} {height}' role='img' {_INK}>{title}{marks}</svg>"


def dots(study: Study, done: Done) -> tuple[str, int, int]:
    """Marks, width and height: one axis, row by row."""
    summaries = {key: one for key, one in cells(study, done).items() if POINT not in key[1]}
    printed, measured = columns(study, summaries)
    axis = Axis.of([one.value for one in summaries.values()] + [v for row in study.rows for v in row.printed.values()])
    colour = colours(measured)
    legend, top = _legend(colour, bool(printed))
    bottom = top + _LINE * len(study.rows)
    rows = [_row(row, top + _LINE * i, axis, summaries, colour) for i, row in enumerate(study.rows)]
    ticks = [
        f"<line x1='{axis.at(at):.1f}' x2='{axis.at(at):.1f}' y1='{top - 14}' y2='{bottom - 10}' stroke='#eee'/>"
        f"<text x='{axis.at(at):.1f}' y='{bottom + 8}' text-anchor='middle'>{at:g}</text>"
        for at in axis.ticks
    ]
    return "".join([legend, *ticks, *rows]), _LEFT + _WIDTH + 40, bottom + 16


def _row(row: Row, y: int, axis: Axis, summaries: Mapping[tuple[str, str], Summary], colour: Mapping[str, str]) -> str:
    marks = [
        f"<text x='{_LEFT - 12}' y='{y + 4}' text-anchor='end'>{escape(row.label)}</text>"
        f"<line x1='{_LEFT}' x2='{_LEFT + _WIDTH}' y1='{y}' y2='{y}' stroke='#eee'/>"
    ]
    for name, value in row.printed.items():
        marks.append(_dot(axis.at(value), y, "none", "#555", f"printed {name}: {value}"))
    for name, shade in colour.items():
        if (row.label, name) in summaries:
            cell = summaries[row.label, name]
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
