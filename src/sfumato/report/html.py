"""The report as one HTML page: a value in, a string out.

The page loads nothing: no script, font, image or style sheet from elsewhere, and a content policy in its head
forbids the browser to try. Whatever comes from the data set (feature names, labels) is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sfumato.hints import visible
from sfumato.report import charts, svg
from sfumato.report.document import Document, Loading, figure, figures, percent, plural

SHOWN = 20
"""Features that are drawn at once; those that weigh less are folded away."""


def render(document: Document) -> str:
    """Write a document as a self-contained HTML page; to put it into a file is left to the caller.

    >>> from sfumato.report import Document, Loading, Spectrum
    >>> spectrum = Spectrum((0.9,), edge=0.1, chosen=1, why="One value lies above the noise edge.")
    >>> page = render(Document("SIR", "It is private.", "", (), (Loading("age", (1.0,), (0.1,)),),
    ...                        spectrum, None, (), "", (), "", rehearsal=False))
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    return svg.printable(  # last, over the whole page: names from a table may hold what no document may
        templates()
        .get_template("report.html.jinja")
        .render(
            document=document,
            loading_charts=_loading_charts(document, document.loadings[:SHOWN]),
            shown=SHOWN,
            other_charts=_loading_charts(document, document.loadings[SHOWN:]),
            loading_table=loading_table(document.loadings),
            spectrum_chart=Markup(charts.spectrum_chart(document.spectrum)) if document.spectrum else None,
            what_if_chart=Markup(charts.what_if_chart(document.what_if)) if document.what_if else None,
            heatmap_chart=Markup(charts.heatmap_chart(document.heatmap)) if document.heatmap else None,
            ledger_chart=Markup(charts.ledger_chart(document.ledger)),
            ramp=svg.RAMP,
            column=document.unit.capitalize(),
            plural=plural(document.unit),
            heading=plural(document.unit).capitalize(),
            spectrum_plural=plural(document.spectrum.name) if document.spectrum else "",
        )
    )


def _loading_charts(document: Document, loadings: tuple[Loading, ...]) -> list[Markup]:
    """One chart for each direction, of some features."""
    return [Markup(charts.loading_chart(loadings, k)) for k in range(document.n_directions)] if loadings else []


@cache
def templates(package: str = "sfumato.report", folder: str = ".") -> Environment:
    """The templates of a package: what they are given is escaped, and nothing may be missing."""
    loader = PackageLoader(package, folder)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    helpers = (figure, figures, percent, svg.shade, svg.exact, visible)
    known = {helper.__name__: helper for helper in helpers}
    environment.globals |= known
    environment.filters |= known
    return environment


def loading_table(rows: Sequence[Loading]) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    """One row per feature; per direction the value and its error, as written and exact."""
    columns = []
    for k in range(len(rows[0].values) if rows else 0):
        values, errors = [row.values[k] for row in rows], [row.errors[k] for row in rows]
        exact = map(svg.exact, values), map(svg.exact, errors)
        columns.append(list(zip(figures(values), figures(errors, 2), *exact, strict=True)))
    return [(row.feature, [column[i] for column in columns]) for i, row in enumerate(rows)]
