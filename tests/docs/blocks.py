"""Code blocks of a page, and how each kind is run.

Python blocks of a page share one namespace and run in this process; so do shell blocks that are plain calls of sfumato,
which saves the time of starting it; others run in bash. A block with ``title="name"`` is written to that file. One that
must not run says why in a comment above it: ``<!-- not run: needs a network -->``.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from typer.testing import CliRunner

from sfumato.cli.app import app

FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=indent)```",
    re.M | re.S,
)
PYTHON, SHELL = {"python", "py"}, {"sh", "bash", "shell", "console"}


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, what it says, why it is not run."""

    page: Path
    line: int
    language: str
    title: str | None
    code: str
    reason: str | None

    def run(self, namespace: dict[str, object], folder: Path) -> None:
        """Run the block, or write it, in `folder`."""
        if self.reason is not None:
            return
        if self.title is not None:
            (folder / self.title).write_text(self.code, encoding="utf-8")
        elif self.language in PYTHON:
            exec(compile("\n" * self.line + self.code, str(self.page), "exec"), namespace)
        elif self.language in SHELL:
            commands = self._ours()
            for words in commands:
                done = CliRunner().invoke(app, words[1:])
                assert done.exit_code == 0, f"{self.page}:{self.line}\n{done.stdout}\n{done.stderr}"
            if not commands:
                self._shell(folder)

    def _ours(self) -> list[list[str]]:
        """The words of the commands, if all of them are plain calls of sfumato; else nothing."""
        lines = [line for line in self._commands().replace("\\\n", " ").splitlines() if line.strip()]
        split = [words for line in lines if (words := shlex.split(line, comments=True))]
        plain = all(words[0] == "sfumato" and not set("|&;<>$`") & set(" ".join(words)) for words in split)
        return split if plain else []

    def _commands(self) -> str:
        """What is typed: in a console block the lines after a prompt, the rest of it being the answer."""
        if self.language != "console":
            return self.code
        return "\n".join(line[2:] for line in self.code.splitlines() if line.startswith("$ "))

    def _shell(self, folder: Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._commands()],
            cwd=folder,
            env=os.environ | {"PATH": path, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{self.page}:{self.line}\n{done.stdout}\n{done.stderr}"


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', match["options"])
        start = text.count("\n", 0, match.start("code"))
        code = dedent(match["code"])
        yield Block(page, start, match["language"], title and title[1], code, match["reason"])
