"""A source that tells how much of it has been read. Apart from the bar, which is shown before `Source` is loaded."""

from collections.abc import Callable, Iterator

from sfumato.records import Records
from sfumato.sources import Source


class ProgressSource(Source):
    """Another source, and a call with the fraction of a pass that each part is, once it is read."""

    def __init__(self, source: Source, told: Callable[[float], None]) -> None:
        self._source, self._told = source, told
        self.n_features, self.response = source.n_features, source.response
        self.feature_names, self.has_response = source.feature_names, source.has_response
        self.n_second, self.binary = source.n_second, source.binary
        self.has_people = source.has_people

    def parts(self) -> list[int]:
        return self._source.parts()

    def read(self, part: int) -> Iterator[Records]:
        yield from self._source.read(part)
        self._told(1.0 / len(self._source.parts()))

    def count(self) -> int:
        return self._source.count()

    def first_rows(self, rows: int) -> Source:
        return ProgressSource(self._source.first_rows(rows), self._told)
