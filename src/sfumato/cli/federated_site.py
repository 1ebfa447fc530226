"""`sfumato federated site`: take part in a federation, beside one's own file."""

import time
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.failures import as_usage
from sfumato.cli.options import Classes, names
from sfumato.cli.terminal import note
from sfumato.errors import InputError, SfumatoError

NOT_ADMITTED, AGAIN = b"Exit Code: 305", 2.0
"""What a SuperNode says when the coordinator does not admit it, and seconds until it is worth asking again."""


def site(
    data: Annotated[str, typer.Argument(help="The site's records; they stay here.")],
    response: Annotated[str, typer.Option("--response", "-y", help="Column to explain.")],
    name: Annotated[str, typer.Option(help="The site's name, as the coordinator will see it.")],
    coordinator: Annotated[str, typer.Option(help="host:port of the coordinator.")],
    ca: Annotated[Path, typer.Option(help="Certificate of the authority that signed the coordinator's certificate.")],
    key: Annotated[Path, typer.Option(help="The site's private key; its public half is with the coordinator.")],
    cap: Annotated[float | None, typer.Option(help="Epsilon that all runs together may ever spend here.")] = None,
    cap_delta: Annotated[float, typer.Option(help="Its delta.")] = 1e-6,
    ledger: Annotated[Path | None, typer.Option(help="The ledger file; NAME.jsonl if not given.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where answers are kept; NAME-answers if not given.")] = None,
    classes: Classes = None,
    rehearse: Annotated[int | None, typer.Option(help="Seed for a rehearsal with seeded noise: no privacy.")] = None,
    port: Annotated[int, typer.Option(help="Port on loopback for Flower's own use; 0 takes a free one.")] = 0,
) -> None:
    """Take part: answers the coordinator's known questions with noisy sums until stopped with Ctrl-C."""
    from sfumato.federated.flower import commands
    from sfumato.federated.flower.client import open_site
    from sfumato.federated.flower.processes import free_port

    commands.demand_flower()
    commands.demand_files(ca=ca, key=key)
    account, answers = ledger or Path(f"{name}.jsonl"), (folder or Path(f"{name}-answers")).absolute()
    _open_ledger(account, cap, cap_delta, rehearse is not None)
    told: dict[str, str | int] = {"name": name, "data": str(Path(data).absolute()), "response": response}
    told |= {"ledger": str(account.absolute()), "folder": str(answers)}
    chosen = names(classes)
    told |= ({"classes": "|".join(chosen)} if chosen else {}) | ({} if rehearse is None else {"seed": rehearse})
    open_site(told).facts()  # a wrong path or column is better told now than to the coordinator
    log = answers / "site.log"
    note(f"{name} answers {coordinator} within the cap of {account}; log: {log}; Ctrl-C stops it.")
    command = commands.supernode(coordinator, ca.absolute(), key.absolute(), port or free_port(), told)
    _answer(command, answers / "home", log)


def _answer(command: list[str], home: Path, log: Path) -> None:
    """Until stopped; a site that the coordinator does not know yet comes back."""
    from sfumato.federated.flower.commands import environment
    from sfumato.federated.flower.processes import started

    waiting = False
    while True:
        since = log.stat().st_size if log.exists() else 0
        with started(command, environment(home), log) as process:
            process.wait()
        if NOT_ADMITTED not in log.read_bytes()[since:]:
            raise SfumatoError(f"the site stopped by itself; see the end of {log}.")
        if not waiting:
            note("the coordinator does not know this site's key yet; trying again until it does.")
        waiting = True
        time.sleep(AGAIN)


def _open_ledger(path: Path, cap: float | None, delta: float, rehearsal: bool) -> None:
    from sfumato.privacy.budget import Budget
    from sfumato.privacy.ledger_file import FileLedger

    if cap is None and not path.exists():
        raise InputError(f"cap: {path} does not exist yet; say with --cap how much all runs together may spend.")
    with as_usage():
        FileLedger(path, None if cap is None else Budget.approximate(cap, delta), rehearsal=rehearsal)
