"""`sfumato federated`: fits across sites that may not pool their records."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.federated_server import server
from sfumato.cli.federated_site import site
from sfumato.cli.options import Classes, Delta, Directions, Epsilon, Method, ResponseKind, kind_of, names
from sfumato.cli.progress import working
from sfumato.cli.terminal import note, stdout
from sfumato.cli.wishes import Wishes

federated_app = typer.Typer(help="Fit across sites that may not pool their records.", no_args_is_help=True)
federated_app.command()(site)
federated_app.command()(server)
Response = Annotated[str, typer.Option("--response", "-y", help="Column to explain.")]


@federated_app.command()
def simulate(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or Feather file with the records of all sites.")],
    by: Annotated[str, typer.Option(help="Column that names the site of each record.")],
    response: Response,
    epsilon: Epsilon = None,
    delta: Delta = None,
    directions: Directions = "auto",
    method: Method = "auto",
    classes: Classes = None,
    response_kind: ResponseKind = None,
    trust: Annotated[str, typer.Option(help="'sites' or 'secure-aggregation'.")] = "sites",
    least: Annotated[int, typer.Option(min=1, help="Sites with fewer records do not take part.")] = 1,
    own_units: Annotated[
        bool, typer.Option("--own-units", help="Every site finds means and scales of its own.")
    ] = False,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave sites that disagree with the others out of later sums.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Where to write the report.")] = None,
) -> None:
    """Try a federation on this machine: every value of --by is a site with its own ledger and noise."""
    with working("loading the library"):
        from sfumato.federated.simulation import simulate as run
        from sfumato.federated.split import by_column

        wishes = Wishes(
            "sir", epsilon, delta, directions=directions, method=method, classes=names(classes), picture=False
        )
        sites = by_column(data, by, response, wishes.classes, kind_of(response_kind))
        centring = "sites" if own_units else "pooled"
        fitted = run(wishes.build(), sites, trust, leave_out=leave_out, least=least, centring=centring)
    console = stdout()
    for name, ledger in fitted.ledgers_.items():
        console.print(f"{name}: epsilon {ledger.spent():.4g}, {len(ledger)} releases", markup=False)
    for name, why in fitted.left_out_.items():
        note(f"{name} {why}")
    for name, found in fitted.disagreeing_.items():
        note(f"{name} disagrees with the other sites in {found.about}.")
    for direction in fitted.directions_:
        console.print(" ".join(f"{value:+.4f}" for value in direction), markup=False, soft_wrap=True)
    if report is not None:
        fitted.report(report)
