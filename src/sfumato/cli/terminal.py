"""The terminal: results on stdout, everything else on stderr."""

import os
import sys
from typing import TextIO

from rich.console import Console
from rich.text import Text

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
    stderr().print(Text.assemble((f"{word}: ", style), " ".join(sentence.split())), soft_wrap=True)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False)
