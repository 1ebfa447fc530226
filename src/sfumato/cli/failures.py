"""Failures: every error is one line on stderr and an exit code, never a traceback, never a value of a record."""

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from sfumato.cli.terminal import complain
from sfumato.errors import BudgetError, InputError, SfumatoError

UNEXPECTED, BAD_INPUT, NO_BUDGET, INTERRUPTED, TERMINATED = 1, 2, 3, 130, 143
_Usage: Any = typer.BadParameter.__mro__[2]  # ClickException, wherever this version of typer keeps it


class Cautious(TyperGroup):
    """A group of commands whose failures are sentences."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run, and exit with a documented code."""
        kwargs["standalone_mode"] = False
        with _terminable():
            sys.exit(_code_of(lambda: super(Cautious, self).main(*args, **kwargs)))


@contextmanager
def as_usage() -> Iterator[None]:
    """A budget that cannot be (epsilon = -1) is a mistake in the command, not a budget that is spent."""
    try:
        yield
    except BudgetError as error:
        raise InputError(str(error)) from None


def _code_of(run: Any) -> int:
    try:
        code = run()
    except _Usage as error:
        return _refuse(_with_help(error), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BudgetError as error:
        return _refuse(str(error), NO_BUDGET)
    except SfumatoError as error:
        return _refuse(str(error), BAD_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNEXPECTED
    except OSError as error:
        return _refuse(f"{error.filename or 'file'}: {error.strerror or 'cannot be read or written'}.", BAD_INPUT)
    except Exception as error:
        return _refuse(_unexpected(error), UNEXPECTED)
    if code == INTERRUPTED:
        complain("interrupted; no half-written file was left.")
    return code if isinstance(code, int) else 0


def _refuse(sentence: str, code: int) -> int:
    complain(sentence)
    return code


def _with_help(error: Any) -> str:
    command = error.ctx.command_path if getattr(error, "ctx", None) else "sfumato"
    message = error.format_message().rstrip(".")
    return f"{message}{'' if message.endswith('?') else ';'} see '{command} --help'."


def _unexpected(error: Exception) -> str:
    """Kind and place of the error. Its text stays unseen: it may quote a record."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "sfumato" in frame.filename] or frames
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"
    return f"unexpected {type(error).__name__} at {place}; please report it with the command you ran."


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM clean up like Ctrl-C does."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(TERMINATED)

    try:
        before = signal.signal(signal.SIGTERM, leave)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
