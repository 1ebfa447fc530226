"""The what-if chart: expected loss against the budget, one curve per number of records, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.report import svg
from sfumato.report.document import WhatIf
from sfumato.report.figures import figure

TOP, BOTTOM, LEFT, RIGHT = 14.0, 236.0, 58.0, 322.0
_ROUND = (1.0, 2.0, 5.0)
_LINE = 15.0  # least distance of two labels


def what_if_chart(what_if: WhatIf) -> str:
    """Draw the losses to expect; the run itself is a full dot, the loss without privacy a dashed line.

    Examples
    --------
    >>> seen = WhatIf("epsilon", (0.5, 1.0), (1000,), ((0.4, 0.2),), (0.1,), 1.3, (0, 1), "")
    >>> what_if_chart(seen).count('data-value="0.2"')
    1
    """
    losses = [value for row in (*what_if.losses, what_if.plain) for value in row_of(row) if value > 0]
    low, high = _decade(min(losses, default=0.01), down=True), _decade(max(losses, default=1.0), down=False)
    x, y = _log(what_if.budgets[0], what_if.budgets[-1], LEFT, RIGHT), _log(low, high, BOTTOM, TOP)
    row, column = what_if.here
    marks = [
        _grid(what_if, low, high, x, y),
        svg.line(LEFT, y(what_if.plain[row]), RIGHT, y(what_if.plain[row]), svg.INK, stroke_dasharray="5 4"),
        *(_curve(what_if, i, x, y) for i in range(len(what_if.sizes))),
        *_labels(what_if, y),
        svg.text(f"{what_if.budget_name} of the whole run", (LEFT + RIGHT) / 2, BOTTOM + 38, "middle"),
        svg.text("expected distance", 0, 0, "middle", transform="translate(12 125) rotate(-90)"),
    ]
    shown = f"{what_if.budget_name} = {figure(what_if.budgets[column], trim=True)}"
    desc = f"{len(what_if.sizes)} curves; this run: {what_if.sizes[row]:,} records, {shown}."
    return svg.frame("whatif", BOTTOM + 46, "Expected loss at other budgets and sizes", desc, marks)


def row_of(values: Sequence[float]) -> list[float]:
    """The values that can be drawn on a logarithmic axis."""
    return [value for value in values if math.isfinite(value)]


def _log(low: float, high: float, start: float, stop: float) -> svg.Scale:
    place = svg.scale(math.log(low), math.log(high), start, stop)
    return lambda value: place(math.log(value) if value > 0 and math.isfinite(value) else math.log(high))


def _decade(value: float, *, down: bool) -> float:
    """The next of 1, 2, 5, 10, ... below or above."""
    places = _places(value / 20, value * 20)
    return max(at for at in places if at < value) if down else min(at for at in places if at > value)


def _places(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [digit * 10.0**power for power in powers for digit in _ROUND if low <= digit * 10.0**power <= high]


def _grid(what_if: WhatIf, low: float, high: float, x: svg.Scale, y: svg.Scale) -> str:
    across = [
        svg.line(LEFT - 4, y(at), RIGHT, y(at), svg.RULE)
        + svg.text(figure(at, 1), LEFT - 8, y(at) + 4, "end", svg.MUTED)
        for at in _places(low, high)
    ]
    along = [
        svg.line(x(at), TOP, x(at), BOTTOM + 4, svg.RULE)
        + svg.text(figure(at, trim=True), x(at), BOTTOM + 17, "middle", svg.MUTED)
        for at in what_if.budgets
    ]
    return svg.tag("g", "".join(across + along), class_="axis")


def _curve(what_if: WhatIf, row: int, x: svg.Scale, y: svg.Scale) -> str:
    own = row == what_if.here[0]
    style = f"stroke:{svg.BAR if own else svg.PLAIN};stroke-width:2;fill:none"
    pairs = list(zip(what_if.budgets, what_if.losses[row], strict=True))
    line = svg.tag("polyline", points=" ".join(f"{x(b):.2f},{y(v):.2f}" for b, v in pairs), style=style)
    return line + "".join(_dot(what_if, row, column, x(b), y(v)) for column, (b, v) in enumerate(pairs))


def _dot(what_if: WhatIf, row: int, column: int, x: float, y: float) -> str:
    here, value = (row, column) == what_if.here, what_if.losses[row][column]
    words = f"{what_if.sizes[row]:,} records, {what_if.budget_name} {figure(what_if.budgets[column], trim=True)}"
    colour = svg.BAR if row == what_if.here[0] else svg.PLAIN
    return svg.tag(
        "circle",
        svg.tag("title", svg.escape(f"{words}: {figure(value)}")),
        cx=x,
        cy=y,
        r=5.5 if here else 3.0,
        class_="here" if here else "point",
        style=f"fill:{svg.INK if here else colour}",
        data_value=svg.exact(value),
        data_records=str(what_if.sizes[row]),
        data_budget=svg.exact(what_if.budgets[column]),
    )


def _labels(what_if: WhatIf, y: svg.Scale) -> list[str]:
    """Name the curves at their right ends, and the dashed line; labels keep their distance."""
    row = what_if.here[0]
    wanted = [(y(losses[-1]), f"{n:,} records") for n, losses in zip(what_if.sizes, what_if.losses, strict=True)]
    wanted.append((y(what_if.plain[row]), "without privacy"))
    placed, last = [], -math.inf
    for at, words in sorted(wanted):
        last = max(at, last + _LINE)
        placed.append(svg.text(words, RIGHT + 10, last + 4, "start", svg.INK if words.startswith("w") else svg.MUTED))
    return placed
