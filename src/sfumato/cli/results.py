"""What a fit leaves behind: the report, the model and the directions."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.report import Document
    from sfumato.sources.files import FileSource

RESULTS = {
    "report.html": "the report: open it in a browser",
    "model.json": "the model, for sfumato transform",
    "directions.csv": "the directions, in the units of the table",
}


def write_model(estimator: Any, source: "FileSource", response: str | None, draft: Path) -> None:
    """Write the model and the directions."""
    from sfumato.model import save_model

    save_model(estimator, draft / "model.json", response=response, columns=source.columns, second=source.second)
    with (draft / "directions.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(_pairs(estimator) if source.second is not None else _directions(estimator))


def write_report(shown: "Document", draft: Path) -> None:
    """Write the report."""
    from sfumato.report.html import render

    (draft / "report.html").write_text(render(shown), encoding="utf-8")


def _directions(estimator: Any) -> Iterator[list[str]]:
    """One line for each feature; a sparse method has those that it kept."""
    from sfumato.report.loadings import feature_names, kept

    names, chosen = feature_names(estimator), kept(estimator)
    places = range(len(names)) if chosen is None else chosen.tolist()
    yield ["feature", *_headings(("direction", "standard_error"), len(estimator.directions_))]
    yield from _lines(names, places, estimator.directions_, estimator.standard_errors_)


def _pairs(estimator: Any) -> Iterator[list[str]]:
    """One line for each feature of either set: its canonical weights, and the directions that transform uses."""
    from sfumato.report.loadings import feature_names, second_names

    x, y = feature_names(estimator), second_names(estimator)
    yield ["set", "feature", *_headings(("weight", "direction"), len(estimator.directions_))]
    for line in _lines(x, range(len(x)), estimator.x_weights_, estimator.directions_):
        yield ["first", *line]
    for line in _lines(y, range(len(y)), estimator.y_weights_, estimator.y_directions_):
        yield ["second", *line]


def _headings(words: tuple[str, ...], n_directions: int) -> list[str]:
    return [f"{word}_{i}" for i in range(1, n_directions + 1) for word in words]


def _lines(names: tuple[str, ...], places: Iterable[int], *tables: Any) -> Iterator[list[str]]:
    rows = [row for together in zip(*tables, strict=True) for row in together]
    for j in places:
        yield [names[j], *(repr(float(row[j])) for row in rows)]
