"""The commands, put together."""

from typing import Annotated

import typer

from sfumato import __version__
from sfumato.cli import audit, ledger
from sfumato.cli.federated import federated_app
from sfumato.cli.fit import bounds_app, explain, fit
from sfumato.cli.local import local_app
from sfumato.cli.reproduce import reproduce
from sfumato.cli.results import compare, report, transform
from sfumato.cli.start import datasets_app, demo, serve
from sfumato.cli.terminal import CommandGroup

EPILOG = (
    "Exit codes: 0 done, 1 unexpected failure, 2 something in the command or the data must be mended, "
    "3 the privacy budget does not allow it, 130 interrupted (nothing is left half-written)."
)

app = typer.Typer(
    cls=CommandGroup,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Find the few directions of x that explain y, without revealing any one record.

    Start with [bold]sfumato demo[/], then [bold]sfumato fit data.csv --response y --out result[/].
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command(rich_help_panel="Start")(demo)
app.add_typer(datasets_app, name="datasets", rich_help_panel="Start")
app.command(rich_help_panel="Start")(serve)
app.command(rich_help_panel="Fit")(fit)
app.command(rich_help_panel="Fit")(explain)
app.add_typer(bounds_app, name="bounds", rich_help_panel="Fit")
app.command(rich_help_panel="Use a fitted model")(transform)
app.command(rich_help_panel="Use a fitted model")(report)
app.command(rich_help_panel="Use a fitted model")(compare)
app.add_typer(ledger.app, name="ledger", rich_help_panel="Account for it")
app.add_typer(audit.app, name="audit", rich_help_panel="Account for it")
app.add_typer(local_app, name="local", rich_help_panel="Without a curator")
app.add_typer(federated_app, name="federated", rich_help_panel="Without a curator")
app.command(rich_help_panel="Research")(reproduce)
