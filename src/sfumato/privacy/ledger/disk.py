"""The ledger's only contact with the disk: lock, read from an offset, append and sync.

Locks are `flock`. A file system that ignores them (some network disks do) would let two processes write at once, so
such disks are refused unless the owner vouches for them. Should two write at once all the same, lines are appended
(`O_APPEND`, never over another's) and read back: of the two, one finds a stranger's line where its own should be and
releases nothing, and the file is damaged until a repair.
"""

import contextlib
import getpass
import hashlib
import os
import platform
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetError, InputError

PATIENCE = 60.0
"""Seconds to wait for the lock; it is held for milliseconds unless a process was stopped while it had it."""
LARGEST = 2**28
NETWORK = re.compile(
    r"nfs\d*|cifs|smb\w*|ncpfs|afs|coda|9p|ceph|lustre|gpfs|glusterfs|beegfs|orangefs|pvfs2|ocfs2|gfs2|virtiofs|vboxsf"
    r"|vmhgfs|prl_fs|drvfs|davfs|sshfs|rclone|s3fs|gcsfuse|goofys|juicefs|moosefs"
)
"""File systems whose locks may not hold between machines; a name after ``fuse.`` counts as itself."""
MOUNTS = Path("/proc/self/mountinfo")
_BLOCK, _TAIL = 2**20, 2**22
_HELD = threading.local()


@contextlib.contextmanager
def locked(path: Path, *, write: bool) -> Iterator[int]:
    """An open, locked descriptor of the ledger; one writer or many readers at a time, on this machine."""
    fd = _open(path, write)
    _HELD.count = getattr(_HELD, "count", 0) + 1
    try:
        _lock(fd, path, write)
        yield fd
    finally:
        _HELD.count -= 1
        os.close(fd)  # gives up the lock


def held() -> bool:
    """Whether this thread holds the lock of a ledger, so that it may wait for itself if it wants another."""
    return getattr(_HELD, "count", 0) > 0


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


def read_first(path: Path, size: int) -> bytes:
    """The first `size` bytes; they never change, so no lock is needed."""
    fd = _open(path, write=False)
    try:
        return read_from(fd, path, 0)[:size]
    finally:
        os.close(fd)


def digest(fd: int, size: int) -> str:
    """SHA-256 of the first `size` bytes."""
    seen, at = hashlib.sha256(), 0
    while at < size and (part := os.pread(fd, min(size - at, _BLOCK), at)):
        seen.update(part)
        at += len(part)
    return seen.hexdigest()


def ends(fd: int) -> tuple[bytes, bytes, int]:
    """The first line, some of the file's end, and the size of the whole."""
    size = os.fstat(fd).st_size
    first = os.pread(fd, _BLOCK, 0).partition(b"\n")[0]
    start = max(size - _TAIL, 0)
    return first, os.pread(fd, size - start, start), size


def line_before(fd: int, end: int) -> bytes:
    """The line that ends at `end`, without its newline; nothing if no line ends there."""
    start = max(end - _BLOCK, 0)
    text = os.pread(fd, end - start, start)
    return text[:-1].rpartition(b"\n")[2] if len(text) == end - start and text.endswith(b"\n") else b""


def append(fd: int, path: Path, text: bytes, size: int) -> None:
    """Write at the end (`size`), wait until the disk has it, and read it back. A write that fails leaves no trace."""
    written = 0
    try:
        while written < len(text):
            written += os.write(fd, text[written:])
        os.fsync(fd)
    except BaseException as error:
        if written < len(text) and os.fstat(fd).st_size == size + written:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
        if isinstance(error, OSError):
            raise BudgetError(
                f"ledger: {path} cannot be written ({error.strerror}), so nothing is released; make room and try again."
            ) from None
        raise
    if os.pread(fd, len(text), size) != text:
        raise BudgetError(
            f"ledger: {path} was written by another process in spite of the lock, so nothing is released; "
            "move it to a local disk and see 'sfumato ledger verify'."
        )


def create(path: Path, header: bytes) -> bool:
    """A new ledger with this header, whole or not at all and synced to the disk; False if there is a file already."""
    try:
        target = Path(os.path.realpath(path))
        draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}")
        if target.exists():
            return False
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640), "wb") as out:
            out.write(header)
            out.flush()
            os.fsync(out.fileno())
        os.link(draft, target)  # unlike a rename, never over a ledger that another process has created meanwhile
    except FileExistsError:
        return False
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a file name"
        raise InputError(f"ledger: {str(path)!r} cannot be created ({why}); check the path and its rights.") from None
    finally:
        with contextlib.suppress(OSError, ValueError, UnboundLocalError):
            draft.unlink()
    sync(target.parent)
    return True


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk: a synced file may be nowhere without its name."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def file_system_of(path: Path, mounts: Path = MOUNTS) -> str:
    """The kind of file system a file is on: of the innermost mount, the latest of two; empty where nothing tells."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # it is not Linux
        return ""
    kinds: dict[Path, str] = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        # The system writes a blank in a path as an octal number.
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
        kinds[Path(point)] = after.split(" ")[0]
    place = Path(os.path.realpath(path))
    return next((kinds[parent] for parent in (place, *place.parents) if parent in kinds), "")


def network(path: Path) -> str | None:
    """The kind of network file system that holds the file; None on a local disk, or where the system does not tell."""
    kind = file_system_of(path)
    return kind if NETWORK.fullmatch(kind.split(".")[-1]) else None


def who() -> dict[str, Any]:
    """The user, machine and process that write a line."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without a user database
        user = str(os.getuid())
    return {"user": user, "host": platform.node(), "pid": os.getpid()}


def _open(path: Path, write: bool) -> int:
    flags = ((os.O_RDWR | os.O_APPEND) if write else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(path, flags)
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
