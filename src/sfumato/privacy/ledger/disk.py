"""The ledger's only contact with the disk: lock, read from an offset, append and sync."""

import contextlib
import getpass
import os
import platform
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetError, InputError

PATIENCE = 60.0
"""Seconds to wait for the lock; it is held for milliseconds unless a process was stopped while it had it."""
LARGEST = 2**28


@contextlib.contextmanager
def locked(path: Path, *, write: bool, create: bool = False) -> Iterator[int]:
    """An open, locked descriptor of the ledger; one writer or many readers at a time, on this machine."""
    fd = _open(path, write, create)
    try:
        _lock(fd, path, write)
        yield fd
    finally:
        os.close(fd)  # gives up the lock


def read_from(fd: int, path: Path, offset: int) -> bytes:
    """Everything from `offset` on."""
    size = os.fstat(fd).st_size
    if size < offset:
        raise BudgetError(f"ledger: {path} has become shorter since it was read; restore it from a backup.")
    if size - offset > LARGEST:
        raise InputError(f"ledger: {path} is too large to be a ledger; check the path.")
    parts = []
    while size > offset and (part := os.pread(fd, size - offset, offset)):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def append(fd: int, path: Path, text: bytes, size: int) -> None:
    """Write at the end (`size`) and wait until the disk has it. A write that fails leaves the file as it was."""
    written = 0
    try:
        while written < len(text):
            written += os.pwrite(fd, text[written:], size + written)
        os.fsync(fd)
    except BaseException as error:
        if written < len(text):
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
        if isinstance(error, OSError):
            raise BudgetError(
                f"ledger: {path} cannot be written ({error.strerror}), so nothing is released; make room and try again."
            ) from None
        raise


def create(path: Path, header: bytes) -> None:
    """Write the header of a new ledger, unless somebody has; its name, too, is synced to the disk."""
    with locked(path, write=True, create=True) as fd:
        if os.fstat(fd).st_size == 0:
            append(fd, path, header, 0)
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def who() -> dict[str, Any]:
    """The user, machine and process that write a line."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without a user database
        user = str(os.getuid())
    return {"user": user, "host": platform.node(), "pid": os.getpid()}


def _open(path: Path, write: bool, create: bool) -> int:
    flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_CREAT if create else 0)
    try:
        fd = os.open(path, flags, 0o640)
    except FileNotFoundError:
        raise InputError(
            f"ledger: there is no file {str(path)!r}; check the name, or create a ledger with its cap first: "
            "sfumato ledger create, or FileLedger(path, Budget.approximate(3, 1e-6))."
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a file name"
        raise InputError(f"ledger: {str(path)!r} cannot be opened ({why}); check the path and its rights.") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InputError(f"ledger: {str(path)!r} is not a file; give the path of a ledger.")
    return fd


def _lock(fd: int, path: Path, write: bool) -> None:
    try:
        import fcntl
    except ImportError:
        raise InputError("ledger: a ledger file needs POSIX file locks; use it on Linux or macOS.") from None
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(fd, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise BudgetError(f"ledger: {path} is locked by another process; end that one first.") from None
            time.sleep(0.002)
        except OSError as error:
            raise InputError(f"ledger: {path} cannot be locked ({error.strerror}); use a local disk.") from None
