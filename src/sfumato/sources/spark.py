"""A table that lies in Spark: its columns are known here, its records stay where they are."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from sfumato.sources.table import NO_KINDS, Kind, Table, sliced


class SparkTable(Table):
    """A Spark DataFrame; one part. Whoever reads it here brings its columns to this process."""

    def __init__(self, frame: Any) -> None:
        super().__init__(Path("the Spark table"))
        self.frame = frame

    @cached_property
    def schema(self) -> Any:
        return self.frame.limit(0).toArrow().schema

    def batches(
        self, part: int, columns: Sequence[str], rows: int, kinds: Mapping[str, Kind] = NO_KINDS
    ) -> Iterator[Any]:
        for batch in self.chosen(columns).toArrow().to_batches():
            yield from sliced(batch, rows)

    def chosen(self, columns: Sequence[str]) -> Any:
        """Some of the columns; a point in a name is one of the name."""
        return self.frame.select(*(f"`{name.replace('`', '``')}`" for name in columns))

    def count(self) -> int:
        return int(self.frame.count())

    def size(self, columns: int) -> int:
        return 8 * columns * self.count()


def is_spark(source: Any) -> bool:
    """Whether something is a Spark DataFrame, classic or Connect."""
    return type(source).__module__.startswith("pyspark.") and hasattr(source, "mapInArrow")
