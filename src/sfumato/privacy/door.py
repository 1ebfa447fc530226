"""Door: all that a step may ask of records. Who stands behind it (a curator, sites, a stand-in) the step cannot see."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import RECORD, Unit
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation

Array = TypeVar("Array", bound=NDArray[Any])


class Door(Protocol):
    """Answers sums and selections."""

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The noisy sum for the plan's line `name`, which is thereby used up."""

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """Which coordinates of the sum are largest, privately, best first; the sums themselves stay inside."""


class Setting(Protocol):
    """Who holds the records and adds them up."""

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over all records."""


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """What is behind a door: exact sums, and the plan and relation by which they are released.

    `site` is the name of the site whose door it is, empty where one curator holds all records. `unit` is whom the door
    protects.
    """

    setting: Setting
    plan: Plan
    relation: Relation
    site: str = ""
    unit: Unit = RECORD

    def bounded(self, query: BoundedSum) -> BoundedSum:
        """A question as it reaches the records: with the bounds of a person's rows, where persons are protected."""
        return self.unit.of(query)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question that everybody's own device answers: no door, but the same seam for audits.

    `exact` has a row of integers for each person, the true answer. Two persons' rows differ by at most `reach` in the
    length weighted by `weights`.
    """

    question: object
    exact: IntArray
    reach: float
    weights: FloatArray = field(default_factory=lambda: np.ones(1))


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """What a door of an audit knows: the door that it stands before, and what is behind that."""

    door: Door
    behind: Behind


Watch = Callable[[Door, Behind], Door]
"""Given a door that is being opened and what is behind it, the door to use in its place."""
WatchDevices = Callable[[Asked, NDArray[Any]], NDArray[Any]]
"""Given what devices were asked and what they answer, the answers to use in their place."""

_watch: ContextVar[tuple[Watch | None, WatchDevices | None]] = ContextVar("watch", default=(None, None))


@contextmanager
def watching(doors: Watch | None = None, devices: WatchDevices | None = None) -> Iterator[None]:
    """Put an audit's doors before all that are opened in the ``with`` block, whichever estimator opens them.

    They write down what passes, or hand in releases of their own; `devices` does so with the answers of devices.
    An audit sees exact sums, so what it learns is not private.
    """
    token = _watch.set((doors, devices))
    try:
        yield
    finally:
        _watch.reset(token)


def open_door(door: Door, behind: Behind) -> Door:
    """The door as its user gets it: itself, or the one that an audit puts before it."""
    watch, _ = _watch.get()
    return door if watch is None else watch(door, behind)


def pass_on(asked: Asked, answers: Array) -> Array:
    """The answers of devices as the analyst gets them: themselves, or what an audit puts in their place."""
    _, watch = _watch.get()
    return answers if watch is None else cast(Array, watch(asked, answers))
