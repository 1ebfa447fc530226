"""`sfumato federated server`: fit over the sites of a federation, from one command."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.options import Classes, Delta, Directions, Epsilon, Method, Relation, RowsPerPerson, names
from sfumato.cli.terminal import note, stdout
from sfumato.cli.wishes import Wishes
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.bounds import Bounds
    from sfumato.methods.sir import PrivateSIR

WAIT, TIMEOUT = 600.0, 120.0


def server(
    site: Annotated[list[Path], typer.Option(help="Public key of a site; once for every site.")],
    certificate: Annotated[Path, typer.Option(help="The coordinator's certificate.")],
    key: Annotated[Path, typer.Option(help="Its private key.")],
    ca: Annotated[Path, typer.Option(help="Certificate of the authority that signed it.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    rows_per_person: RowsPerPerson = None,
    directions: Directions = "auto",
    method: Method = "auto",
    sparse: Annotated[bool, typer.Option("--sparse", help="Few of many features matter; sites vote which.")] = False,
    lower: Annotated[str, typer.Option(help="Lower bound of all features, or of each: a,b,c.")] = "",
    upper: Annotated[str, typer.Option(help="Upper bound of all features, or of each: a,b,c.")] = "",
    own_units: Annotated[
        bool, typer.Option("--own-units", help="Every site finds means and scales of its own; without bounds.")
    ] = False,
    classes: Classes = None,
    minimum: Annotated[
        int | None, typer.Option(help="Go on as long as so many sites answer; all if not given.")
    ] = None,
    least: Annotated[int | None, typer.Option(min=1, help="Sites with fewer records do not take part.")] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave sites that disagree with the others out of later sums.")
    ] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for the sites to appear.")] = WAIT,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds a site has for an answer.")] = TIMEOUT,
    host: Annotated[str, typer.Option(help="Address to listen on; see 'Sharp edges' in the how-to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    folder: Annotated[Path, typer.Option(help="Where the coordinator keeps its files.")] = Path("federation"),
) -> None:
    """Fit once over the sites that were given by their public keys, and end.

    The directions, every site's spending and the report are in FOLDER/result. Interrupted? The same command goes on
    with the same run, at no further cost to the sites.
    """
    from sfumato.federated.flower.commands import demand_files, demand_flower
    from sfumato.federated.outcome import summary

    demand_flower()
    demand_files(certificate=certificate, key=key, ca=ca)
    for each in site:
        demand_files(site=each)
    needed = len(site) if minimum is None else minimum
    if not 1 <= needed <= len(site):
        raise InputError(f"minimum must be from 1 to the {len(site)} sites, got {minimum}.")
    chosen = names(classes)
    fit = Wishes("sir", epsilon, delta, None, relation or "replace", None, directions, method, chosen, picture=False)
    fit = replace(fit, rows_per_person=rows_per_person)
    estimator = _estimator(fit, bounds_of(lower, upper), sparse, own_units)

    from sfumato.federated.flower.coordination import Address, Limits, coordinate

    limits = Limits(wait, timeout, needed, least, leave_out, own_units)
    found = coordinate(Address(host, port, ca, certificate, key), site, folder, estimator, limits, note)
    stdout().print(summary(found), markup=False, soft_wrap=True)
    for direction in found["directions"]:
        stdout().print(" ".join(f"{value:+.4f}" for value in direction), markup=False, soft_wrap=True)
    note(f"report: {folder / 'result' / 'report.html'}")


def _estimator(fit: Wishes, bounds: "Bounds | None", sparse: bool, own_units: bool) -> "PrivateSIR":
    from sfumato.methods.parameters import one_of

    one_of("method", fit.method, ("auto",) if sparse else ("auto", "descent", "one-shot"))
    if own_units and (sparse or bounds is not None):
        raise InputError("own-units: leave out --lower, --upper and --sparse; every site finds its own bounds.")
    plain: PrivateSIR = fit.build().set_params(bounds=bounds)
    if not sparse:
        return plain
    if bounds is None:
        raise InputError("sparse: give --lower and --upper; a sparse fit over sites needs bounds.")

    from sfumato.methods.sparse_sir import PrivateSparseSIR

    shared = {
        name: getattr(plain, name)
        for name in ("epsilon", "delta", "relation", "n_directions", "classes", "rows_per_person")
    }
    return PrivateSparseSIR(**shared, bounds=bounds)


def bounds_of(lower: str, upper: str) -> "Bounds | None":
    """Bounds from text: one number for all features, or one for each, separated by commas.

    >>> bounds_of("-6", "6").upper.tolist(), bounds_of("0,-1", "1,1").lower.tolist(), bounds_of("", "")
    (6.0, [0.0, -1.0], None)
    """
    from sfumato.bounds import Bounds

    if not lower and not upper:
        return None
    try:
        sides = [[float(value) for value in side.split(",")] for side in (lower, upper)]
    except ValueError:
        raise InputError("lower and upper must be numbers separated by commas, both or neither given.") from None
    return Bounds(*(side[0] if len(side) == 1 else side for side in sides))
