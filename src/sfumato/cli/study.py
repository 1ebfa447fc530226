"""What is fitted: a table, its columns, and what is known about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.bounds import read_bounds
from sfumato.cli.wishes import Wishes
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.bounds import GivenBounds
    from sfumato.estimators.explanation import Explanation
    from sfumato.files import FileSource
    from sfumato.sources import ResponseKind


@dataclass(frozen=True)
class Study:
    """A table, and which of its columns are what; None is what was not given."""

    data: str
    response: str | None
    second: list[str] | None
    features: list[str] | None
    categorical: dict[str, list[str]]
    bounds: str
    drop_missing: bool
    response_kind: "ResponseKind | None" = None
    person: str | None = None

    @property
    def title(self) -> str:
        """What is explained, and where."""
        return self.data if self.response is None else f"{self.response} in {self.data}"

    def source(self, classes: Sequence[str] | None) -> "FileSource":
        """The records; nothing but the names and kinds of the columns has been read yet."""
        from sfumato.files import open_source
        from sfumato.files.names import find

        return open_source(
            find(self.data),
            self.response,
            self.features,
            classes,
            self.categorical,
            drop_missing=self.drop_missing,
            second=self.second or (),
            response_kind=self.response_kind,
            person=self.person,
        )

    def public_bounds(self, source: "FileSource") -> "dict[str, GivenBounds]":
        """The bounds that were given, of each table."""
        tables = {"bounds": source.columns} | ({} if source.second is None else {"y_bounds": source.second})
        if self.bounds in ("none", "search"):
            return dict.fromkeys(tables, None if self.bounds == "none" else "search")
        path = Path(self.bounds)
        return {name: read_bounds(path, columns, source.table_names) for name, columns in tables.items()}

    def relation(self, asked: str | None) -> str:
        """The neighbouring relation. Under 'replace' the number of records is public; of complete ones it is not."""
        if self.drop_missing and asked == "replace":
            raise InputError(
                "relation: --drop-missing makes the number of records private; use --relation add-remove, or impute."
            )
        return asked or ("add-remove" if self.drop_missing else "replace")


def prepare(study: Study, wishes: Wishes) -> "tuple[Any, FileSource]":
    """The estimator with its public bounds, and the records that it is for; nothing has been read yet."""
    estimator = wishes.build()
    source = study.source(wishes.classes)
    if wishes.estimator == "lda" and source.response.categories is None:
        raise InputError(
            f"classes: column {study.response!r} holds numbers; list its classes, as --classes 0,1, "
            "or say --response-kind categorical."
        )
    return estimator.set_params(**study.public_bounds(source)), source


def plan_of(estimator: Any, source: "FileSource", n_records: int | None = None) -> "Explanation":
    """What a fit would do; the records are counted where their number is public, and not looked at.

    `n_records` are a number of records to suppose instead.
    """
    from sklearn.base import clone

    # Any classes make the same plan: those of a text response need not be known for it.
    asked = clone(estimator).set_params(classes=("",)) if source.response.categories is not None else estimator
    public = estimator.relation == "replace" and estimator.rows_per_person is None
    n = n_records or (source.count() if public else 1)
    return asked.explain(n, *sizes(source))  # type: ignore[no-any-return]


def sizes(source: "FileSource") -> tuple[int, ...]:
    """Number of features of each table."""
    first = len(source.columns.names)
    return (first,) if source.second is None else (first, len(source.second.names))
