"""Output that is whole or absent: written beside its place, then renamed."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import InputError


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write to; what is written replaces `target` when the block ends well, else vanishes.

    Entered before anything is spent, so that a place that cannot be written to costs nothing.
    """
    if target.is_dir():
        raise InputError(f"out: {target} is a directory; name a file.")
    with _workshop(target) as workshop:
        draft = workshop / target.name
        yield draft
        os.replace(draft, target)


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory to write to; its files appear in `target` when the block ends well, else vanish.

    A new directory appears at once. Files of one that exists are replaced one by one, with Ctrl-C held off.
    """
    if target.exists() and not target.is_dir():
        raise InputError(f"out: {target} is a file; name a directory.")
    with _workshop(target) as workshop:
        draft = workshop / "draft"
        draft.mkdir()
        yield draft
        with _undisturbed():
            _publish(draft, target)


def _publish(draft: Path, target: Path) -> None:
    if not target.exists():
        os.rename(draft, target)
        return
    for path in draft.iterdir():
        os.replace(path, target / path.name)


@contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    parent = target.absolute().parent
    if not parent.is_dir():
        raise InputError(f"out: the directory {parent} does not exist; create it first.")
    try:
        workshop = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=parent))
    except OSError as error:
        raise InputError(f"out: cannot write in {parent} ({error.strerror}); choose another place.") from None
    try:
        yield workshop
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold signals back for the moment it takes to rename files (where the system can)."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
