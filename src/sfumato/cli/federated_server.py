"""`sfumato federated server`: fit over the sites of a federation, from one command."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Classes, Delta, Directions, Epsilon, Method, names
from sfumato.cli.terminal import note, stdout
from sfumato.cli.wishes import Wishes
from sfumato.errors import InputError

WAIT, TIMEOUT = 600.0, 120.0


def server(
    site: Annotated[list[Path], typer.Option(help="Public key of a site; once for every site.")],
    certificate: Annotated[Path, typer.Option(help="The coordinator's certificate.")],
    key: Annotated[Path, typer.Option(help="Its private key.")],
    ca: Annotated[Path, typer.Option(help="Certificate of the authority that signed it.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    directions: Directions = "auto",
    method: Method = "auto",
    sparse: Annotated[bool, typer.Option("--sparse", help="Few of many features matter; sites vote which.")] = False,
    lower: Annotated[str, typer.Option(help="Lower bound of all features, or of each: a,b,c.")] = "",
    upper: Annotated[str, typer.Option(help="Upper bound of all features, or of each: a,b,c.")] = "",
    classes: Classes = None,
    minimum: Annotated[
        int | None, typer.Option(help="Go on as long as so many sites answer; all if not given.")
    ] = None,
    least: Annotated[int, typer.Option(min=1, help="Sites with fewer records do not take part.")] = 1,
    wait: Annotated[float, typer.Option(help="Seconds to wait for the sites to appear.")] = WAIT,
    timeout: Annotated[float, typer.Option(help="Seconds a site has for an answer.")] = TIMEOUT,
    host: Annotated[str, typer.Option(help="Address to listen on; see 'Sharp edges' in the how-to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    folder: Annotated[Path, typer.Option(help="Where the coordinator keeps its files.")] = Path("federation"),
) -> None:
    """Fit once over the sites that were given by their public keys, and end.

    The directions, every site's spending and the report are in FOLDER/result. Interrupted? The same command goes on
    with the same run, at no further cost to the sites.
    """
    from sfumato.federated.flower import commands
    from sfumato.federated.flower.coordination import Address, coordinate
    from sfumato.federated.flower.server import bounds_of
    from sfumato.federated.outcome import summary

    commands.demand_flower()
    commands.demand_files(certificate=certificate, key=key, ca=ca)
    for each in site:
        commands.demand_files(site=each)
    needed = len(site) if minimum is None else minimum
    if not 1 <= needed <= len(site):
        raise InputError(f"minimum must be from 1 to the {len(site)} sites, got {minimum}.")
    fit = Wishes("sir", epsilon, delta, directions=directions, method=method, classes=names(classes), picture=False)
    wanted = fit.build().set_params(bounds=bounds_of(lower, upper))
    settings: dict[str, str | int | float] = {"epsilon": wanted.epsilon, "delta": wanted.delta, "method": method}
    settings |= {"directions": directions, "lower": lower, "upper": upper, "classes": "|".join(fit.classes or ())}
    settings |= {"minimum": needed, "least": least, "sparse": int(sparse), "wait": wait, "timeout": timeout}
    note(f"waiting for {len(site)} site(s) on {host}:{port}; log: {folder / 'server.log'}; Ctrl-C keeps the run.")
    found = coordinate(Address(host, port, ca, certificate, key), site, folder, settings)
    stdout().print(summary(found), markup=False)
    for direction in found["directions"]:
        stdout().print(" ".join(f"{value:+.4f}" for value in direction), markup=False)
    note(f"report: {folder / 'result' / 'report.html'}")
