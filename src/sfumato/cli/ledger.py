"""`sfumato ledger`: the account that all runs on the same records share."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.terminal import command_group, note, stdout
from sfumato.errors import InputError, as_usage

if TYPE_CHECKING:
    from sfumato.privacy.budget import Budget
    from sfumato.privacy.events import Event
    from sfumato.privacy.ledger import FileLedger, Mark

app = command_group("The account that all runs on the same records share.")

File = Annotated[Path, typer.Argument(help="The ledger file.", show_default=False)]
Epsilon = Annotated[float | None, typer.Option(help="Epsilon of the cap.")]
Delta = Annotated[float | None, typer.Option(help="Its delta (1e-6 if not given).")]
Rho = Annotated[float | None, typer.Option(help="A zCDP cap instead of epsilon and delta.")]
Network = Annotated[
    bool,
    typer.Option(
        "--allow-network", help="Allow a network disk, whose locks may not hold; one machine alone may write."
    ),
]


@app.command()
def create(
    path: File,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    relation: Annotated[str, typer.Option(help="'replace' or 'add-remove'.")] = "replace",
    purpose: Annotated[str, typer.Option(help="What the data may be used for.")] = "",
    allow_network: Network = False,
    rehearsal: Annotated[bool, typer.Option("--rehearsal", help="For seeded runs, which have no guarantee.")] = False,
    person: Annotated[
        bool, typer.Option("--person", help="For runs that protect persons with all their rows, not records.")
    ] = False,
) -> None:
    """Open a new account with a cap on what all runs together may spend."""
    from sfumato.privacy.ledger import FileLedger
    from sfumato.privacy.parameters import relation_of
    from sfumato.privacy.unit import Kind as Protected

    if path.exists():
        raise InputError(f"ledger: {path} exists already; look at it with 'sfumato ledger show {path}'.")
    cap, neighbours = _cap(epsilon, delta, rho), relation_of(relation)
    protects: Protected = "person" if person else "record"
    ledger = FileLedger(
        path, cap, neighbours, purpose=purpose, rehearsal=rehearsal, allow_network=allow_network, protects=protects
    )
    _say(f"{path.absolute()}: cap {ledger.budget.describe()}; fit with --cap-ledger {path}")


@app.command()
def show(
    path: File,
    releases: Annotated[bool, typer.Option("--releases", help="List every release, not only the runs.")] = False,
) -> None:
    """What was spent, by whom, when and why, and what is left."""
    from sfumato.privacy.ledger.admin import show as text

    _say(text(_open(path), entries=releases))


@app.command()
def verify(
    path: File,
    head: Annotated[list[str] | None, typer.Option(help="A head noted earlier; it must still be in the file.")] = None,
    model: Annotated[list[Path] | None, typer.Option(help="A model file that was fitted with this ledger.")] = None,
    report: Annotated[list[Path] | None, typer.Option(help="A report of such a fit.")] = None,
    outcome: Annotated[list[Path] | None, typer.Option(help="outcome.json of a federation it took part in.")] = None,
) -> None:
    """Check every line against its hash, and the chain of all lines.

    A file that was cut looks whole; a model, a report or an outcome that is newer than the cut shows it.
    """
    ledger = _open(path)
    noted = [*_of_models(model or ()), *_of_reports(report or ()), *_of_outcomes(outcome or (), ledger.id)]
    _say(ledger.verify(*(head or ()), *noted))
    say_what_is_left(ledger)


@app.command()
def remaining(path: File) -> None:
    """The largest budget one more run can have."""
    ledger = _open(path)
    left = ledger.remaining()
    _say("nothing is left" if left is None else left.describe())
    say_what_is_left(ledger)


@app.command()
def close(path: File, run: Annotated[str, typer.Argument(help="The run, as 'show' names it.")]) -> None:
    """Give back what an interrupted run set aside and did not use; it can release nothing more."""
    ledger = _open(path)
    ledger.close(run)
    _say_state(f"run {run} is closed", ledger)


@app.command()
def repair(
    path: File,
    reason: Annotated[str, typer.Option(help="What happened; stands in the ledger.")],
    lost_rho: Annotated[
        float | None, typer.Option(help="What the unreadable lines may have cost at most (zCDP).")
    ] = None,
    lost_model: Annotated[
        list[Path] | None, typer.Option(help="A model whose releases are among the unreadable lines; they are booked.")
    ] = None,
    nothing_lost: Annotated[
        bool,
        typer.Option("--nothing-lost", help="You know that nothing was released, as when a crash tore the last line."),
    ] = False,
) -> None:
    """Acknowledge damage, so that the ledger may be written again. Nothing is deleted."""
    from sfumato.privacy.ledger.admin import repair as mend

    ledger = mend(path, reason, lost=_lost(lost_rho, lost_model or (), nothing_lost))
    _say_state(f"{path} is whole again", ledger)


@app.command()
def merge(
    paths: Annotated[list[Path], typer.Argument(help="Ledgers of the same data, or copies of one.")],
    out: Annotated[Path, typer.Option(help="The new ledger.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    allow_network: Network = False,
) -> None:
    """One ledger from several of the same data, every release once; also how to change a cap."""
    from sfumato.privacy.ledger.admin import merge as join

    ledger = join(paths, out, _cap(epsilon, delta, rho), allow_network=allow_network)
    _say_state(f"{len(ledger)} releases in {out}", ledger)
    note("use the new ledger only from now on.")


def _open(path: Path) -> "FileLedger":
    from sfumato.privacy.ledger import FileLedger

    return FileLedger(path)


def say_what_is_left(ledger: "FileLedger") -> None:
    """One line on the account: where it is, what is spent, what is left."""
    from sfumato.privacy.ledger.admin import summary

    note(f"{summary(ledger)}.")


def _cap(epsilon: float | None, delta: float | None, rho: float | None) -> "Budget":
    from sfumato.privacy.budget import Budget

    if rho is not None and (epsilon is not None or delta is not None):
        raise InputError("rho: give either --rho, or --epsilon and --delta, not both.")
    with as_usage():
        if rho is not None:
            return Budget.zcdp(rho)
        if epsilon is None:
            raise InputError("epsilon: a ledger needs a cap; for instance --epsilon 3 --delta 1e-6.")
        return Budget.approximate(epsilon, 1e-6 if delta is None else delta)


def _lost(rho: float | None, models: Sequence[Path], nothing: bool) -> "tuple[Event, ...] | None":
    """What a repair must book; None if nothing was said."""
    from sfumato.model import load_model
    from sfumato.privacy.budget import Budget, unknown_event

    if nothing and (rho is not None or models):
        raise InputError("nothing-lost: leave it out where --lost-rho or --lost-model says what was lost.")
    if not nothing and rho is None and not models:
        return None
    with as_usage():
        bound = () if rho is None else (unknown_event(Budget.zcdp(rho).rho or 0.0),)
    return (*bound, *(event for path in models for event in load_model(path).ledger_.events))


def _of_models(paths: Sequence[Path]) -> "list[Mark]":
    from sfumato.model import load_model

    return [_present(load_model(path).ledger_.mark, "model", path) for path in paths]


def _of_reports(paths: Sequence[Path]) -> "list[Mark]":
    from sfumato.report.words import marks_in

    found = []
    for path in paths:
        try:
            marks = marks_in(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise InputError(f"report: {path} cannot be read; check the name.") from None
        found.append(_present(marks[0] if marks else None, "report", path))
    return found


def _of_outcomes(paths: Sequence[Path], ledger: str) -> "list[Mark]":
    """The heads that a federation's outcome notes of this ledger."""
    from sfumato.privacy.ledger import Mark

    found = []
    for path in paths:
        try:
            sites = json.loads(path.read_text(encoding="utf-8"))["spending"].values()
            told = [str(site["head"]) for site in sites if site.get("ledger") == ledger]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"outcome: {path} is not the outcome.json of a federation; check the name.") from None
        # 0: an outcome notes the head alone, so its place in the file is searched for
        found.append(_present(Mark(ledger, told[0], 0) if told else None, "outcome", path))
    return found


def _present(mark: "Mark | None", option: str, path: Path) -> "Mark":
    if mark is None:
        raise InputError(f"{option}: {path} notes no head of this ledger; it was not written to it.")
    return mark


def _say_state(what: str, ledger: "FileLedger") -> None:
    from sfumato.privacy.ledger.admin import summary

    _say(f"{what}; {summary(ledger)}")


def _say(text: str) -> None:
    stdout().print(text, markup=False, soft_wrap=True)
