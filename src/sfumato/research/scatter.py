"""Panels of a picture, side by side in one drawing; and scatter plots of public points."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from sfumato.typing import FloatArray, IntArray

INK = "font-family='system-ui, sans-serif' font-size='12' fill='#444'"
SHADES = ("#1b5e8c", "#b9b3a4", "#b3402a")
_SIZE, _TOP, _GAP = 260, 28, 14


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


def scatter(label: str, points: FloatArray, shade: IntArray) -> Panel:
    """Points (n, 2), each axis from its 1st to its 99th percentile; records of no person may be drawn so.

    >>> panel = scatter("two", np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([0, 2]))
    >>> panel.marks.count("M"), panel.width
    (2, 274)
    """
    low, high = np.percentile(points, [1, 99], axis=0)
    at = np.clip((points - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
    marks = [
        f"<text x='{_SIZE / 2}' y='{_TOP - 8}' text-anchor='middle'>{escape(label)}</text>"
        f"<rect y='{_TOP}' width='{_SIZE}' height='{_SIZE}' fill='none' stroke='#999'/>"
    ]
    for group, colour in enumerate(SHADES):
        places = "".join(f"M{_SIZE * x:.0f} {_TOP + _SIZE * (1 - y):.0f}h0" for x, y in at[shade == group])
        if places:
            marks.append(f"<path d='{places}' stroke='{colour}' stroke-width='3' stroke-linecap='round' opacity='.6'/>")
    return Panel(label, "".join(marks), _SIZE + _GAP, _TOP + _SIZE + _GAP)
