"""How the features of a model were made: the columns of each table, their encoding, and the response."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.model.fields import checked, texts
from sfumato.model.strict import Node
from sfumato.sources.columns import Columns

TABLE = ("n_features", "feature_names", "columns", "categorical")


@dataclass(frozen=True)
class Side:
    """The features of one table, and from which columns they were made."""

    n_features: int
    names: tuple[str, ...] | None
    columns: Columns | None

    def features(self) -> Columns:
        """The columns to read from a file."""
        if self.columns is not None:
            return self.columns
        if self.names is None:
            raise InputError("model: it was fitted on a table without column names; use transform in Python.")
        return Columns(self.names)


@dataclass(frozen=True)
class Inputs(Side):
    """The features, how many records there were where that is public, and which column was the response."""

    n_records: int | None
    response: str | None
    second: Side | None

    def remember(self, estimator: Any) -> None:
        """Tell a fitted estimator about its tables."""
        estimator.n_features_in_, estimator.n_records_ = self.n_features, self.n_records
        names = (("feature_names_in_", self.names), ("y_feature_names_in_", self.second and self.second.names))
        for attribute, known in names:
            if known is not None:
                setattr(estimator, attribute, np.asarray(known, dtype=object))


def written(estimator: Any, response: str | None, columns: Columns | None, second: Columns | None) -> dict[str, Any]:
    """What a file says of the inputs, as values still to be made plain."""
    names, others = (getattr(estimator, name, None) for name in ("feature_names_in_", "y_feature_names_in_"))
    mean = getattr(estimator, "y_mean_", None)
    return {
        "n_records": getattr(estimator, "n_records_", None),
        "response": response,
        **_table(estimator.n_features_in_, names, columns),
        "second": None if mean is None else _table(len(mean), others, second),
    }


def read(node: Node) -> Inputs:
    """The inputs that were written."""
    fields = node.fields("n_records", "response", *TABLE, "second")
    n = None if fields["n_records"].is_null else fields["n_records"].whole(1)
    response = None if fields["response"].is_null else fields["response"].text()
    second = None if fields["second"].is_null else Side(*_side(fields["second"].fields(*TABLE)))
    return Inputs(*_side(fields), n, response, second)


def _table(n_features: int, names: Any, columns: Columns | None) -> dict[str, Any]:
    return {
        "n_features": int(n_features),
        "feature_names": None if names is None else [str(name) for name in names],
        "columns": None if columns is None else list(columns.features),
        "categorical": {} if columns is None else {name: list(c) for name, c in columns.categorical.items()},
    }


def _side(fields: dict[str, Node]) -> tuple[int, tuple[str, ...] | None, Columns | None]:
    p = fields["n_features"].whole(1)
    names = None if fields["feature_names"].is_null else texts(fields["feature_names"])
    if names is not None and (len(names) != p or len(set(names)) < p):
        fields["feature_names"].refuse(f"{p} different names")
    categorical = {name: texts(categories) for name, categories in fields["categorical"].items()}
    if fields["columns"].is_null:
        return p, names, None
    columns = checked(fields["columns"], lambda: Columns(texts(fields["columns"]), categorical))
    if columns.names != names:
        fields["columns"].refuse("the columns that make feature_names")
    return p, names, columns
