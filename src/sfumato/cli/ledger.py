"""`sfumato ledger`: the account that all runs on the same records share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import as_usage
from sfumato.cli.terminal import note, stdout
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.privacy.budget import Budget

app = typer.Typer(help="The account that all runs on the same records share.")

File = Annotated[Path, typer.Argument(help="The ledger file.", show_default=False)]
Epsilon = Annotated[float | None, typer.Option(help="Epsilon of the cap.")]
Delta = Annotated[float | None, typer.Option(help="Its delta (1e-6 if not given).")]
Rho = Annotated[float | None, typer.Option(help="A zCDP cap instead of epsilon and delta.")]


@app.callback(invoke_without_command=True)
def group(context: typer.Context) -> None:
    """The account that all runs on the same records share: a cap, and every release ever made.

    Create it once, then fit with --cap-ledger.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def create(
    path: File,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    relation: Annotated[str, typer.Option(help="'replace' or 'add-remove'.")] = "replace",
    purpose: Annotated[str, typer.Option(help="What the data may be used for.")] = "",
    person: Annotated[
        bool, typer.Option("--person", help="For runs that protect persons with all their rows, not records.")
    ] = False,
) -> None:
    """Open a new account with a cap on what all runs together may spend."""
    from sfumato.privacy.ledger import FileLedger
    from sfumato.privacy.parameters import relation_of

    if path.exists():
        raise InputError(f"ledger: {path} exists already; look at it with 'sfumato ledger show {path}'.")
    cap, neighbours = _cap(epsilon, delta, rho), relation_of(relation)
    ledger = FileLedger(path, cap, neighbours, purpose=purpose, protects="person" if person else "record")
    _say(f"{path}: cap {ledger.budget.describe()}; fit with --cap-ledger {path}")


@app.command()
def show(
    path: File,
    releases: Annotated[bool, typer.Option("--releases", help="List every release, not only the runs.")] = False,
) -> None:
    """What was spent, by whom, when and why, and what is left."""
    from sfumato.privacy.ledger import FileLedger
    from sfumato.privacy.ledger.admin import show as text

    _say(text(FileLedger(path), entries=releases))


@app.command()
def verify(
    path: File,
    head: Annotated[str | None, typer.Option(help="A head noted earlier; it must still be in the file.")] = None,
) -> None:
    """Check every line against its hash, and the chain of all lines."""
    from sfumato.privacy.ledger import FileLedger

    _say(FileLedger(path).verify(*([] if head is None else [head])))


@app.command()
def remaining(path: File) -> None:
    """The largest budget one more run can have."""
    from sfumato.privacy.ledger import FileLedger

    left = FileLedger(path).remaining()
    _say("nothing is left" if left is None else left.describe())


@app.command()
def close(path: File, run: Annotated[str, typer.Argument(help="The run, as 'show' names it.")]) -> None:
    """Give back what an interrupted run set aside and did not use; it can release nothing more."""
    from sfumato.privacy.ledger import FileLedger

    ledger = FileLedger(path)
    ledger.close(run)
    _say(f"run {run} is closed; {_left(ledger.remaining())}")


@app.command()
def repair(
    path: File,
    reason: Annotated[str, typer.Option(help="What happened; stands in the ledger.")],
    lost_rho: Annotated[
        float | None, typer.Option(help="What unreadable lines may have cost at most (zCDP); not for a torn tail.")
    ] = None,
) -> None:
    """Acknowledge damage, so that the ledger may be written again. Nothing is deleted."""
    from sfumato.privacy.budget import Budget
    from sfumato.privacy.ledger.admin import repair as mend

    with as_usage():
        lost = None if lost_rho is None else Budget.zcdp(lost_rho)
    ledger = mend(path, reason, lost=lost)
    _say(f"{path} is whole again; {_left(ledger.remaining())}")


@app.command()
def merge(
    paths: Annotated[list[Path], typer.Argument(help="Ledgers of the same data, or copies of one.")],
    out: Annotated[Path, typer.Option(help="The new ledger.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
) -> None:
    """One ledger from several of the same data, every release once; also how to change a cap."""
    from sfumato.privacy.ledger.admin import merge as join

    ledger = join(paths, out, _cap(epsilon, delta, rho))
    _say(f"{out}: {len(ledger)} releases; {_left(ledger.remaining())}")
    note("use the new ledger only from now on.")


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


def _left(left: "Budget | None") -> str:
    return "nothing is left" if left is None else f"{left.describe()} is left"


def _say(text: str) -> None:
    stdout().print(text, markup=False, soft_wrap=True)
