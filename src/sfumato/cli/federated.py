"""`sfumato federated`: fits across sites that may not pool their records: try one, take part in one, run one."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.ledger import say_what_is_left
from sfumato.cli.options import (
    Categorical,
    Classes,
    Delta,
    Directions,
    Epsilon,
    Method,
    Person,
    Relation,
    ResponseKind,
    RowsPerPerson,
)
from sfumato.cli.terminal import note, show_progress, stdout
from sfumato.errors import InputError, as_usage
from sfumato.study.options import EstimatorOptions, read_categories, read_kind, split_names

if TYPE_CHECKING:
    from rich.table import Table

    from sfumato.bounds import Bounds
    from sfumato.methods.sir import PrivateSIR
    from sfumato.privacy.budget import Budget

federated_app = typer.Typer(help="Fit across sites that may not pool their records.", no_args_is_help=True)
Response = Annotated[str, typer.Option("--response", "-y", help="Column to explain.")]
WAIT, TIMEOUT = 600.0, 120.0


@federated_app.command()
def site(
    data: Annotated[str, typer.Argument(help="The site's records; they stay here.")],
    response: Response,
    name: Annotated[str, typer.Option(help="The site's name, as the coordinator will see it.")],
    coordinator: Annotated[str, typer.Option(help="host:port of the coordinator.")],
    ca: Annotated[Path, typer.Option(help="Certificate of the authority that signed the coordinator's certificate.")],
    key: Annotated[Path, typer.Option(help="The site's private key; its public half is with the coordinator.")],
    features: Annotated[
        list[str] | None, typer.Option(help="Columns to explain it with, as a,b,c (all others if not given).")
    ] = None,
    categorical: Categorical = None,
    create_ledger: Annotated[
        bool, typer.Option("--create-ledger", help="Open a new account, with --cap; only for records without one.")
    ] = False,
    cap: Annotated[float | None, typer.Option(help="Epsilon that all runs together may ever spend here.")] = None,
    cap_delta: Annotated[float, typer.Option(help="Its delta.")] = 1e-6,
    relation: Relation = None,
    person: Person = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger file; NAME.jsonl if not given.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where answers are kept; NAME-answers if not given.")] = None,
    classes: Classes = None,
    response_kind: ResponseKind = None,
    rehearse: Annotated[int | None, typer.Option(help="Seed for a rehearsal with seeded noise: no privacy.")] = None,
) -> None:
    """Take part: answers the coordinator's known questions with noisy sums until stopped with Ctrl-C.

    Stopped in the middle of a run? The same command goes on with it, at no further cost.
    """
    from sfumato.federated.flower.keys import demand_files, demand_flower
    from sfumato.federated.site import Site, handle
    from sfumato.privacy.parameters import relation_of
    from sfumato.sources.files import open_source
    from sfumato.sources.names import find

    demand_flower()
    demand_files(ca=ca, key=key)
    if not 0 < len(name) <= 100:
        raise InputError("name must have 1 to 100 letters.")
    if not re.fullmatch(r"([^\s/:]+|\[[0-9a-fA-F:]+\]):\d{1,5}", coordinator):
        raise InputError(f"coordinator must be host:port, such as coordinator.example:8000, got {coordinator!r}.")
    account, answers = ledger or Path(f"{name}.jsonl"), folder or Path(f"{name}-answers")
    budget = _cap(account, cap, cap_delta, create_ledger)
    neighbours = None if relation is None else relation_of(relation)
    source = open_source(
        find(data),
        response,
        split_names(features),
        split_names(classes),
        read_categories(categorical),
        response_kind=read_kind(response_kind),
        person=person,
    )
    mine = Site(source, account, answers, name=name, random_state=rehearse)

    from sfumato.federated.flower.node import Node
    from sfumato.privacy.ledger import FileLedger

    node = Node(coordinator, ca, key, lambda request: handle(mine, request), lambda what: note(f"{name} {what}"))
    with as_usage():
        seeded = rehearse is not None
        FileLedger(account, budget, neighbours, rehearsal=seeded, protects="person" if person else "record")
    mine.facts()  # what the coordinator would be refused for is better told now
    say_what_is_left(mine.ledger())
    note(f"{name} answers {coordinator} within this cap; Ctrl-C stops it.")
    node.serve()


@federated_app.command()
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
    from sfumato.federated.flower.keys import demand_files, demand_flower

    demand_flower()
    demand_files(certificate=certificate, key=key, ca=ca)
    for each in site:
        demand_files(site=each)
    needed = len(site) if minimum is None else minimum
    if not 1 <= needed <= len(site):
        raise InputError(f"minimum must be from 1 to the {len(site)} sites, got {minimum}.")
    chosen = split_names(classes)
    fit = EstimatorOptions(
        "sir", epsilon, delta, None, relation or "replace", None, directions, method, chosen, picture=False
    )
    fit = replace(fit, rows_per_person=rows_per_person)
    estimator = _estimator(fit, bounds_of(lower, upper), sparse, own_units)

    from sfumato.federated.coordinator import summarise_outcome
    from sfumato.federated.flower.coordination import Address, Limits, coordinate

    limits = Limits(wait, timeout, needed, least, leave_out, own_units)
    found = coordinate(Address(host, port, ca, certificate, key), site, folder, estimator, limits, note)
    stdout().print(summarise_outcome(found), markup=False, soft_wrap=True)
    for direction in found["directions"]:
        stdout().print(" ".join(f"{value:+.4f}" for value in direction), markup=False, soft_wrap=True)
    note(f"report: {folder / 'result' / 'report.html'}")


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
    with show_progress("loading the library"):
        from sfumato.federated.simulation import simulate as run
        from sfumato.federated.simulation import split_by_column

        options = EstimatorOptions(
            "sir", epsilon, delta, directions=directions, method=method, classes=split_names(classes), picture=False
        )
        sites = split_by_column(data, by, response, options.classes, read_kind(response_kind))
        fitted = run(options.build(), sites, trust, leave_out=leave_out, least=least, own_units=own_units)
    console = stdout()
    for name, ledger in fitted.ledgers_.items():
        console.print(f"{name}: epsilon {ledger.spent():.4g}, {len(ledger)} releases", markup=False)
    for name, why in fitted.left_out_.items():
        note(f"{name} {why}")
    for name, found in fitted.disagreeing_.items():
        note(f"{name} disagrees with the other sites in {found.about}.")
    console.print(_named(fitted))
    if report is not None:
        fitted.report(report)


def _named(fitted: "PrivateSIR") -> "Table":
    """The directions with the names of their features, heaviest in the first first."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from sfumato.hints import visible
    from sfumato.report.words import feature_names

    names = feature_names(fitted)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("feature")
    for k in range(len(fitted.directions_)):
        table.add_column(f"direction {k + 1}", justify="right")
    for j in sorted(range(len(names)), key=lambda j: -abs(float(fitted.directions_[0][j]))):
        table.add_row(Text(visible(names[j])), *(f"{row[j]:+.4f}" for row in fitted.directions_))
    return table


def _cap(ledger: Path, epsilon: float | None, delta: float, create: bool) -> "Budget | None":
    """The cap that was given; None is for a ledger that has one.

    An account is opened on request alone: a site started from another folder must not find an unspent one there.
    """
    from sfumato.privacy.budget import Budget

    if not ledger.exists() and not create:
        raise InputError(
            f"ledger: there is no {ledger.absolute()}; name the site's ledger with --ledger, or, if these records have "
            f"none yet, create it: sfumato ledger create {ledger} --epsilon 3, or --create-ledger --cap 3."
        )
    if create and ledger.exists():
        raise InputError(
            f"create-ledger: {ledger.absolute()} exists already; leave --create-ledger out to go on with it."
        )
    if create and epsilon is None:
        raise InputError("cap: --create-ledger needs --cap, how much all runs together may ever spend; for instance 3.")
    with as_usage():
        return None if epsilon is None else Budget.approximate(epsilon, delta)


def _estimator(fit: EstimatorOptions, bounds: "Bounds | None", sparse: bool, own_units: bool) -> "PrivateSIR":
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
