"""What a worker of a cluster does: (source, parts, question) to integers. No other code of ours runs there.

A task names files, parts of them and a question, all as plain JSON; records are read by the worker and stay in its
memory. What it gives back is an exact sum without noise, which is why the cluster belongs to the curator.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any

from sfumato.errors import InputError, SfumatoError
from sfumato.settings.central import Central
from sfumato.sources import Source
from sfumato.statistics.wire import Decoder
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

_SOURCES, _QUESTIONS = 2, 4
"""Sources a worker keeps open: one, and the same with the first rows of each person; and the questions about each."""

_FAILED = "cluster: a worker failed ({}); see that it can read the data and has the same version of sfumato."


class WorkerError(SfumatoError):
    """A worker failed; the sentence names the type of the error and nothing else, its text may quote a record."""


@contextmanager
def _unquoted() -> Iterator[None]:
    """Pass our own sentences about a table on; of any other error tell its type alone."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise WorkerError(_FAILED.format(type(error).__name__)) from None


def add_parts(recipe: str, parts: Sequence[Sequence[int]], question: str) -> IntArray:
    """The exact sum of a question over some parts of a source.

    Parameters
    ----------
    recipe : str
        How to open the source (`sfumato.sources.files.FileSource.recipe`), as JSON.
    parts : sequence of (file, part)
        Which of its parts.
    question : str
        A bounded sum (`sfumato.statistics.wire`), as JSON.
    """
    with _unquoted():
        opened = _open(recipe)
        return Central(opened.source, threads=1).sum_parts(opened.query(question), parts)


def check_parts(recipe: str, parts: Sequence[Sequence[int]]) -> str | None:
    """Why some parts of a source are refused, as a sentence that names no value; None if they are not."""
    try:
        with _unquoted():
            Central(_open(recipe).source, threads=1).check_parts(parts)
    except SfumatoError as error:
        return str(error)
    return None


def add_batches(batches: Iterator[Any], recipe: str, columns: Sequence[str], question: str) -> Iterator[Any]:
    """The same for the Arrow batches that a task of Spark is given: one row, the bytes of the sum."""
    source = _passing(batches, recipe, columns)
    if source is not None:
        with _unquoted():
            total = Central(source, threads=1).sum(Decoder().query(json.loads(question)))
        yield _row("total", total.astype("<i8").tobytes())


def check_batches(batches: Iterator[Any], recipe: str, columns: Sequence[str]) -> Iterator[Any]:
    """Why the batches of a task of Spark are refused: one row with a sentence, or none."""
    source = _passing(batches, recipe, columns)
    if source is not None:
        try:
            with _unquoted():
                source.check()
        except InputError as error:
            yield _row("refused", str(error))


def _passing(batches: Iterator[Any], recipe: str, columns: Sequence[str]) -> Source | None:
    """Batches as a source that is read once, their columns by these names; None where there are none."""
    from sfumato.sources.files import source_of
    from sfumato.sources.streams import PassingTable

    named = (batch.rename_columns(list(columns)) for batch in batches)
    first = next(named, None)
    if first is None:
        return None
    return source_of([PassingTable(first.schema, chain([first], named))], **json.loads(recipe))


def _row(name: str, value: bytes | str) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({name: [value]})


class _Opened:
    """A source, and the questions that were asked about it last.

    Equal whitenings of different questions are one object, or their records would be whitened for each question.
    """

    def __init__(self, source: Source) -> None:
        decoder = Decoder()
        self.source, self._lock = source, threading.Lock()
        self._read = lru_cache(_QUESTIONS)(lambda question: decoder.query(json.loads(question)))

    def query(self, question: str) -> BoundedSum:
        """The question as a sum; read once for all tasks that ask it."""
        with self._lock:
            return self._read(question)


_opening = threading.Lock()


def _open(recipe: str) -> _Opened:
    with _opening:  # two threads that ask at once get the same
        return _reopen(recipe)


@lru_cache(_SOURCES)
def _reopen(recipe: str) -> _Opened:
    from sfumato.sources.files import open_recipe

    wanted: dict[str, Any] = json.loads(recipe)
    return _Opened(open_recipe(wanted))
