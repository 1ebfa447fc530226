"""`sfumato federated site`: take part in a federation, beside one's own file."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.cap_ledger import say_what_is_left
from sfumato.cli.failures import as_usage
from sfumato.cli.options import Classes, Person, Relation, ResponseKind, categories, kind_of, names
from sfumato.cli.terminal import note
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.privacy.budget import Budget


def site(
    data: Annotated[str, typer.Argument(help="The site's records; they stay here.")],
    response: Annotated[str, typer.Option("--response", "-y", help="Column to explain.")],
    name: Annotated[str, typer.Option(help="The site's name, as the coordinator will see it.")],
    coordinator: Annotated[str, typer.Option(help="host:port of the coordinator.")],
    ca: Annotated[Path, typer.Option(help="Certificate of the authority that signed the coordinator's certificate.")],
    key: Annotated[Path, typer.Option(help="The site's private key; its public half is with the coordinator.")],
    features: Annotated[
        list[str] | None, typer.Option(help="Columns to explain it with, as a,b,c (all others if not given).")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="Public categories of a feature, as ward=north|south; the first is the reference."),
    ] = None,
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
    from sfumato.federated.flower.commands import demand_files, demand_flower
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
        names(features),
        names(classes),
        categories(categorical),
        response_kind=kind_of(response_kind),
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
