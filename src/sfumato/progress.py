"""Progress: who wants to know how far a run has come. Names of planned releases only, nothing from the records."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    """Told what a run plans to release and, one by one, what it is working on."""

    def planned(self, purposes: Sequence[str]) -> None:
        """The purposes of all releases, in order."""

    def started(self, purpose: str) -> None:
        """The next release is being made."""


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell `listener` about every run inside the ``with`` block.

    >>> class Print:
    ...     def planned(self, purposes):
    ...         print(*purposes, sep=", ")
    ...     def started(self, purpose):
    ...         print("now:", purpose)
    >>> with listening(Print()):
    ...     planned(["ranks", "shape"])
    ...     started("ranks")
    ranks, shape
    now: ranks
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
