"""The page about the command line, made from the commands themselves."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from sfumato.cli.app import EPILOG, app


def reference() -> str:
    """Every command with its arguments and options, in Markdown."""
    root = typer.main.get_command(app)
    intro = f"# Command line\n\n{_words(root.help)}\n\n{EPILOG}\n\nShell completion: `sfumato --install-completion`.\n"
    return "\n".join([intro, *_commands(root, "sfumato")])


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield f"## {path} {name}\n\n{_words(command.help)}\n"
            yield from (_section(each, f"{path} {name} {sub}", "###") for sub, each in command.commands.items())
        else:
            yield _section(command, f"{path} {name}", "##")


def _section(command: Any, path: str, heading: str) -> str:
    shown = [each for each in command.params if each.name != "help" and not getattr(each, "hidden", False)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    usage = " ".join([path, *(_argument(each) for each in arguments), "[OPTIONS]"])
    lines = [f"{heading} {path}", "", _words(command.help), "", "```text", usage, "```", ""]
    if shown:
        lines += ["| | |", "|---|---|", *map(_row, shown), ""]
    return "\n".join(lines)


def _argument(parameter: Any) -> str:
    name = parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        left = f"`{_argument(parameter)}`"
    else:
        left = ", ".join(f"`{text}`" for text in (*parameter.opts, *parameter.secondary_opts))
    help_text = _words(getattr(parameter, "help", None)).replace("|", "\\|").replace("\n", " ")
    return f"| {left} | {help_text}{_default(parameter)} |"


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return " *Required.*" if parameter.param_type_name == "option" else ""
    if value is None or value is False or value is True or value == "" or value == []:
        return ""
    return f" Default: `{value}`."


def _words(text: str | None) -> str:
    """Help as Markdown: rich's bold becomes ours, angle brackets stay letters, a lone example line becomes code."""
    cleaned = re.sub(r"\[bold\](.*?)\[/\]", r"`\1`", (text or "").strip())
    return re.sub(r"^(sfumato .+)$", r"    \1", cleaned, flags=re.M)
