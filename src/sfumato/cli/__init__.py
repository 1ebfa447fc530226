"""The command line: a thin edge, no arithmetic. One file per group of commands; `app` puts them together."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from sfumato.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)


__all__ = ["main"]
