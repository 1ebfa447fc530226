"""Asking: how a step puts questions to records without seeing who answers.

A step is a generator. It yields what it asks and is sent the release; what it returns is its result. Who answers is up
to whoever drives it: the curator, a federation's sites, the stand-in of a forecast, the replay of an audit.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from sfumato.privacy.door import Door
from sfumato.release import Release
from sfumato.statistics.parts import OnColumns
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A question: what to sum over the records, and the line of the plan that pays for it.

    `picks` says that the answer is which scores of the sum are largest, not the sum.
    """

    query: BoundedSum
    line: str
    picks: bool = False


Asking: TypeAlias = Generator[Ask, Any, T]
"""A step: asks, is sent releases, returns a T."""


def ask(query: BoundedSum, line: str) -> Asking[Release]:
    """Ask for a noisy sum: ``released = yield from ask(query, line)``."""
    released: Release = yield Ask(query, line)
    return released


def pick(query: BoundedSum, line: str) -> Asking[IntArray]:
    """Ask which scores are largest: ``picked = yield from pick(query, line)``."""
    picked: IntArray = yield Ask(query, line, picks=True)
    return picked


def drive(step: Asking[T], door: Door) -> T:
    """Run a step to its end, every question answered by the door.

    >>> from sfumato.statistics.histograms import Bins, ResponseHistogram
    >>> class Silent:
    ...     def answer(self, query, name):
    ...         return Release(np.array([3.0]), np.zeros(1))
    >>> def count_records():
    ...     released = yield from ask(ResponseHistogram(Bins(np.empty(0))), "count")
    ...     return float(released.value[0])
    >>> drive(count_records(), Silent())
    3.0
    """
    charged = 0
    with np.errstate(all="ignore"):  # no release makes a step raise or warn, whatever the user asked numpy for
        try:
            asked = next(step)
            while True:
                answer, charged = door.select if asked.picks else door.answer, charged + 1
                asked = step.send(answer(asked.query, asked.line))
        except StopIteration as end:
            return cast(T, end.value)
        except KeyboardInterrupt as stop:
            stop.add_note(_what_it_cost(charged))
            raise


def _what_it_cost(charged: int) -> str:
    if not charged:
        return "The fit was interrupted before its first release: nothing was spent."
    releases = "the first release" if charged == 1 else f"the first {charged} releases"
    return (
        f"The fit was interrupted, and no result was made. Of its plan {releases} may have been charged and stay in "
        "its ledger; the rest is given back. To wait for a fit instead: with sfumato.signals.defer_interrupts(): ..."
    )


def restated(step: Asking[T], change: Callable[[Ask], Ask]) -> Asking[T]:
    """The same step with another question in the place of each of its own."""
    try:
        asked = next(step)
        while True:
            asked = step.send((yield change(asked)))
    except StopIteration as end:
        return cast(T, end.value)


def on_columns(step: Asking[T], columns: Sequence[int] | IntArray) -> Asking[T]:
    """The same step about some columns: each of its questions is about records that have no others.

    What runs on a table thereby runs on a selection of its features; plan, ledger, records and noise stay the same.
    """
    some = np.asarray(columns, dtype=np.int64)
    return restated(step, lambda asked: replace(asked, query=_about(asked.query, some)))


def _about(query: BoundedSum, columns: IntArray) -> OnColumns:
    """The question about these columns, and of a question about some of them, about those: selected once."""
    if type(query) is OnColumns:
        return OnColumns(query.query, columns[query.columns])
    return OnColumns(query, columns)
