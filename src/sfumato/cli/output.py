"""Output that is whole or absent: written beside its place, then renamed. What was paid for is never deleted."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sfumato.cli.terminal import note
from sfumato.errors import InputError
from sfumato.signals import defer_interrupts

SPACE = 2**24
"""Bytes that are held free for the results of a fit; reports and models are smaller unless features are very many."""


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write to; what is written replaces `target` when the block ends well, else vanishes.

    Entered before anything is spent, so that a place that cannot be written to costs nothing. A file that is whole and
    cannot be put in its place stays where it is, and its place is told.
    """
    if target.is_dir():
        raise InputError(f"out: {target} is a directory; name a file.")
    workshop = _workshop(_parent_of(target), target.name)
    draft = workshop / target.name
    try:
        yield draft
        os.replace(draft, target)
    except OSError as error:
        if error.filename2 is None:  # not the rename: the file is not whole
            shutil.rmtree(workshop, ignore_errors=True)
            raise
        raise InputError(f"out: {target} cannot be written ({error.strerror}); the file is kept: {draft}.") from None
    except BaseException:
        shutil.rmtree(workshop, ignore_errors=True)
        raise
    shutil.rmtree(workshop, ignore_errors=True)


@contextmanager
def new_directory(target: Path) -> Iterator["Draft"]:
    """A directory for the results of a fit, tried before anything is spent: the very renames, and the space.

    The draft is made inside the directory, on the disk where the results will be, even if that is a mount point. It
    vanishes with the block, and so does a directory that was made for it, unless results were kept.
    """
    made = _demand_directory(target)
    try:
        draft = Draft(target)
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                target.rmdir()
        raise
    try:
        yield draft
    finally:
        draft.clean()
        if made:
            with contextlib.suppress(OSError):  # not empty: something was kept
                target.rmdir()


def default_directory(estimator: str) -> Path:
    """Where results go if nothing was said: a new folder here, named after the estimator and the time.

    >>> default_directory("sir").name.startswith("sfumato-sir-")
    True
    """
    stem = f"sfumato-{estimator}-{datetime.now():%Y%m%d-%H%M%S}"
    names = (stem if i == 1 else f"{stem}-{i}" for i in range(1, 10_000))
    return next(path for path in map(Path, names) if not os.path.lexists(path))


class Draft:
    """Results on their way into `target`; `kept` once some of them are there."""

    def __init__(self, target: Path) -> None:
        self.target, self.kept = target, False
        self._folder = _workshop(target, "draft")
        self._space = self._folder / "space"
        try:
            _hold(self._space)
            trial = self._folder / "trial"
            trial.touch()
            os.replace(trial, landed := self.target / f"{self._folder.name}.trial")
            landed.unlink()
        except BaseException as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise InputError(
                    f"out: {target} cannot take the results ({error.strerror}; they may need {SPACE // 2**20} MB); "
                    "choose another place. Nothing was spent."
                ) from None
            raise

    @property
    def unplaced(self) -> bool:
        """Whether results were written that are not in place."""
        return any(path != self._space for path in self._folder.glob("*"))

    def keep(self, write: Callable[[Path], object], instead_of: str = "") -> None:
        """Write results and put them in place. Paid for, so no interruption and no error loses them.

        `instead_of` names a file of an earlier fit that does not belong to these results, until there is a new one.
        """
        with defer_interrupts():
            self._space.unlink(missing_ok=True)
            try:
                write(self._folder)
            except OSError as error:
                raise self._failure(error, self._rescue(write)) from None
            try:
                self._publish(instead_of)
            except OSError as error:
                raise self._failure(error, self._folder) from None
            self.kept = True

    def clean(self) -> None:
        """Remove the draft if nothing is in it; else say where it is."""
        self._space.unlink(missing_ok=True)
        try:
            self._folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            note(f"what was paid for and not put in place is kept in {self._folder.absolute()}.")

    def _publish(self, instead_of: str) -> None:
        from sfumato.privacy.ledger.disk import sync

        if instead_of:
            (self.target / instead_of).unlink(missing_ok=True)
        for path in self._folder.iterdir():
            sync(path)
            os.replace(path, self.target / path.name)
        sync(self.target)

    def _rescue(self, write: Callable[[Path], object]) -> Path:
        """Write the results once more, where there is room."""
        for place in (Path.cwd(), Path(tempfile.gettempdir()), Path.home()):
            with contextlib.suppress(OSError):
                folder = Path(tempfile.mkdtemp(prefix="sfumato-kept-", dir=place))
                write(folder)
                shutil.rmtree(self._folder, ignore_errors=True)  # a part of what is now whole elsewhere
                return folder
        return self._folder

    def _failure(self, error: OSError, kept: Path) -> InputError:
        return InputError(
            f"out: {self.target} cannot be written ({error.strerror}); the results were paid for and are in "
            f"{kept.absolute()}."
        )


def _demand_directory(target: Path) -> bool:
    """Make the directory if it is not there; whether it was made."""
    if target.is_symlink() and not target.exists():
        raise InputError(f"out: {target} is a link to a place that does not exist; name another directory.")
    if target.exists() and not target.is_dir():
        raise InputError(f"out: {target} is a file; name a directory.")
    parent = _parent_of(target)
    try:
        target.mkdir()
    except FileExistsError:
        return False
    except OSError as error:
        raise InputError(f"out: cannot write in {parent} ({error.strerror}); choose another place.") from None
    return True


def _parent_of(target: Path) -> Path:
    parent = target.absolute().parent
    if not parent.is_dir():
        raise InputError(f"out: the directory {parent} does not exist; create it first.")
    return parent


def _workshop(parent: Path, name: str) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".partial", dir=parent))
    except OSError as error:
        raise InputError(f"out: cannot write in {parent} ({error.strerror}); choose another place.") from None


def _hold(path: Path) -> None:
    """Fill a file with zeros up to the disk itself, so that as much room is there when it is removed."""
    with path.open("wb") as file:
        for _ in range(SPACE // 2**20):
            file.write(bytes(2**20))
        file.flush()
        os.fsync(file.fileno())
