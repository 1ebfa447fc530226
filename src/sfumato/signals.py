"""Ctrl-C, SIGTERM and a closed terminal while something that was paid for is being made: it is kept first."""

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def endings() -> tuple[signal.Signals, ...]:
    """The signals that end a process and let it clean up, but Ctrl-C: SIGTERM, and SIGHUP of a terminal that closes.

    What is ignored already (by ``nohup``) stays so, and some systems have no SIGHUP.
    """
    numbers = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
    return tuple(number for number in numbers if number is not None and signal.getsignal(number) is not signal.SIG_IGN)


def hear(number: int) -> None:
    """What is said to a terminal that has closed is said to nobody, instead of failing."""
    if number == getattr(signal, "SIGHUP", None):
        for stream in (1, 2):
            # A terminal that has closed is a device still, but does not answer as a terminal any more.
            if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
                with open(os.devnull, "wb") as nowhere:
                    os.dup2(nowhere.fileno(), stream)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Put off an interruption until the block has ended; the second one does not wait.

    Whoever would rather wait for a fit than lose what it has spent puts it into such a block:

    >>> with defer_interrupts():
    ...     fitted = "the result, whoever presses Ctrl-C meanwhile"
    """
    with patient() as begin:
        begin()
        yield


@contextmanager
def patient(put_off: Callable[[], object] = lambda: None) -> Iterator[Callable[[], None]]:
    """Put off an interruption until the block has ended, from the moment on that what it yields is called.

    `put_off` is called when an interruption comes that has to wait. The second one does not wait. A block that fails
    tells why it failed, not that it was interrupted. Only the main thread can put off; in others nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    seen: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *endings())}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def wait(number: int, frame: FrameType | None) -> None:
        if not seen:  # two may come at once
            seen.append(number)
            restore()
            hear(number)
            put_off()

    def begin() -> None:
        for number in before if not seen else ():
            signal.signal(number, wait)

    try:
        yield begin
    finally:
        restore()
    if seen:
        signal.raise_signal(seen[0])
