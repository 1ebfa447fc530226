"""Door: all that a step may ask of records. Who stands behind it (a curator, sites, a stand-in) the step cannot see."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from sfumato.privacy.plan import Plan
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation


class SumDoor(Protocol):
    """Answers questions whose answer is a noisy sum; enough for most steps."""

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The noisy sum for the plan's line `name`, which is thereby used up."""


class Door(SumDoor, Protocol):
    """Answers sums and selections."""

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """Which coordinates of the sum are largest, privately, best first; the sums themselves stay inside."""


class Setting(Protocol):
    """Who holds the records and adds them up."""

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records."""


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """What is behind a door: exact sums, and the plan and relation by which they are released.

    `site` is the name of the site whose door it is, empty where one curator holds all records.
    """

    setting: Setting
    plan: Plan
    relation: Relation
    site: str = ""


Watch = Callable[[Door, Behind], Door]
"""Given a door that is being opened and what is behind it, the door to use in its place."""

_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Put `watch`'s doors before all that are opened in the ``with`` block, whichever estimator opens them.

    For audits: they write down what passes, or hand in releases of their own. They see exact sums, so what they learn
    is not private.
    """
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def opened(door: Door, behind: Behind) -> Door:
    """The door as its user gets it: itself, or the one that an audit puts before it."""
    watch = _watch.get()
    return door if watch is None else watch(door, behind)
