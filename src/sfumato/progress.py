"""Progress: who wants to know how far a run has come. Names of planned releases only, nothing from the records."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    """Told what a run plans to release and, one by one, what it is working on."""

    def planned(self, purposes: Sequence[str]) -> None:
        """The purposes of all releases, in order."""

    def started(self, purpose: str) -> None:
        """The next release is being made."""

    def advanced(self, fraction: float) -> None:
        """So much more of the records has been read for it; told by any thread."""


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell `listener` about every run inside the ``with`` block.

    >>> class Print:
    ...     def planned(self, purposes):
    ...         print(*purposes, sep=", ")
    ...     def started(self, purpose):
    ...         print("now:", purpose)
    ...     def advanced(self, fraction):
    ...         print("read:", fraction)
    >>> with listening(Print()):
    ...     planned(["ranks", "shape"])
    ...     started("ranks")
    ...     reading(parts=4)()
    ranks, shape
    now: ranks
    read: 0.25
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def planned(purposes: Sequence[str]) -> None:
    """Announce a plan."""
    listener = _listener.get()
    if listener is not None:
        listener.planned(purposes)


def started(purpose: str) -> None:
    """Announce that a release of the plan is being made."""
    listener = _listener.get()
    if listener is not None:
        listener.started(purpose)


def reading(parts: int) -> Callable[[], None]:
    """What to call after each of the parts of a pass over the records, from whichever thread reads it."""
    listener = _listener.get()
    return (lambda: None) if listener is None else lambda: listener.advanced(1.0 / parts)
