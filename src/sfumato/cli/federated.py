"""`sfumato federated`: fits across sites that may not pool their records."""

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Classes, Delta, Directions, Epsilon, Method, Wishes, names
from sfumato.cli.progress import working
from sfumato.cli.terminal import note, stdout
from sfumato.errors import InputError

federated_app = typer.Typer(help="Fit across sites that may not pool their records.", no_args_is_help=True)
Ca = Annotated[Path, typer.Option(help="Certificate of the authority that signed the coordinator's certificate.")]
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
    trust: Annotated[str, typer.Option(help="'sites' or 'secure-aggregation'.")] = "sites",
    report: Annotated[Path | None, typer.Option(help="Where to write the report.")] = None,
) -> None:
    """Try a federation on this machine: every value of --by is a site with its own ledger and noise."""
    with working("loading the library"):
        from sfumato.federated.simulate import simulate as run
        from sfumato.federated.split import by_column

        wishes = Wishes(epsilon, delta, None, directions, method, "replace", names(classes), False)
        fitted = run(wishes.estimator(), by_column(data, by, response), trust)
    console = stdout()
    for name, ledger in fitted.ledgers_.items():
        console.print(f"{name}: epsilon {ledger.spent():.4g}, {len(ledger)} releases", markup=False)
    for name, found in fitted.disagreeing_.items():
        note(f"{name} disagrees with the other sites in {found.about}.")
    for direction in fitted.directions_:
        console.print(" ".join(f"{value:+.4f}" for value in direction), markup=False)
    if report is not None:
        fitted.report(report)


@federated_app.command()
def site(
    data: Annotated[str, typer.Argument(help="The site's records; they stay here.")],
    response: Response,
    name: Annotated[str, typer.Option(help="The site's name, as the other sites will see it.")],
    coordinator: Annotated[str, typer.Option(help="host:port of the coordinator.")],
    ledger: Annotated[Path, typer.Option(help="The site's ledger file; its cap is what all runs may ever spend.")],
    ca: Ca,
    key: Annotated[Path, typer.Option(help="The site's private key; its public half is registered.")],
    classes: Classes = None,
    folder: Annotated[Path, typer.Option(help="Where answers are kept.")] = Path("answers"),
    port: Annotated[int, typer.Option(help="A free port on this machine, for Flower's own use (loopback).")] = 9094,
) -> None:
    """Take part: answers the coordinator's known questions with noisy sums until stopped with Ctrl-C."""
    from sfumato.federated.flower import commands

    commands.demand_flower()
    if not ledger.exists():
        raise InputError(f"ledger: {ledger} does not exist; create it with 'sfumato ledger create'.")
    told = {"name": name, "data": str(Path(data).absolute()), "response": response}
    told |= {"ledger": str(ledger.absolute()), "folder": str(folder.absolute())}
    chosen = names(classes)
    if chosen:
        told["classes"] = "|".join(chosen)
    _until_stopped(commands.supernode(coordinator, ca, key, port, told), folder)


@federated_app.command()
def server(
    certificate: Annotated[Path, typer.Option(help="The coordinator's certificate.")],
    key: Annotated[Path, typer.Option(help="Its private key.")],
    ca: Ca,
    host: Annotated[
        str, typer.Option(help="Address to listen on; put a proxy in front that exposes /v1/fleet/ only.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    folder: Annotated[Path, typer.Option(help="Where the coordinator keeps its files.")] = Path("federation"),
) -> None:
    """Run the coordinator's server until stopped with Ctrl-C. Register sites and start fits with Flower's commands."""
    from sfumato.federated.flower import commands
    from sfumato.federated.flower.app import write_app

    commands.demand_flower()
    commands.connection(folder / "home", f"{host}:{port}", ca)
    write_app(folder / "app", out=str((folder / "result").absolute()))
    note(f"register a site: FLWR_HOME={folder}/home flwr supernode register SITE.pub sfumato")
    note(f"fit: FLWR_HOME={folder}/home flwr run {folder}/app sfumato -c 'sites=3 minimum=2 epsilon=1.0'")
    _until_stopped(commands.superlink(host, port, folder, ca, certificate, key), folder / "home")


def _until_stopped(command: list[str], home: Path) -> None:
    from sfumato.federated.flower.commands import environment

    home.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(command, env=environment(home)) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            return
    if code != 0:
        raise typer.Exit(code=1)
