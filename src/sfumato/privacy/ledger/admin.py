"""What the owner of a ledger does with it: look, mend, merge."""

import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.budget import Budget, adaptive_epsilon, describe_remaining, unknown_event
from sfumato.privacy.events import Event
from sfumato.privacy.ledger import disk
from sfumato.privacy.ledger.chain import Chain, Run, origin, salvage
from sfumato.privacy.ledger.file import FileLedger
from sfumato.privacy.ledger.lines import LedgerLine, event_to, seal
from sfumato.privacy.ledger.memory import _now

_Lines = list[tuple[str, Mapping[str, Any]]]


def summary(ledger: FileLedger) -> str:
    """Which account this is, what is spent and what is left, in one line.

    >>> import tempfile, pathlib
    >>> ledger = FileLedger(pathlib.Path(tempfile.mkdtemp()) / "study.jsonl", Budget.approximate(3, 1e-6))
    >>> summary(ledger).partition("study.jsonl")[2]
    ': epsilon = 0 of the cap (epsilon = 3, delta = 1e-06) is spent or set aside; (epsilon = 3, delta = 1e-06) is left'
    """
    left = ledger.remaining()
    cap, path = ledger.budget, ledger.path.absolute()
    spent = f"rho = {ledger.rho:.4g}" if cap.delta is None else f"epsilon = {ledger.spent():.4g}"
    return f"{path}: {spent} of the cap {cap.describe()} is spent or set aside; {describe_remaining(left)}"


def spent_here(ledger: FileLedger) -> str:
    """What this process has spent since the ledger was opened, by a run that was given up, in one line.

    >>> import tempfile, pathlib
    >>> ledger = FileLedger(pathlib.Path(tempfile.mkdtemp()) / "study.jsonl", Budget.approximate(3, 1e-6))
    >>> spent_here(ledger).partition("study.jsonl")[2]
    ' was not charged: nothing was spent'
    """
    path, who, before = ledger.path.absolute(), disk.who(), set(ledger._account.runs)
    since = [run for run in ledger.refresh()._account.runs.values() if run.id not in before]
    mine = [run for run in since if run.by == who and run.entries]
    if not mine:
        return f"{path} was not charged: nothing was spent"
    run, delta = mine[-1], ledger.budget.delta or 1e-6
    alone = _epsilon([entry.event for _, entry in run.entries], delta)
    made = f"{len(run.entries)} of {max(len(run.planned), len(run.entries))} releases were made"
    return f"{made} and stay in {path} (epsilon = {alone} on their own), what was set aside for others is given back"


def show(ledger: FileLedger, *, entries: bool = False) -> str:
    """The ledger as text: its cap, what is spent and left, every run; every release too if `entries`.

    >>> import tempfile, pathlib
    >>> ledger = FileLedger(pathlib.Path(tempfile.mkdtemp()) / "study.jsonl", Budget.approximate(3, 1e-6))
    >>> print(show(ledger).splitlines()[1])
    cap (epsilon = 3, delta = 1e-06), relation 'replace'; (epsilon = 3, delta = 1e-06) is left
    """
    runs, whom = ledger.runs(), " of a person" if ledger.protects == "person" else ""
    delta = ledger.budget.delta or 1e-6
    rows = [
        ("run", "when", "who", "purpose", "state", "releases", "epsilon alone"),
        *(_row(run, delta) for run in runs),
    ]
    lines = [
        f"{ledger.path.absolute()}, created {ledger._account.created}, head {ledger.head}",
        f"cap {ledger.budget.describe()}, relation {ledger.relation!r}{whom}; {describe_remaining(ledger.remaining())}",
        f"spent and set aside so far: epsilon = {ledger.spent(delta):.6g} at delta = {delta:.6g} "
        "(a running total; what is guaranteed, whatever is asked next, is the cap)",
        *_table(rows),
    ]
    if entries:
        head = ("when", "purpose", "query", "sensitivity", "noise std", "epsilon alone")
        lines += ["", *_table([head, *(_entry_row(entry, delta) for entry in ledger.entries)])]
    if ledger._chain.damage is not None:
        lines.append(f"DAMAGED: {ledger._chain.damage}")
    return "\n".join(lines)


def repair(path: str | PathLike[str], reason: str, *, lost: Budget | Sequence[Event] | None = None) -> FileLedger:
    """Acknowledge damage, so that the ledger may be written again. Nothing is deleted: the bad bytes stay in place.

    Lines among them that agree with their own hash are written anew. All other damage may hide releases, also a tail
    that is cut off: a crash tears a line before anything is released under it, but so looks a file that was cut later,
    and then whole runs are missing. So their cost must be stated.

    Parameters
    ----------
    path : str or Path
    reason : str
        What happened, in your words; stands in the ledger.
    lost : sequence of events, or a zCDP Budget
        What the unreadable lines may have cost, at most: the releases themselves, from a backup or from the fitted
        models' own ledgers (``load_model("model.json").ledger_.events``), or a bound on their rho. An epsilon will not
        do: at the same epsilon and delta a run that selects costs several times the rho of a Gaussian one. Empty,
        ``lost=()``, if you know that nothing was released.
    """
    events = None if lost is None else _lost(lost)
    ledger = FileLedger(path)
    known: set[str] = set()
    with disk.locked(ledger.path, write=True) as fd:
        raw = disk.read_from(fd, ledger.path, 0)
        damage = Chain().extend(raw).damage
        if damage is None:
            raise InputError(f"ledger: {ledger.path} is not damaged; there is nothing to repair.")
        if events is None:
            raise BudgetError(
                f"ledger: {damage}, and may have held releases; state their cost, for instance lost=Budget.zcdp(0.1), "
                "or lost=() if you know that nothing was released (--lost-rho, --lost-model, --nothing-lost)."
            )
        newline = b"" if raw.endswith(b"\n") else b"\n"
        chain = Chain().extend(raw + newline, seen=lambda line: known.add(line.hash))  # only a newline may be missing
        disk.append(fd, ledger.path, newline + _mended(chain, frozenset(known), reason, events), len(raw))
    return FileLedger(path)


