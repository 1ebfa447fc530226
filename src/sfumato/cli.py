"""The command line: a thin edge, no arithmetic."""

import typer

app = typer.Typer(add_completion=True, no_args_is_help=True, help=__doc__)


def main() -> None:
    """Run the command line."""
    app()
