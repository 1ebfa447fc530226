"""The charts of the report, each a pure function from released values to one inline SVG string.

All charts are drawn 440 units wide, so that their text keeps its size from a phone to a desk. Each mark
carries the number it shows in `data-value`, to the last bit; what cannot be drawn (a negative count, a value
that is not finite) is drawn as zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from sfumato.report import svg
from sfumato.report.document import Heatmap, LedgerRow, Loading, Spectrum, WhatIf, figure, figures, percent, plural


def loading_chart(loadings: Sequence[Loading], direction: int) -> str:
    """Draw the loadings of one direction (counted from 0) as bars, with whiskers of one standard error.

    All directions share one scale, so that charts side by side compare. Bars within two errors of zero are
    pale; where no error is known at all, none is.

    >>> chart = loading_chart([Loading("age", (0.8,), (0.1,))], 0)
    >>> 'data-value="0.8"' in chart and 'data-error="0.1"' in chart
    True
    """
    limit = _loading_limit(loadings)
    step = 22.0 if len(loadings) <= 60 else 16.0
    bottom = step * len(loadings) + 6
    columns = [figures(column) for column in zip(*(loading.values for loading in loadings), strict=True)]
    texts = columns[direction] if loadings else ()
    x = svg.scale(-limit, limit, 134.0, svg.WIDTH - 8 - max(map(svg.room, columns), default=0.0))
    known = any(loading.has_error for loading in loadings)
    names = svg.shorten_each([loading.feature for loading in loadings], 124)
    rows = [
        _loading_row(loading, direction, (name, text), (step * (row + 0.5) + 4, step), limit, x, known)
        for row, (loading, name, text) in enumerate(zip(loadings, names, texts, strict=True))
    ]
    zero = svg.line(x(0), 2, x(0), bottom, svg.MUTED)
    title = f"Direction {direction + 1}: loadings"
    whiskers = ", whiskers one standard error" if known else ""
    desc = f"{len(loadings)} features. Bars are weights{whiskers}."
    marks = [svg.axis_below(-limit, limit, x, 2, bottom), *rows, zero]
    return svg.frame(f"loading-{direction + 1}", bottom + 22, title, desc, marks)


def spectrum_chart(spectrum: Spectrum) -> str:
    """Draw the singular values as columns, the chosen ones in colour, with the noise edge as a dashed line.

    >>> spectrum_chart(Spectrum((0.9, 0.1), edge=0.2, chosen=1, why="")).count('class="chosen"')
    1
    """
    high = max([0.0, *map(svg.tame, (spectrum.edge, *spectrum.values))]) or 1.0
    left, right, top, bottom = 12 + svg.room(label for _, label in svg.ticks(0, high)), 356.0, 20.0, 200.0
    y = svg.scale(0, high, bottom, top)
    columns = _columns(spectrum, left, right, bottom, y)
    marks = [
        svg.axis_beside(0, high, y, left, right),
        *columns,
        svg.line(left, bottom, right, bottom, svg.MUTED),
        _noise_edge(spectrum.edge, left, right, y),
        *_column_labels(spectrum, left, right, bottom, y),
        svg.text(f"{spectrum.name}, in order", (left + right) / 2, bottom + 38, "middle", svg.MUTED),
    ]
    edge = f"; the noise edge is {figure(spectrum.edge)}" if math.isfinite(spectrum.edge) else ""
    desc = f"{len(columns)} values, {spectrum.chosen} chosen{edge}."
    return svg.frame("spectrum", bottom + 46, f"{plural(spectrum.name).capitalize()} in order", desc, marks)


def heatmap_chart(heatmap: Heatmap) -> str:
    """Draw noisy counts as coloured cells at their true edges, with axes and a colour key.

    >>> heatmap_chart(Heatmap((0, 1), (0, 1), ((-2.5,),), 3.0, "x", "y")).count('data-value="-2.5"')
    1
    """
    x_span, y_span = (heatmap.x_edges[0], heatmap.x_edges[-1]), (heatmap.y_edges[0], heatmap.y_edges[-1])
    peak = max([0.0, *(svg.tame(count) for row in heatmap.counts for count in row)])
    left, top, bottom = 36 + svg.room(label for _, label in svg.ticks(*y_span)), 8.0, 288.0
    right = svg.WIDTH - 32 - svg.room(label for _, label in svg.ticks(0, peak))
    x, y = svg.scale(*x_span, left, right), svg.scale(*y_span, bottom, top)
    cells = [
        _cell((x(a), x(b)), (y(c), y(d)), count, peak)
        for (a, b), row in zip(pairwise(heatmap.x_edges), heatmap.counts, strict=True)
        for (c, d), count in zip(pairwise(heatmap.y_edges), row, strict=True)
    ]
    marks = [
        svg.axis_below(*x_span, x, bottom, bottom),
        svg.axis_beside(*y_span, y, left, left),
        svg.tag("g", "".join(cells), class_="cells", shape_rendering="crispEdges"),
        svg.text(svg.shorten(heatmap.x_label, 300), (left + right) / 2, bottom + 40, "middle"),
        svg.text(svg.shorten(heatmap.y_label, 276), 0, 0, "middle", transform="translate(12 148) rotate(-90)"),
        _colour_key(peak, right + 16, bottom, top),
    ]
    desc = f"{len(cells)} cells, each with noise of standard deviation {figure(heatmap.noise_std)}."
    return svg.frame("heatmap", bottom + 48, f"{heatmap.y_label} against {heatmap.x_label}", desc, marks)


def ledger_chart(rows: Sequence[LedgerRow]) -> str:
    """Draw the shares of the budget as one stacked bar; it has no letters in it, so the page may stretch it.

    >>> row = LedgerRow("slices", "slice sums", "gaussian", 1.0, 2.0, None, 0.5)
    >>> ledger_chart([row, row]).count('data-value="0.5"')
    2
    """
    shares = [max(svg.tame(row.share), 0.0) for row in rows]
    x = svg.scale(0, max(1.0, sum(shares)), 0, svg.WIDTH)
    marks = [svg.tag("rect", width=svg.WIDTH, height=12.0, style=f"fill:{svg.RULE}")]
    for item, (start, end) in enumerate(pairwise(accumulate(shares, initial=0.0))):
        title = svg.tag("title", svg.escape(f"{rows[item].purpose}: {percent(rows[item].share)}"))
        style = f"fill:{svg.shade(item, len(rows))}"
        value = svg.exact(rows[item].share)
        width = x(end) - x(start)
        marks.append(svg.tag("rect", title, x=x(start), width=width, height=12.0, style=style, data_value=value))
    desc = f"{len(rows)} releases, in the order of the table."
    return svg.frame("shares", 12, "Shares of the budget", desc, marks, preserveAspectRatio="none")


def _loading_limit(loadings: Iterable[Loading]) -> float:
    """Find the end of the axis: bars and whiskers fit, but no whisker shrinks the bars below a third."""
    pairs = [
        (abs(svg.tame(value)), abs(svg.tame(error)))
        for loading in loadings
        for value, error in zip(loading.values, loading.errors, strict=True)
    ]
    bars = max((value for value, _ in pairs), default=0.0)
    reach = max((value + error for value, error in pairs), default=0.0)
    return (min(reach, 3 * bars) if bars else reach) or 1.0


def _loading_row(
    loading: Loading,
    direction: int,
    shown: tuple[str, str],
    band: tuple[float, float],
    limit: float,
    x: svg.Scale,
    errors_known: bool,
) -> str:
    (name, text), (y, step) = shown, band
    value, error = svg.tame(loading.values[direction]), abs(svg.tame(loading.errors[direction]))
    clear = not errors_known or (abs(value) > 2 * error and math.isfinite(loading.errors[direction]))
    plus_minus = f" ± {figure(loading.errors[direction])}" if math.isfinite(loading.errors[direction]) else ""
    bar = svg.tag(
        "rect",
        x=min(x(0), x(value)),
        y=y - step * 0.28,
        width=abs(x(value) - x(0)),
        height=step * 0.56,
        style=f"fill:{svg.BAR}" + ("" if clear else ";fill-opacity:0.35"),
        data_value=svg.exact(loading.values[direction]),
        data_error=svg.exact(loading.errors[direction]),
    )
    marks = [
        svg.tag("title", svg.escape(f"{loading.feature}: {text}{plus_minus}")),
        svg.text(name, 126, y + 4, "end"),
        bar,
        _whisker(loading.values[direction], error, y, limit, x),
        svg.text(text, svg.WIDTH, y + 4, "end", svg.INK if clear else svg.MUTED),
    ]
    return svg.tag("g", "".join(marks), class_="loading", data_feature=loading.feature)


def _whisker(value: float, error: float, y: float, limit: float, x: svg.Scale) -> str:
    """Draw value ± error; an end that leaves the axis gets no cap."""
    if error == 0 or not math.isfinite(value):
        return ""
    ends = (value - error, value + error)
    caps = [svg.line(x(end), y - 3, x(end), y + 3, svg.INK) for end in ends if abs(end) <= limit]
    return svg.line(x(ends[0]), y, x(ends[1]), y, svg.INK) + "".join(caps)


def _columns(spectrum: Spectrum, left: float, right: float, bottom: float, y: svg.Scale) -> list[str]:
    pitch = (right - left) / max(len(spectrum.values), 1)
    width = min(0.72 * pitch, 48.0)
    return [
        svg.tag(
            "rect",
            x=left + pitch * (i + 0.5) - width / 2,
            y=y(value),
            width=width,
            height=bottom - y(value),
            class_="chosen" if i < spectrum.chosen else "rest",
            style=f"fill:{svg.BAR if i < spectrum.chosen else svg.PLAIN}",
            data_value=svg.exact(value),
        )
        for i, value in enumerate(spectrum.values)
    ]


def _column_labels(spectrum: Spectrum, left: float, right: float, bottom: float, y: svg.Scale) -> list[str]:
    """Number the columns (not all, if they are many), and write their values above them if there is room."""
    count, texts = len(spectrum.values), figures(spectrum.values)
    pitch = (right - left) / max(count, 1)
    middles = [left + pitch * (i + 0.5) for i in range(count)]
    numbered = range(0, count, math.ceil(count / 15) or 1)
    below = [svg.text(str(i + 1), middles[i], bottom + 17, "middle", svg.MUTED) for i in numbered]
    if 1.2 * svg.room(texts) > pitch:
        return below
    marks = zip(texts, middles, spectrum.values, strict=True)
    return below + [svg.text(text, x, y(value) - 5, "middle") for text, x, value in marks]


def _noise_edge(edge: float, left: float, right: float, y: svg.Scale) -> str:
    if not math.isfinite(edge):
        return ""
    at, x = y(edge), right + 10
    dash = svg.line(left, at, right + 6, at, svg.INK, stroke_dasharray="5 4", class_="edge", data_value=svg.exact(edge))
    return dash + svg.text("noise edge", x, at - 1) + svg.text(figure(edge), x, at + 14)


def _cell(x: tuple[float, float], y: tuple[float, float], count: float, peak: float) -> str:
    top = len(svg.RAMP) - 1
    step = min(int((top + 1) * (max(svg.tame(count), 0.0) / (peak or 1.0))), top)
    return svg.tag(
        "rect",
        svg.tag("title", figure(count)),
        x=x[0],
        y=y[1],
        width=x[1] - x[0],
        height=y[0] - y[1],
        style=f"fill:{svg.level(step)}",
        data_value=svg.exact(count),
    )


def _colour_key(peak: float, x: float, bottom: float, top: float) -> str:
    size = (bottom - top) / len(svg.RAMP)
    steps = [
        svg.tag("rect", x=x, y=bottom - size * (i + 1), width=10.0, height=size, style=f"fill:{svg.level(i)}")
        for i in range(len(svg.RAMP))
    ]
    y = svg.scale(0, peak, bottom, top)
    labels = [svg.text(label, x + 16, y(at) + 4, "start", svg.MUTED) for at, label in svg.ticks(0, peak)]
    return svg.tag("g", "".join(steps), shape_rendering="crispEdges") + "".join(labels)


TOP, BOTTOM, LEFT, RIGHT = 14.0, 236.0, 58.0, 322.0
_ROUND = (1.0, 2.0, 5.0)
_LINE = 15.0  # least distance of two labels


def what_if_chart(what_if: WhatIf) -> str:
    """Draw the losses to expect; the run itself is a full dot, the loss without privacy a dashed line.

    >>> seen = WhatIf("epsilon", (0.5, 1.0), (1000,), ((0.4, 0.2),), (0.1,), 1.3, (0, 1), "")
    >>> what_if_chart(seen).count('data-value="0.2"')
    1
    """
    # those that can be drawn on a logarithmic axis
    losses = [loss for row in (*what_if.losses, what_if.plain) for loss in row if math.isfinite(loss) and loss > 0]
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
