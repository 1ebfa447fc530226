"""A sign of life every few seconds, beside whatever else is going on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sfumato.federated.flower import library

INTERVAL = 10.0
"""Seconds; the shortest that Flower takes. Who misses two is taken to be gone."""


@contextmanager
def beating(send: Callable[[], object], seconds: float = 0.7 * INTERVAL) -> Iterator[None]:
    """Call `send` until the block ends. A connection that is lost is not its business."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(seconds):
            with suppress(library.HTTPError):
                send()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