def _lost(lost: Budget | Sequence[Event]) -> tuple[Event, ...]:
    if not isinstance(lost, Budget):
        return tuple(lost)
    if lost.rho is None:
        raise InputError(
            "lost: an epsilon does not tell what selections cost; give a bound on rho, as Budget.zcdp(0.1), or the "
            "lost releases themselves, as load_model('model.json').ledger_.events."
        )
    return (unknown_event(lost.rho),)


def merge(
    paths: Sequence[str | PathLike[str]], out: str | PathLike[str], cap: Budget, *, allow_network: bool = False
) -> FileLedger:
    """One ledger from several of the *same data*, or from diverged copies of one: every release once.

    Releases are told apart by the hash under which they were first written. A run counts as open if it is open in any
    ledger that knows it. Afterwards use the merged ledger only.
    """
    ledgers = [FileLedger(path, allow_network=allow_network) for path in paths]
    if not ledgers:
        raise InputError("paths: give at least one ledger to merge.")
    if len({(ledger.relation, ledger.rehearsal, ledger.protects) for ledger in ledgers}) > 1:
        raise InputError(
            "paths: ledgers of different relations, of records and persons, or real and rehearsed, do not add up."
        )
    for ledger in ledgers:
        ledger.verify()
    if Path(out).exists():
        raise InputError(f"out: {out} exists already; name a new file.")
    first = ledgers[0]
    kept: dict[str, Any] = {"rehearsal": first.rehearsal, "protects": first.protects, "allow_network": allow_network}
    merged = FileLedger(out, cap, first.relation, purpose="merged", **kept)
    with merged._writing() as fd:
        merged._write(fd, _union(ledgers))
    return merged


def _union(ledgers: Sequence[FileLedger]) -> _Lines:
    lines: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def add(line: LedgerLine) -> None:
        if line.kind in ("reserve", "repair", "entry"):
            kind, fields = _copy(line)
            lines.setdefault(fields["origin"], ("reserve" if kind == "repair" else kind, fields))

    for ledger in ledgers:
        ledger._read_whole(add)
    runs = [run for ledger in ledgers for run in ledger._whole().runs.values()]
    still_open = {run.id for run in runs if not run.closed}
    closed = {run.id: None for run in runs if run.id not in still_open}
    return [*lines.values(), *(("close", {"run": name, "at": _now(), "by": disk.who()}) for name in closed)]


def _copy(line: LedgerLine) -> tuple[str, Mapping[str, Any]]:
    return line.kind, {**line.fields, "origin": origin(line)}


def _mended(chain: Chain, known: frozenset[str], reason: str, lost: Sequence[Event]) -> bytes:
    """A repair line for the damage after the chain, and the lines among it that can be saved.

    Lines that the account cannot take stay in the damaged bytes.
    """
    gap = chain.damage.raw if chain.damage is not None else b""
    about = {"run": f"repair-{chain.head[:8]}", "purpose": reason, "by": disk.who(), "at": _now()}
    digest, planned = hashlib.sha256(gap).hexdigest(), [event_to(event) for event in lost]
    fields = {**about, "planned": planned, "skipped": len(gap), "sha256": digest}
    text = b""
    for kind, content in [("repair", fields), *map(_copy, salvage(gap, known))]:
        sealed = seal(kind, content, chain.head)[1]
        longer = chain.extend(sealed)
        if longer.damage is None:
            chain, text = longer, text + sealed
    return text


def _row(run: Run, delta: float) -> tuple[str, ...]:
    who = f"{run.by.get('user', '?')}@{run.by.get('host', '?')}"[:40]
    done = f"{len(run.entries)} of {max(len(run.planned), len(run.entries))}"
    return run.id, run.at, who, run.purpose, run.state, done, _epsilon(run.counted, delta)


def _entry_row(entry: Any, delta: float) -> tuple[str, ...]:
    numbers = (f"{entry.sensitivity:.4g}", f"{entry.noise_std:.4g}", _epsilon((entry.event,), delta))
    return entry.at, entry.purpose, entry.query, *numbers


def _epsilon(events: Sequence[Event], delta: float) -> str:
    return f"{adaptive_epsilon(events, delta):.4g}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    # text from a file, without characters that could drive a terminal
    clean = [["".join(c if c.isprintable() else "?" for c in cell)[:80] for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in clean) for i in range(len(clean[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in clean]
