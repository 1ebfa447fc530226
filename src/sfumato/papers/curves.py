"""Curves of a study, such as ROC curves: columns named "method|0.10" are points, at 0.10, of the method's curve."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sfumato.papers.run import POINT, Done, cells
from sfumato.papers.study import Study

OURS = "#1b5e8c"
OTHERS = ("#888888", "#b3402a", "#e08a6d", "#4f7942", "#a3c08a", "#7a5195", "#c3a2d6", "#d9a521", "#222222")
_SIZE, _LEFT, _TOP = 320, 40, 28


def colours(names: Sequence[str]) -> dict[str, str]:
    """Of every column; that of this package stands out in every picture."""
    others = [name for name in names if name != "sfumato"]
    return {name: OTHERS[others.index(name) % len(OTHERS)] if name in others else OURS for name in names}


@dataclass(frozen=True, slots=True)
class Panel:
    """The curves of one row: marks in a box of this size."""

    label: str
    marks: str
    width: int = _LEFT + _SIZE + 130
    height: int = _TOP + _SIZE + 32


def panels(study: Study, done: Done) -> list[Panel]:
    """One panel for every row that has curves, averaged over replications."""
    found = ((row.label, _points(study, done, row.label)) for row in study.rows)
    return [_panel(label, points) for label, points in found if points]


def curves(study: Study, done: Done) -> str:
    """The panels as parts of a page; empty if there are none."""
    return "".join(
        f"<figure><svg viewBox='0 0 {one.width} {one.height}' role='img' font-size='13' style='max-width:560px'>"
        f"<title>{escape(one.label)}</title>{one.marks}</svg></figure>"
        for one in panels(study, done)
    )


def _points(study: Study, done: Done, label: str) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for (row, column), summary in cells(study, done).items():
        if row == label and POINT in column:
            name, at = column.split(POINT)
            found.setdefault(name, []).append((float(at), summary.value))
    return found


def _panel(label: str, points: dict[str, list[tuple[float, float]]]) -> Panel:
    marks, shades = [_frame(label)], colours(list(points))
    for i, (name, line) in enumerate(points.items()):
        path = " ".join(f"{_LEFT + _SIZE * x:.1f},{_TOP + _SIZE * (1 - y):.1f}" for x, y in sorted(line))
        marks.append(f"<polyline points='{path}' fill='none' stroke='{shades[name]}' stroke-width='2'/>")
        where = f"x='{_LEFT + _SIZE + 8}' y='{_TOP + 16 + 18 * i}' fill='{shades[name]}'"
        marks.append(f"<text {where}>{escape(name)}</text>")
    return Panel(label, "".join(marks))


def _frame(label: str) -> str:
    middle = _TOP + _SIZE / 2
    return (
        f"<text x='{_LEFT + _SIZE / 2}' y='{_TOP - 8}' text-anchor='middle'>{escape(label)}</text>"
        f"<rect x='{_LEFT}' y='{_TOP}' width='{_SIZE}' height='{_SIZE}' fill='none' stroke='#999'/>"
        f"<line x1='{_LEFT}' y1='{_TOP + _SIZE}' x2='{_LEFT + _SIZE}' y2='{_TOP}' stroke='#ccc'/>"
        f"<text x='{_LEFT + _SIZE / 2}' y='{_TOP + _SIZE + 22}' text-anchor='middle'>false positives</text>"
        f"<text x='14' y='{middle}' transform='rotate(-90 14 {middle})' text-anchor='middle'>true positives</text>"
    )
