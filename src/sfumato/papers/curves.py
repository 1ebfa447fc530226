"""Curves of a study, such as ROC curves: columns named "method|0.10" are points, at 0.10, of the method's curve."""

from html import escape

from sfumato.papers.run import POINT, Done, cells
from sfumato.papers.study import Study

COLOURS = ("#1b5e8c", "#b3402a", "#d98c3f", "#4f7942", "#7a5195", "#222222", "#888888")
_SIZE, _LEFT, _TOP = 320, 40, 10


def curves(study: Study, done: Done) -> str:
    """One panel for every row that has curves, averaged over replications; empty if none has."""
    panels = []
    for row in study.rows:
        points = _points(study, done, row.label)
        if points:
            panels.append(_panel(row.label, points))
    return "".join(panels)


def _points(study: Study, done: Done, label: str) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for (row, column), summary in cells(study, done).items():
        if row == label and POINT in column:
            name, at = column.split(POINT)
            found.setdefault(name, []).append((float(at), summary.value))
    return found


def _panel(label: str, points: dict[str, list[tuple[float, float]]]) -> str:
    marks = []
    for i, (name, line) in enumerate(points.items()):
        path = " ".join(f"{_LEFT + _SIZE * x:.1f},{_TOP + _SIZE * (1 - y):.1f}" for x, y in sorted(line))
        colour = COLOURS[i % len(COLOURS)]
        marks.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2'/>")
        marks.append(f"<text x='{_LEFT + _SIZE + 12}' y='{_TOP + 16 + 18 * i}' fill='{colour}'>{escape(name)}</text>")
    frame = (
        f"<rect x='{_LEFT}' y='{_TOP}' width='{_SIZE}' height='{_SIZE}' fill='none' stroke='#999'/>"
        f"<line x1='{_LEFT}' y1='{_TOP + _SIZE}' x2='{_LEFT + _SIZE}' y2='{_TOP}' stroke='#ccc'/>"
        f"<text x='{_LEFT + _SIZE / 2}' y='{_TOP + _SIZE + 22}' text-anchor='middle'>false positives</text>"
        f"<text x='14' y='{_TOP + _SIZE / 2}' transform='rotate(-90 14 {_TOP + _SIZE / 2})' "
        "text-anchor='middle'>true positives</text>"
    )
    return (
        f"<figure><svg viewBox='0 0 {_LEFT + _SIZE + 200} {_TOP + _SIZE + 32}' role='img' font-size='13' "
        f"style='max-width:560px'><title>{escape(label)}</title>{frame}{''.join(marks)}</svg>"
        f"<figcaption>{escape(label)}</figcaption></figure>"
    )
