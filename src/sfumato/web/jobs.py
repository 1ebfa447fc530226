"""Jobs: commands of the command line in processes of their own, one fit at a time.

Whoever fits holds the lock of ``job.lock``: the process itself, which inherits it and keeps it until it ends, however
it ends. So two fits never run side by side, not even under two servers, and a server that was started anew knows
whether the fit of its predecessor is still running, without trusting a process number.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from sfumato.errors import InputError

_PATIENCE = 20.0
"""Seconds that a fit has to end after it was told to."""
_LOUD = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class BusyError(InputError):
    """Another fit is running."""


@dataclass(frozen=True)
class Job:
    """A fit that was started: of which run, by which process, since when."""

    run: str
    pid: int
    started: str

    @classmethod
    def read(cls, path: Path) -> "Job | None":
        """The job that was noted; None if there is none."""
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            return cls(str(said["run"]), int(said["pid"]), str(said["started"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None


class Bench:
    """The one place at which fits are made."""

    def __init__(self, home: Path) -> None:
        self._lock, self._note = home / "job.lock", home / "job.json"

    def current(self) -> Job | None:
        """The fit that is running now, whoever started it."""
        if not self._lock.exists():
            return None
        with _opened(self._lock) as fd:  # shared, so that those who only look do not take each other for a fit
            return None if _take(fd, fcntl.LOCK_SH) else Job.read(self._note)

    def start(self, run: str, words: list[str], where: Path, messages: Path, once: Path) -> None:
        """Start a fit, unless it ever was; `once` is the file that says so, made by whoever comes first."""
        if once.exists():
            return
        with _opened(self._lock) as fd:
            if not _take(fd, fcntl.LOCK_EX, patience=1.0):
                raise BusyError("another fit is running; wait until it has ended, or stop it.")
            try:
                os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                return
            started = datetime.now(UTC).isoformat(timespec="seconds")
            self._tell(Job(run, 0, started), once)
            with messages.open("wb") as stderr:
                process = subprocess.Popen(
                    _command(words), cwd=where, stdout=subprocess.DEVNULL, stderr=stderr, stdin=subprocess.DEVNULL,
                    env=_environment(), pass_fds=(fd,), start_new_session=True,
                )  # fmt: skip
            self._tell(Job(run, process.pid, started), once)
        threading.Thread(target=process.wait, daemon=True).start()  # no process stays behind undead

    def _tell(self, job: Job, once: Path) -> None:
        for place in (self._note, once):
            place.write_text(json.dumps(asdict(job)), encoding="utf-8")

    def stop(self, run: str) -> None:
        """Tell the fit of a run to end: it gives back what it has not used."""
        job = self.current()
        if job is not None and job.run == run:
            _signal(job.pid)

    def close(self) -> None:
        """End whatever is running, as when the server ends."""
        job, end = self.current(), time.monotonic() + _PATIENCE
        if job is None:
            return
        _signal(job.pid)
        while self.current() is not None and time.monotonic() < end:
            time.sleep(0.05)


def run_command(words: list[str], where: Path) -> None:
    """Run a command that spends nothing to its end; what it complains of is raised."""
    done = subprocess.run(
        _command(words), cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        env=_environment(), check=False,
    )  # fmt: skip
    if done.returncode:
        said = said_in(done.stderr.decode("utf-8", "replace"), "error")
        raise InputError(said[-1] if said else f"{words[0]}: it ended unexpectedly; look at the terminal.")


def said_in(messages: str, word: str) -> list[str]:
    """The sentences of a command that begin with a word: its errors, its notes.

    >>> said_in("note: 3 left.\\nerror: out: is a file.\\n", "error")
    ['out: is a file.']
    """
    return [line.removeprefix(f"{word}: ") for line in messages.splitlines() if line.startswith(f"{word}: ")]


def _command(words: list[str]) -> list[str]:
    return [sys.executable, "-m", "sfumato", *words]


def _environment() -> dict[str, str]:
    """As here, but that messages are plain lines."""
    return {name: value for name, value in os.environ.items() if name not in _LOUD} | {"NO_COLOR": "1"}


def _signal(pid: int) -> None:
    if pid > 0:  # 0 would be this process and its kin
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def _take(fd: int, kind: int, patience: float = 0.0) -> bool:
    """Take the lock, if it is free or becomes so; those who only look hold it for microseconds."""
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)
