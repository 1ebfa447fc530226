"""A study as a self-contained page: its picture, and the table."""

from html import escape

from sfumato.papers.curves import curves
from sfumato.papers.picture import picture
from sfumato.papers.run import Done, table
from sfumato.papers.study import Study


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
