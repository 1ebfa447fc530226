"""One file as many sites, for a first try."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.sources import ArraySource, ResponseKind, Source
from sfumato.sources.files import open_source
from sfumato.sources.formats import open_tables
from sfumato.sources.names import suggest


def by_column(
    path: str,
    column: str,
    response: str,
    classes: Sequence[Any] | None = None,
    response_kind: ResponseKind | None = None,
) -> dict[str, Source]:
    """The records of a file as sites by name: one for each value of `column`, which is read as text."""
    table = open_tables([Path(path)])[0]
    for name, option in ((column, "by"), (response, "response")):
        suggest(name, table.names, option)
    features = [name for name in table.names if name not in (column, response)]
    source = open_source([Path(path)], response, features, classes, response_kind=response_kind)
    chunks = [records for part in source.parts() for records in source.read(part)]
    if not chunks:
        raise InputError(f"data: {path} holds no records; give a file with some.")
    x, y = np.concatenate([chunk.x for chunk in chunks]), np.concatenate([chunk.y for chunk in chunks])
    labels = np.asarray(table.whole({column: "text"}).column(column).to_pylist(), dtype=object).astype(str)
    return {
        label: ArraySource(x[labels == label], y[labels == label], source.response, source.feature_names)
        for label in sorted(set(labels.tolist()))
    }
