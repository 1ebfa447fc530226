"""Ctrl-C and SIGTERM while something that was paid for is being made: it is kept first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Put off an interruption until the block has ended; the second one does not wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def wait(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        restore()

    for number in before:
        signal.signal(number, wait)
    try:
        yield
    finally:
        restore()
        if seen:
            signal.raise_signal(seen[0])
