"""`sfumato federated`: fits across sites that may not pool their records: try one, take part in one, run one."""

import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options as cli
from sfumato.cli.ledger import say_what_is_left
from sfumato.cli.output import new_file
from sfumato.cli.terminal import UNTOLD, command_group, note, show_progress, stdout
from sfumato.errors import InputError, as_usage
from sfumato.study import EstimatorOptions, check_options, read_categories, read_kind, split_names

if TYPE_CHECKING:
    from sfumato.bounds import Bounds
    from sfumato.privacy.budget import Budget

federated_app = command_group("Fit across sites that may not pool their records.")
Lower = Annotated[str, typer.Option(help="Lower bound of all features, or of each: a,b,c.")]
Upper = Annotated[str, typer.Option(help="Upper bound of all features, or of each: a,b,c.")]
SecondLower = Annotated[str, typer.Option(help="Lower bound of the columns of the second set (cca).")]
SecondUpper = Annotated[str, typer.Option(help="Upper bound of the columns of the second set (cca).")]
LeaveOut = Annotated[
    bool, typer.Option("--leave-out", help="Leave sites that disagree with the others out of later sums.")
]
WAIT, TIMEOUT = 600.0, 120.0


@federated_app.command()
def site(
    data: Annotated[str, typer.Argument(help="The site's records; they stay here.")],
    name: Annotated[str, typer.Option(help="The site's name, as the coordinator will see it.")],
    coordinator: Annotated[str, typer.Option(help="host:port of the coordinator.")],
    ca: Annotated[Path, typer.Option(help="Certificate of the authority that signed the coordinator's certificate.")],
    key: Annotated[Path, typer.Option(help="The site's private key; its public half is with the coordinator.")],
    response: cli.AnyResponse = None,
    features: Annotated[
        list[str] | None, typer.Option(help="Columns to use, as a,b,c (all others if not given).")
    ] = None,
    second: cli.Second = None,
    categorical: cli.Categorical = None,
    create_ledger: Annotated[
        bool, typer.Option("--create-ledger", help="Open a new account, with --cap; only for records without one.")
    ] = False,
    cap: Annotated[float | None, typer.Option(help="Epsilon that all runs together may ever spend here.")] = None,
    cap_delta: Annotated[float, typer.Option(help="Its delta.")] = 1e-6,
    relation: cli.Relation = None,
    person: cli.Person = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger file; NAME.jsonl if not given.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where answers are kept; NAME-answers if not given.")] = None,
    classes: cli.Classes = None,
    response_kind: cli.ResponseKind = None,
    most: Annotated[
        float | None, typer.Option(min=0, help="Epsilon that one run may spend here; the cap alone if not given.")
    ] = None,
    least: Annotated[
        int | None, typer.Option(min=1, help="With fewer records than these the site takes no part.")
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask here, at this terminal, before a run is accepted; the coordinator waits.")
    ] = False,
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
    if ask and not sys.stdin.isatty():
        raise InputError("ask: there is no terminal to ask at; start the site from one, or leave --ask out.")
    account, answers = ledger or Path(f"{name}.jsonl"), folder or Path(f"{name}-answers")
    budget = _cap(account, cap, cap_delta, create_ledger)
    neighbours = None if relation is None else relation_of(relation)
    source = open_source(
        find(data),
        response,
        split_names(features),
        split_names(classes),
        read_categories(categorical),
        second=split_names(second) or (),
        response_kind=read_kind(response_kind),
        person=person,
    )

    from sfumato.federated.flower.node import Node
    from sfumato.privacy.budget import Budget
    from sfumato.privacy.ledger import FileLedger

    def say(what: str) -> None:
        note(f"{name} {what}")

    def consent(what: str) -> bool:
        return typer.confirm(f"{name}: {what}. Answer it?", err=True)

    # the key is read before the ledger is made, and the site follows from both
    node = Node(coordinator, ca, key, lambda request: handle(mine, request), say)
    with as_usage():
        seeded = rehearse is not None
        opened = FileLedger(account, budget, neighbours, rehearsal=seeded, protects="person" if person else "record")
        limit = None if most is None else Budget.approximate(most, opened.budget.delta or cap_delta)
    mine = Site(
        source,
        account,
        answers,
        name=name,
        most=limit,
        least=least,
        tell=say,
        consent=consent if ask else None,
        random_state=rehearse,
    )
    mine.facts()  # what the coordinator would be refused for is better told now
    say_what_is_left(mine.ledger())
    note(f"{name} answers {coordinator} within this cap; Ctrl-C stops it.")
    node.serve()


@federated_app.command()
@cli.asks_for_estimator
def server(
    site: Annotated[list[Path], typer.Option(help="Public key of a site; once for every site.")],
    certificate: Annotated[Path, typer.Option(help="The coordinator's certificate.")],
    key: Annotated[Path, typer.Option(help="Its private key.")],
    ca: Annotated[Path, typer.Option(help="Certificate of the authority that signed it.")],
    *,
    asked: EstimatorOptions,
    relation: cli.Relation = None,
    rows_per_person: cli.RowsPerPerson = None,
    sparse: Annotated[
        bool, typer.Option("--sparse", help="The same as --estimator sparse-sir: sites vote which features matter.")
    ] = False,
    lower: Lower = "",
    upper: Upper = "",
    second_lower: SecondLower = "",
    second_upper: SecondUpper = "",
    own_units: Annotated[
        bool, typer.Option("--own-units", help="Every site finds means and scales of its own; without bounds.")
    ] = False,
    minimum: Annotated[
        int | None, typer.Option(help="Go on as long as so many sites answer; all if not given.")
    ] = None,
    least: Annotated[int | None, typer.Option(min=1, help="Sites with fewer records do not take part.")] = None,
    leave_out: LeaveOut = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for the sites to appear.")] = WAIT,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds a site has for an answer.")] = TIMEOUT,
    host: Annotated[str, typer.Option(help="Address to listen on; see 'Sharp edges' in the how-to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    folder: Annotated[Path, typer.Option(help="Where the coordinator keeps its files.")] = Path("federation"),
    anew: Annotated[
        bool, typer.Option("--anew", help="Do not go on with an interrupted run: sites give back what it set aside.")
    ] = False,
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
    if sparse and asked.estimator not in ("sir", "sparse-sir"):
        raise InputError(f"sparse: it is for sir, not for {asked.estimator}; leave one of the two out.")
    options = replace(asked, relation=relation or "replace", rows_per_person=rows_per_person)
    options = replace(options, estimator="sparse-sir") if sparse else options
    check_options(options.member, options.special())
    made = _estimator(options, bounds_of(lower, upper), bounds_of(second_lower, second_upper), own_units)

    from sfumato.federated.coordinator import summarise_outcome
    from sfumato.federated.flower.coordination import Address, coordinate
    from sfumato.federated.run_settings import Limits

    limits = Limits(wait, timeout, needed, least, leave_out, own_units, anew)
    found = coordinate(Address(host, port, ca, certificate, key), site, folder, made, limits, note)
    stdout().print(summarise_outcome(found), markup=False, soft_wrap=True)
    for direction in (*found["directions"], *found.get("y_directions", ())):
        stdout().print(" ".join(f"{value:+.4f}" for value in direction), markup=False, soft_wrap=True)
    note(f"report: {folder / 'result' / 'report.html'}")


@federated_app.command()
@cli.asks_for_estimator
def simulate(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or Feather file with the records of all sites.")],
    by: Annotated[str, typer.Option(help="Column that names the site of each record.")],
    *,
    response: cli.AnyResponse = None,
    second: cli.Second = None,
    asked: EstimatorOptions,
    lower: Lower = "",
    upper: Upper = "",
    second_lower: SecondLower = "",
    second_upper: SecondUpper = "",
    response_kind: cli.ResponseKind = None,
    trust: Annotated[str, typer.Option(help="'sites' or 'secure-aggregation'.")] = "sites",
    least: Annotated[int, typer.Option(min=1, help="Sites with fewer records do not take part.")] = 1,
    own_units: Annotated[
        bool, typer.Option("--own-units", help="Every site finds means and scales of its own.")
    ] = False,
    leave_out: LeaveOut = False,
    report: Annotated[Path | None, typer.Option(help="Where to write the report.")] = None,
) -> None:
    """Try a federation on this machine: every value of --by is a site with its own ledger and noise."""
    other, kind = split_names(second), read_kind(response_kind)
    told = asked.special() | {"response": response, "second": other, "response_kind": kind}
    check_options(asked.member, told, needed=("response", "second"))
    with nullcontext() if report is None else new_file(report) as draft, show_progress("loading the library"):
        from sfumato.federated.simulation import simulate as run
        from sfumato.federated.simulation import split_by_column

        made = _estimator(asked, bounds_of(lower, upper), bounds_of(second_lower, second_upper), own_units)
        sites = split_by_column(data, by, response, asked.classes, kind, other)
        fitted = run(made, sites, trust, leave_out=leave_out, least=least, own_units=own_units)
        if draft is not None:
            fitted.report(draft)
    from sfumato.cli.show import show_verdict, show_weights
    from sfumato.report.words import feature_names, second_names

    console = stdout()
    verdict = getattr(fitted, "verdict_", None)
    if verdict is None:
        console.print(UNTOLD)
    else:
        show_verdict(console, verdict)
    for name, ledger in fitted.ledgers_.items():
        console.print(f"{name}: epsilon {ledger.spent():.4g}, {len(ledger)} releases", markup=False)
    for name, why in fitted.left_out_.items():
        note(f"{name} {why}")
    for name, found in fitted.disagreeing_.items():
        note(f"{name} disagrees with the other sites in {found.about}.")
    headings = [f"direction {k + 1}" for k in range(len(fitted.directions_))]
    show_weights(console, feature_names(fitted), fitted.directions_, headings)
    if hasattr(fitted, "y_directions_"):
        show_weights(console, second_names(fitted), fitted.y_directions_, headings)


@federated_app.command()
def status(
    folder: Annotated[Path, typer.Argument(help="Where the coordinator keeps its files.")] = Path("federation"),
    html: Annotated[Path | None, typer.Option(help="Write the same as a page, too.")] = None,
) -> None:
    """Tell what a coordinator is doing, or left undone, and its last result; nobody is asked anything."""
    from sfumato.federated.coordinator import describe_status, make_status_page

    stdout().print(describe_status(folder), markup=False, soft_wrap=True)
    if html is not None:
        with new_file(html) as draft:
            draft.write_text(make_status_page(folder), encoding="utf-8")
        note(f"page: {html}")


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


IN_OWN_UNITS = ("sir", "save", "dr", "phd", "lda", "cca")


def _estimator(
    options: EstimatorOptions, bounds: "Bounds | None", second: "Bounds | None" = None, own_units: bool = False
) -> Any:
    """The estimator with its bounds; what sites cannot fit is refused."""
    from sfumato.federated.task import refuse_unless_federated

    made = replace(options, picture=options.picture is True).build()  # sites buy none unless they are asked to
    refuse_unless_federated(made)
    if own_units and (options.estimator not in IN_OWN_UNITS or bounds is not None or second is not None):
        raise InputError(
            f"own-units: it is for {', '.join(IN_OWN_UNITS)}, without --lower and --upper; every site finds its own."
        )
    check_options(options.member, {"second": second})
    return made.set_params(bounds=bounds, **({} if second is None else {"y_bounds": second}))


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
