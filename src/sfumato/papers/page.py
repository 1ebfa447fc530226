"""A study as a self-contained page: a dot for every column of every row, with its standard error, and the table."""

from html import escape

from sfumato.papers.curves import COLOURS as _COLOURS
from sfumato.papers.curves import curves
from sfumato.papers.run import Done, cells, columns, table
from sfumato.papers.study import Study

_LEFT, _WIDTH, _LINE = 190, 560, 26


def page(study: Study, done: Done, command: str) -> str:
    """The page as text; it loads nothing from elsewhere."""
    header, rows = table(study, done)
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(study.title)}</title><style>body{{font:15px/1.5 system-ui,sans-serif;max-width:1100px;"
        "margin:2em auto;padding:0 1em;color:#222}table{border-collapse:collapse;font-size:13px}"
        "td,th{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right}"
        "td:first-child,th:first-child{text-align:left}</style></head><body>"
        f"<h1>{escape(study.title)}</h1><p>{escape(study.note)}</p>{picture(study, done)}{curves(study, done)}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{study.statistic} over replications ± standard error. Made by <code>{escape(command)}</code>.</p>"
        "</body></html>\n"
    )


def picture(study: Study, done: Done) -> str:
    """Dots on one axis, row by row; hollow dots are printed values."""
    summaries = cells(study, done)
    printed, measured = columns(study, summaries)
    values = [summary.value for summary in summaries.values()] + [v for row in study.rows for v in row.printed.values()]
    most = max([value for value in values if value == value], default=1.0) * 1.05 or 1.0
    colour = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(measured)}
    marks = [_legend(measured, colour)]
    for i, row in enumerate(study.rows):
        y = 60 + i * _LINE
        marks.append(f"<text x='{_LEFT - 8}' y='{y + 4}' text-anchor='end'>{escape(row.label)}</text>")
        marks.append(f"<line x1='{_LEFT}' x2='{_LEFT + _WIDTH}' y1='{y}' y2='{y}' stroke='#eee'/>")
        for name in printed:
            if name in row.printed:
                marks.append(_dot(row.printed[name] / most, y, "none", "#555", f"printed {name}: {row.printed[name]}"))
        for name in measured:
            if (row.label, name) in summaries:
                cell = summaries[row.label, name]
                marks.append(_dot(cell.value / most, y, colour[name], colour[name], f"{name}: {cell}"))
    height = 80 + len(study.rows) * _LINE
    axis = f"<text x='{_LEFT}' y='{height - 4}'>0</text>" + (
        f"<text x='{_LEFT + _WIDTH}' y='{height - 4}' text-anchor='end'>{most:.2f}</text>"
    )
    return (
        f"<svg viewBox='0 0 {_LEFT + _WIDTH + 40} {height}' role='img' font-size='12'>"
        f"<title>{escape(study.title)}</title>{''.join(marks)}{axis}</svg>"
    )


def _dot(part: float, y: float, fill: str, stroke: str, title: str) -> str:
    x = _LEFT + _WIDTH * min(max(part, 0.0), 1.0)
    return (
        f"<circle cx='{x:.1f}' cy='{y}' r='5' fill='{fill}' stroke='{stroke}'><title>{escape(title)}</title></circle>"
    )


def _legend(names: list[str], colour: dict[str, str]) -> str:
    parts = [
        f"<circle cx='{10 + i * 115}' cy='16' r='5' fill='{colour[name]}'/>"
        f"<text x='{19 + i * 115}' y='20'>{escape(name)}</text>"
        for i, name in enumerate(names)
    ]
    return "".join(parts) + "<text x='10' y='38' fill='#555'>hollow: printed in the paper</text>"
