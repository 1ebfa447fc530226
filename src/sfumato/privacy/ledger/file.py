"""FileLedger: an account on disk that many runs share and none can overdraw; `account`: one for a ``with`` block."""

import contextlib
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

from sfumato.errors import BudgetError, InputError, SfumatoError
from sfumato.privacy.budget import Budget, admits, describe_remaining, remaining_budget
from sfumato.privacy.events import Event, NoGuarantee
from sfumato.privacy.ledger import disk
from sfumato.privacy.ledger.chain import EVERY, Account, Chain, Run, checkpoint, open_chain, origin
from sfumato.privacy.ledger.lines import (
    START,
    VERSION,
    LedgerLine,
    budget_to,
    entry_to,
    event_to,
    is_altered_header,
    read_line,
    seal,
)
from sfumato.privacy.ledger.memory import Entry, Ledger, Mark, _now
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
    allow_network : bool
        Use a network disk (NFS, SMB, ...) although its locks may not hold between machines; a new file remembers it.
    protects : {"record", "person"}, optional
        Whom the cap protects, "record" for a new file. The `unit` of each run says how many rows of a person count.

    Notes
    -----
    `events`, `total` are as of the last refresh or write; `remaining`, `runs`, `verify` read the file again.
    The lock is `flock`: use a local disk. Every thousand lines a checkpoint says what the lines before it add up to, so
    opening a long ledger reads the lines after the last one alone; `entries` and `runs` read them all. Pickles hold the
    path and what was read.

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
        allow_network: bool = False,
        protects: Kind | None = None,
    ) -> None:
        self.path = Path(path).absolute()  # the same account wherever the process goes
        self.purpose = purpose
        self._run = ""
        self._chain = Chain()
        self._allow_network = allow_network
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
    def id(self) -> str:
        """The account's own name, made when it was created; copies of the file share it."""
        return self._account.id

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases in the file, of all runs, oldest first."""
        return self._whole().entries

    @property
    def events(self) -> tuple[Event, ...]:
        """Every cost that counts: releases made, and what open runs have set aside.

        Runs that are over, before the last checkpoint, are told by one or two events that cost as much as all of them.
        """
        if self._chain.damage is not None:
            return (*self._account.events, NoGuarantee("the ledger is damaged, so its total is unknown."))
        return self._account.events

    def __len__(self) -> int:
        return self._account.n_releases

    @property
    def mine(self) -> tuple[Entry, ...]:
        """The releases of this run alone."""
        return tuple(entry for _, entry in self._own.entries)

    @property
    def head(self) -> str:
        """Hash of the last line: noted elsewhere, it lets `verify` notice a file that was cut or rewritten."""
        return self._chain.head

    def of_this_run(self, budget: Budget) -> Ledger:
        """The account of this run alone: what other runs wrote to the file is not this run's to tell."""
        return Ledger.restore(budget, self.relation, self.rehearsal, self.mine, self.mark)

    @property
    def mark(self) -> Mark | None:
        """The head, with the ledger it belongs to: for a model file, a report, an outcome."""
        return Mark(self.id, self.head, self._chain.size)

    def runs(self) -> tuple[Run, ...]:
        """Every run, oldest first: who, when, why, what it cost."""
        self.refresh()
        return tuple(self._whole().runs.values())

    def begin(self) -> "FileLedger":
        """A new run on the same account: what a fit does, so that one `FileLedger` may serve many fits at once."""
        run = FileLedger(self.path, purpose=self.purpose, allow_network=self._allow_network)
        if run.id != self.id:
            raise InputError(
                f"ledger: {self.path} is no longer the account that was opened, but another one; put that one back, or "
                "open this one by its path."
            )
        return run

    def refresh(self) -> Self:
        """Read what others have written since."""
        with disk.locked(self.path, write=False) as fd:
            self._catch_up(fd)
        return self

    def reserve(self, plan: Plan) -> None:
        """Set the whole cost of a plan aside, or refuse it; one locked step for all processes."""
        with self._writing() as fd:
            self.admit(plan)
            if not self._run or self._own.closed:
                self._run = secrets.token_hex(8)
            self._append(fd, "reserve", {"planned": [event_to(event) for event in plan.events]})
        if self._gives_back:
            weakref.finalize(self, _give_back, self.path, self._run, os.getpid())

    def record(self, entry: Entry) -> None:
        """Write a release and wait for the disk; refused if neither the reservation nor the cap has room for it."""
        self._refuse_another_unit(entry)
        with self._writing() as fd:
            if self._run and self._own.closed:
                raise BudgetError(f"the run was closed in {self.path}, so nothing more is released; fit again.")
            if entry.event not in self._own.unspent and not self._allows((entry.event,)):
                raise BudgetError(f"the release would pass the cap of {self.path}; {describe_remaining(self._left())}.")
            self._run = self._run or secrets.token_hex(8)
            self._append(fd, "entry", {"entry": entry_to(replace(entry, at=_now()))})

    def give_back(self, events: Iterable[Event]) -> None:
        """Nothing: a run in a file gives back what it did not use when it is closed."""

    def close(self, run: str | None = None) -> None:
        """Give back what a run set aside and did not use. Always safe: a closed run can release nothing more."""
        name = self._run if run is None else run
        with self._writing() as fd:
            found = self._account.runs.get(name)  # one that was folded has nothing left to give back
            if run is not None and found is None and self._find(run) is None:
                raise InputError(f"run: there is no run {run!r} in {self.path}; see `sfumato ledger show`.")
            if found is not None and found.unspent:
                self._append(fd, "close", {"run": name})

    def admit(self, plan: Plan) -> None:
        self._refuse_if_damaged()
        if not self._allows(plan.events):
            raise BudgetError(
                f"the run would pass the cap {self.budget.describe()} of {self.path}, "
                f"of which {describe_remaining(self._left())}; ask for less, or for a higher cap."
            )

    def remaining(self) -> Budget | None:
        """The largest budget one more run can have, now; None if nothing is left."""
        self.refresh()
        return self._left()

    def verify(self, *noted: str | Mark) -> str:
        """Read the whole file again and check every hash; `BudgetError` names the first line that fails.

        Heads and marks noted earlier (in a model file, a report, an outcome) must still be in the file; without them a
        file cut at a line's end looks sound.
        """
        known: set[str] = set()
        self._read_whole(lambda line: known.update((line.hash, origin(line))))
        self._refuse_if_damaged()
        for note in noted:
            head, other = (note.head, note.ledger != self.id) if isinstance(note, Mark) else (note, False)
            if head not in known:
                why = "was noted of another ledger" if other else "is not in it, so it was cut or rewritten"
                raise BudgetError(
                    f"ledger: {self.path} does not contain the noted head {head[:12]}...: the head {why}; "
                    "restore the file from a backup, or name the right one."
                )
        also = f" {len(noted)} noted head(s) among them." if noted else ""
        lines = f"{self._chain.count} line{'s' if self._chain.count > 1 else ''}"
        return f"{self.path}: {lines}, all hashes agree, head {self.head}.{also}"

    def continues(self, mark: Mark) -> bool:
        """Whether the file still goes on from a mark noted earlier; a look at one line, not at the whole chain."""
        with disk.locked(self.path, write=False) as fd:
            text = disk.line_before(fd, mark.size)
        return mark.ledger == self.id and f'"hash":"{mark.head}"'.encode() in text

    @property
    def guarantee(self) -> str:
        if self.rehearsal or any(isinstance(event, NoGuarantee) for event in self.events):
            return super().guarantee
        if self._passed():  # a repair booked what was lost, or a merge what others had spent
            return f"No guarantee of {self.budget.describe()}: the releases recorded in {self._called} {self._cost()}."
        return (
            f"The {len(self)} releases recorded in {self._called} so far, and all that its cap still admits, are "
            f"differentially private with {self.budget.describe()} with respect to {self.neighbours}."
        )

    @property
    def _called(self) -> str:
        """What the guarantee calls the account."""
        return self.path.name

    @property
    def _one_plan(self) -> bool:
        return self._account.one_plan

    @property
    def _account(self) -> Account:
        if self._chain.account is None:
            raise InputError(self._no_header())
        return self._chain.account

    def _no_header(self) -> str:
        raw = b"" if self._chain.damage is None else self._chain.damage.raw
        if not raw:
            return f"ledger: {self.path} is empty, which no ledger ever is; restore it from a backup or check the path."
        first = raw.partition(b"\n")[0]
        if is_altered_header(first):
            return f"ledger: {self.path} was altered, in its first line; restore it from a backup."
        return f"ledger: {self.path} has no readable header; restore it from a backup or check the path."

    @property
    def _own(self) -> Run:
        return self._find(self._run) or Run(self._run)

    def _find(self, run: str) -> Run | None:
        """A run by name, also one that is over and folded; None if there is none."""
        found = self._account.runs.get(run)
        if found is not None or not run or not self._account.before.runs:
            return found
        return self._whole().runs.get(run)

    def _left(self) -> Budget | None:
        return remaining_budget(self.budget, self.events)

    def _allows(self, events: tuple[Event, ...]) -> bool:
        """Whether there is room for a run of these events. One plan is fixed beforehand; later ones are adaptive."""
        return admits(self.budget, self.events, events)

    def _refuse_if_damaged(self) -> None:
        if self._chain.damage is not None:
            raise BudgetError(
                f"ledger: {self.path} is damaged, {self._chain.damage}; nothing is released until a repair says so."
            )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[int]:
        with disk.locked(self.path, write=True) as fd:
            self._catch_up(fd)
            self._refuse_if_damaged()
            yield fd

    def _catch_up(self, fd: int) -> None:
        chain = self._chain  # other threads may read, too: begin and end with the same
        if chain.size == 0:
            first, tail, size = disk.ends(fd)
            chain = open_chain(first, tail, size, lambda end: disk.digest(fd, end))
            self._refuse_network(first)
        self._chain = chain.extend(disk.read_from(fd, self.path, chain.size), keep=self._run)

    def _whole(self) -> Account:
        """The account with every run and release, also those that were folded: as far as this ledger has read."""
        if not self._account.before.runs:
            return self._account
        found = Chain().extend(disk.read_first(self.path, self._chain.size), whole=True).account
        assert found is not None
        return found

    def _read_whole(self, seen: Callable[[LedgerLine], None]) -> None:
        """Read every line again from the first, whatever a checkpoint says."""
        with disk.locked(self.path, write=False) as fd:
            self._chain = Chain().extend(disk.read_from(fd, self.path, 0), keep=self._run, seen=seen)

    def _append(self, fd: int, kind: str, fields: Mapping[str, Any]) -> None:
        about = {"run": self._run, "purpose": self.purpose, "by": disk.who(), "at": _now()}
        self._write(fd, [(kind, {**about, **fields})])
        if self._chain.count - self._chain.checked >= EVERY:
            told = checkpoint(self._chain, disk.digest(fd, self._chain.size))
            self._write(fd, [("checkpoint", {**told, "by": disk.who(), "at": _now()})])

    def _write(self, fd: int, lines: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Seal lines to the end of the chain and write them at once."""
        head, texts = self._chain.head, []
        for kind, fields in lines:
            line, text = seal(kind, fields, head)
            head = line.hash
            texts.append(text)
        chain = self._chain.extend(whole := b"".join(texts), keep=self._run)
        assert chain.damage is None
        disk.append(fd, self.path, whole, self._chain.size)
        self._chain = chain

    def _create(self, cap: Budget, relation: Relation, rehearsal: bool, protects: Kind) -> None:
        if not self._allow_network:
            self._refuse_network(b"")
        terms: dict[str, Any] = {
            "version": VERSION,
            "cap": budget_to(cap),
            "relation": relation,
            "rehearsal": rehearsal,
        }
        if protects != "record":  # what a ledger protects that does not say so
            terms["protects"] = protects
        if self._allow_network:
            terms["network"] = True
        about = {"purpose": self.purpose, "by": disk.who(), "at": _now(), "id": secrets.token_hex(16)}
        disk.create(self.path, seal("header", terms | about, START)[1])

    def _refuse_network(self, header: bytes) -> None:
        """Refuse a network disk, unless told otherwise now or when the ledger was created."""
        with contextlib.suppress(ValueError):
            self._allow_network = self._allow_network or read_line(header).fields.get("network") is True
        kind = None if self._allow_network else disk.network(self.path)
        if kind is not None:
            raise InputError(
                f"ledger: {self.path} is on a network file system ({kind}), whose locks may not hold; use a local "
                "disk, or create the ledger with allow_network=True (--allow-network) if one machine alone writes it."
            )


def _give_back(path: Path, run: str, pid: int) -> None:
    """When a run's ledger is gone without having used its plan: close the run. Never from a forked copy.

    Python may collect it at any moment, also while this very thread holds the lock: then another thread waits for it.
    """
    if os.getpid() == pid and disk.held():
        threading.Thread(target=_give_back, args=(path, run, pid)).start()
    elif os.getpid() == pid:
        with contextlib.suppress(OSError, SfumatoError):
            ledger = FileLedger(path, allow_network=True)
            ledger._run = run
            ledger.close()


_open: list[FileLedger] = []  # of this process, for all its threads: a fit in a pool of threads is paid for, too


@contextmanager
def account(
    path: str | PathLike[str],
    epsilon: float | None = None,
    delta: float = 1e-6,
    *,
    relation: Relation | None = None,
    protects: Kind | None = None,
    purpose: str = "",
) -> Iterator[FileLedger]:
    """An account for every fit inside the ``with`` block that is given no ``ledger`` of its own.

    Processes that are started inside the block, as by ``GridSearchCV(n_jobs=2)``, do not see it: hand it to the
    estimator, ``ledger=a``. Sites have accounts of their own, so `sfumato.federated.simulate` is refused inside it;
    what devices randomise themselves (`LabelPrivateSIR` and its kin) is paid for by each person, and not written to it.

    Parameters
    ----------
    path : str or Path
        The ledger file. Without `epsilon` it must exist.
    epsilon, delta : float, optional
        Its cap, for a new file; one that exists must have the same.
    relation : {"replace", "add-remove"}, optional
    protects : {"record", "person"}, optional
    purpose : str
        Why releases are made; stands in the file.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from sfumato import Bounds, PrivateSIR, account
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=2_000, p=4, random_state=0)
    >>> with account(mkdtemp() + "/study.jsonl", epsilon=3) as a:
    ...     sir = PrivateSIR(epsilon=1.0, bounds=Bounds(-1.5, 1.5)).fit(sample.x, sample.y)
    ...     print(a.remaining().describe())
    (epsilon = 2.7708..., delta = 1e-06)
    """
    cap = None if epsilon is None else Budget.approximate(epsilon, delta)
    ledger = FileLedger(path, cap, relation, purpose=purpose, protects=protects)
    _open.append(ledger)
    try:
        yield ledger
    finally:
        _open.remove(ledger)


def current_account() -> FileLedger | None:
    """The account of the innermost block, if there is one."""
    return _open[-1] if _open else None
