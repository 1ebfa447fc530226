"""FileLedger: an account on disk that many runs share and none can overdraw."""

import contextlib
import os
import secrets
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

from sfumato.errors import BudgetError, InputError, SfumatoError
from sfumato.privacy import ledger_io as io
from sfumato.privacy import room
from sfumato.privacy.account import Account, Run
from sfumato.privacy.accounting import total_epsilon
from sfumato.privacy.budget import Budget
from sfumato.privacy.chain import Chain
from sfumato.privacy.events import Event, NoGuarantee
from sfumato.privacy.ledger import Entry, Ledger, _now
from sfumato.privacy.ledger_lines import START, VERSION, budget_to, entry_to, event_to, seal
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import Kind
from sfumato.typing import Relation


class FileLedger(Ledger):
    """A ledger in a file of JSON lines: append-only, hash-chained, locked, and on the disk before noise is drawn.

    `reserve` sets a plan's whole cost aside in one locked step, so two processes that race for the rest of a cap are
    never both admitted. Each release is then synced to the disk before its noise exists. A crash leaves the rest of
    its plan set aside: the ledger may say too much, never too little. `close`, or an orderly end of the process,
    gives back what a run did not use.

    Parameters
    ----------
    path : str or Path
        Created if `cap` is given; must exist otherwise: a mistyped name must not open a second account.
    cap : Budget, optional
        What all runs together may spend, ever.
    relation : {"replace", "add-remove"}, optional
        Neighbouring relation of the guarantee, "replace" for a new file.
    purpose : str
        Why releases are made; stands in the file beside user, machine, process and time.
    rehearsal : bool
        For a new file: accept only seeded runs, which have no guarantee.
    protects : {"record", "person"}, optional
        Whom the cap protects, "record" for a new file. The `unit` of each run says how many rows of a person count.

    Notes
    -----
    `entries`, `events`, `total` are as of the last refresh or write; `remaining`, `runs`, `verify` read the file again.
    The lock is `flock`: use a local disk. Pickles hold the path and what was read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sfumato.privacy.plan import Line, Plan
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "study.jsonl"
    >>> ledger = FileLedger(path, Budget.approximate(3, 1e-6))
    >>> ledger.reserve(Plan((Line("a", "all", 1.0, ""),)).calibrate(Budget.approximate(1, 1e-6)))
    >>> round(FileLedger(path).total(), 6), round(FileLedger(path).remaining().epsilon, 3)
    (1.0, 2.771)
    """

    _gives_back = True  # at the end of the process; False where other processes go on with the run

    def __init__(
        self,
        path: str | PathLike[str],
        cap: Budget | None = None,
        relation: Relation | None = None,
        *,
        purpose: str = "",
        rehearsal: bool = False,
        protects: Kind | None = None,
    ) -> None:
        self.path = Path(path)
        self.purpose = purpose
        self._run = ""
        self._chain = Chain()
        if cap is not None:
            self._create(cap, relation or "replace", rehearsal, protects or "record")
        self.refresh()
        account = self._account
        super().__init__(account.cap, account.relation, rehearsal=account.rehearsal)
        if cap not in (None, account.cap) or relation not in (None, account.relation):
            raise InputError(
                f"ledger: {self.path} exists with cap {account.cap.describe()} and relation {account.relation!r}; "
                "leave cap and relation out, or merge it into a new ledger with another cap."
            )
        if protects not in (None, account.protects):
            raise InputError(f"ledger: {self.path} protects any one {account.protects}, not a {protects}; use another.")

    @property
    def protects(self) -> Kind:
        return self._account.protects

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases in the file, of all runs, oldest first."""
        return self._account.entries

    @property
    def events(self) -> tuple[Event, ...]:
        """Every cost that counts: releases made, and what open runs have set aside."""
        if self._chain.damage is not None and not self._chain.damage.torn:
            return (*self._account.events, NoGuarantee("the ledger is damaged, so its total is unknown."))
        return self._account.events

    @property
    def mine(self) -> tuple[Entry, ...]:
        """The releases of this run alone."""
        return tuple(entry for _, entry in self._own.entries)

    @property
    def head(self) -> str:
        """Hash of the last line: noted elsewhere, it lets `verify` notice a file that was cut or rewritten."""
        return self._chain.head

    def runs(self) -> tuple[Run, ...]:
        """Every run, oldest first: who, when, why, what it cost."""
        self.refresh()
        return tuple(self._account.runs.values())

    def begin(self) -> "FileLedger":
        """A new run on the same file: what a fit does, so that one `FileLedger` may serve many fits at once."""
        return FileLedger(self.path, purpose=self.purpose)

    def refresh(self) -> Self:
        """Read what others have written since."""
        with io.locked(self.path, write=False) as fd:
            self._catch_up(fd)
        return self

    def reserve(self, plan: Plan) -> None:
        """Set the whole cost of a plan aside, or refuse it; one locked step for all processes."""
        with self._writing() as fd:
            self.admit(plan)
            if not self._run or self._own.closed:
                self._run = secrets.token_hex(8)
            self._append(fd, "reserve", {"planned": [event_to(event) for event in plan.events]})
            self._runs += 1
        if self._gives_back:
            weakref.finalize(self, _give_back, self.path, self._run, os.getpid())

    def record(self, entry: Entry) -> None:
        """Write a release and wait for the disk; refused if neither the reservation nor the cap has room for it."""
        self._refuse_another_unit(entry)
        with self._writing() as fd:
            if self._run and self._own.closed:
                raise BudgetError(f"the run was closed in {self.path}, so nothing more is released; fit again.")
            if entry.event not in self._own.unspent and not self._allows((entry.event,)):
                raise BudgetError(f"the release would pass the cap of {self.path}; {room.words(self._left())}.")
            self._run = self._run or secrets.token_hex(8)
            self._append(fd, "entry", {"entry": entry_to(replace(entry, at=_now()))})

    def close(self, run: str | None = None) -> None:
        """Give back what a run set aside and did not use. Always safe: a closed run can release nothing more."""
        name = self._run if run is None else run
        with self._writing() as fd:
            found = self._account.runs.get(name)
            if run is not None and found is None:
                raise InputError(f"run: there is no run {run!r} in {self.path}; see `sfumato ledger show`.")
            if found is not None and found.unspent:
                self._append(fd, "close", {"run": name})

    def admit(self, plan: Plan) -> None:
        self._refuse_if_damaged()
        if not self._allows(plan.events):
            raise BudgetError(
                f"the run would pass the cap {self.budget.describe()} of {self.path}, "
                f"of which {room.words(self._left())}; ask for less, or for a higher cap."
            )

    def remaining(self) -> Budget | None:
        """The largest budget one more run can have, now; None if nothing is left."""
        self.refresh()
        return self._left()

    def spent(self, delta: float | None = None) -> float:
        one_plan = len(self._account.runs) <= 1
        return (total_epsilon if one_plan else room.epsilon)(self.events, self._delta(delta))

    def verify(self, head: str | None = None) -> str:
        """Read the whole file again and check every hash; `BudgetError` names the first line that fails.

        A `head` noted earlier must still be in the file; without it a file cut at a line's end looks sound.
        """
        self._chain = Chain()
        self.refresh()
        self._refuse_if_damaged()
        if head is not None and head not in {line.hash for line in self._chain.lines}:
            raise BudgetError(f"ledger: {self.path} does not contain the noted head; it was cut or rewritten.")
        return f"{self.path}: {len(self._chain.lines)} lines, all hashes agree, head {self.head}."

    @property
    def guarantee(self) -> str:
        if self.rehearsal or any(isinstance(event, NoGuarantee) for event in self.events):
            return super().guarantee
        return (
            f"The {len(self)} releases recorded in {self.path.name} so far, and all that its cap still admits, are "
            f"differentially private with {self.budget.describe()} with respect to {self.neighbours}."
        )

    @property
    def _account(self) -> Account:
        if self._chain.account is None:
            raise InputError(f"ledger: {self.path} has no readable header; restore it from a backup or check the path.")
        return self._chain.account

    @property
    def _own(self) -> Run:
        return self._account.runs.get(self._run, Run(self._run))

    def _left(self) -> Budget | None:
        return room.remaining(self.budget, self.events)

    def _refuse_if_damaged(self) -> None:
        if self._chain.damage is not None:
            raise BudgetError(
                f"ledger: {self.path} is damaged, {self._chain.damage}; nothing is released until a repair says so."
            )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[int]:
        with io.locked(self.path, write=True) as fd:
            self._catch_up(fd)
            self._refuse_if_damaged()
            yield fd

    def _catch_up(self, fd: int) -> None:
        self._chain = self._chain.extend(io.read_from(fd, self.path, self._chain.size))

    def _append(self, fd: int, kind: str, fields: Mapping[str, Any]) -> None:
        about = {"run": self._run, "purpose": self.purpose, "by": io.who(), "at": _now()}
        self._write(fd, [(kind, {**about, **fields})])

    def _write(self, fd: int, lines: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Seal lines to the end of the chain and write them at once."""
        chain, whole = self._chain, b""
        for kind, fields in lines:
            line, text = seal(kind, fields, chain.head)
            chain, whole = chain.append(line, len(text)), whole + text
        io.append(fd, self.path, whole, self._chain.size)
        self._chain = chain

    def _create(self, cap: Budget, relation: Relation, rehearsal: bool, protects: Kind) -> None:
        terms = {"version": VERSION, "cap": budget_to(cap), "relation": relation, "rehearsal": rehearsal}
        if protects != "record":  # what a ledger protects that does not say so
            terms["protects"] = protects
        about = {"purpose": self.purpose, "by": io.who(), "at": _now(), "id": secrets.token_hex(16)}
        io.create(self.path, seal("header", terms | about, START)[1])


def _give_back(path: Path, run: str, pid: int) -> None:
    """When a run's ledger is gone without having used its plan: close the run. Never from a forked copy."""
    if os.getpid() == pid:
        with contextlib.suppress(OSError, SfumatoError):
            FileLedger(path).close(run)
