"""The terminal: results on stdout, all else on stderr: notes, a progress bar, failures as one line and an exit code."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TextIO

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from sfumato.errors import BudgetError, SfumatoError, describe_unexpected
from sfumato.hints import visible
from sfumato.progress import listening
from sfumato.signals import endings, hear

UNTOLD = "This method does not tell whether what it found stands out of the noise: noise alone would give some, too."
PLAIN_WIDTH = 100
"""Width of tables that go to a file or a pipe."""


def stdout() -> Console:
    """Where results go."""
    return _console(sys.stdout)


def stderr() -> Console:
    """Where notes, progress and complaints go."""
    return _console(sys.stderr)


def complain(sentence: str) -> None:
    """One line that says what is wrong and what to do."""
    _line("error", "bold red", sentence)


def note(sentence: str) -> None:
    """One line worth knowing."""
    _line("note", "bold yellow", sentence)


def _line(word: str, style: str, sentence: str) -> None:
    stderr().print(Text.assemble((f"{word}: ", style), visible(" ".join(sentence.split()))), soft_wrap=True)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False)


def make_table(headings: Sequence[str], rows: Iterable[Iterable[str | Text]], title: str = "") -> Table:
    """A table as commands show it; a heading that begins with '>' stands over numbers, which are set to the right."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading.removeprefix(">"), justify="right" if heading.startswith(">") else "left")
    for row in rows:
        table.add_row(*row)
    return table


class Bar:
    """Follows a run; a `Listener`. `before_release` is called before each release is charged."""

    def __init__(self, progress: Progress, first: str) -> None:
        self._progress = progress
        self._task = progress.add_task(first, total=None)
        self._begun = 0
        self.before_release: Callable[[], None] = lambda: None

    def say(self, what: str) -> None:
        """What is being done now."""
        self._progress.update(self._task, description=what, refresh=True)

    def planned(self, purposes: Sequence[str]) -> None:
        """The releases to come."""
        self._progress.update(self._task, total=len(purposes))

    def started(self, purpose: str) -> None:
        """One more release is being made: those before it are done."""
        self.before_release()
        self._progress.update(self._task, description=purpose, completed=self._begun, refresh=True)
        self._begun += 1

    def advanced(self, fraction: float) -> None:
        """The bar moves on as records are read; not while they are checked, before the first release."""
        self._progress.advance(self._task, fraction if self._begun else 0.0)


@contextmanager
def show_progress(first: str) -> Iterator[Bar]:
    """Show a bar on the terminal while the block runs; it leaves no trace."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("releases"),
        TimeElapsedColumn(),
    )
    console = stderr()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = Bar(progress, first)
        with listening(bar):
            yield bar


UNEXPECTED, BAD_INPUT, NO_BUDGET, INTERRUPTED, SIGNALLED = 1, 2, 3, 130, 128
_Usage: Any = typer.BadParameter.__mro__[2]  # ClickException, wherever this version of typer keeps it


_words: list[str] = []


def command() -> str:
    """The command that is being run, as it could be typed."""
    return shlex.join(["sfumato", *_words])


def command_group(words: str) -> typer.Typer:
    """A group of commands that shows its help where none of them is named."""

    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    made = typer.Typer(help=words)
    made.callback(invoke_without_command=True)(show_help)
    return made


class CommandGroup(TyperGroup):
    """A group of commands whose failures are sentences."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run, and exit with a documented code."""
        _words[:] = (args[0] if args else kwargs.get("args")) or sys.argv[1:]
        kwargs["standalone_mode"] = False  # else typer prints failures itself, and in its own words
        with _terminable():
            sys.exit(_code_of(lambda: super(CommandGroup, self).main(*args, **kwargs)))


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
    except BrokenPipeError:  # `sfumato ... | head`: whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # at exit Python flushes stdout once more
        return 0
    except OSError as error:
        return _refuse(f"{error.filename or 'file'}: {error.strerror or 'cannot be read or written'}.", BAD_INPUT)
    except Exception as error:
        return _refuse(describe_unexpected(error), UNEXPECTED)
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


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that closes, clean up like Ctrl-C does."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        hear(number)
        sys.exit(SIGNALLED + number)

    try:
        before = {number: signal.signal(number, leave) for number in endings()}
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
