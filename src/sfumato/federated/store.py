"""What each end of a federation remembers of a run, on disk before it is sent, so that an interrupted run can go on.

A site (`Store`, `RunLedger`): its ledger, the terms of every run, every answer it ever gave. A question that comes
again, after a lost connection or from a coordinator that was started again, gets the stored answer: no new noise, no
new cost. A site that was killed between charge and answer has a claim without an answer, and never draws that noise a
second time.

A coordinator (`Journal`): the name of the run, who takes part, and who was heard when. A question follows from the
answers before it. A run that goes on must ask the very questions it has asked already, as a site answers each line
once; so it adds up the answers of the same sites as before, also where more are there by now.
"""

import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sfumato.errors import InputError
from sfumato.privacy.ledger import FileLedger, Mark
from sfumato.privacy.ledger.disk import sync
from sfumato.privacy.plan import Plan
from sfumato.settings.federated import SitesLostError
from sfumato.statistics.wire import RefusedError, dump_json
from sfumato.typing import FloatArray


class Store:
    """A folder per run. Names of runs are hexadecimal (checked by `run_from`), names of lines come from the plan."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    def mark(self) -> Mark | None:
        """Where the site's ledger stood when the site last wrote to it; None before."""
        path = self._folder / "ledger.json"
        if not path.exists():
            return None
        return Mark(**json.loads(path.read_text(encoding="utf-8")))

    def remember(self, mark: Mark | None) -> None:
        """Note which ledger the site uses, and how far it went."""
        if mark is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / "ledger.json", dump_json(asdict(mark)))

    def begin(self, run: str, terms: dict[str, Any], account: str) -> None:
        """Remember accepted terms and the run of the ledger they were reserved under."""
        (self._folder / run).mkdir(parents=True, exist_ok=True)
        sync(self._folder)
        write_whole(self._folder / run / "terms.json", dump_json({"terms": terms, "account": account}))

    def terms(self, run: str) -> tuple[dict[str, Any], str] | None:
        """Accepted terms and their run of the ledger; None for an unknown run."""
        path = self._folder / run / "terms.json"
        if not path.exists():
            return None
        kept = json.loads(path.read_text(encoding="utf-8"))
        return kept["terms"], kept["account"]

    def answer(self, run: str, line: str, fingerprint: str) -> FloatArray | None:
        """The answer given to this question, None if the line is still open; `RefusedError` otherwise."""
        claim = self._path(run, line, "claim")
        if not claim.exists():
            return None
        if claim.read_text(encoding="ascii") != fingerprint:
            raise RefusedError(f"line {line!r} was already answered, for another question.")
        answer = self._path(run, line, "npy")
        if not answer.exists():
            raise RefusedError(f"line {line!r} is being answered, or was interrupted after it was charged.")
        return np.asarray(np.load(answer, allow_pickle=False), dtype=np.float64)

    def claim(self, run: str, line: str, fingerprint: str) -> None:
        """Take the line, once and for all; of two processes that try, one is refused."""
        try:
            # "x": the file system decides which of two processes was first
            with open(self._path(run, line, "claim"), "x", encoding="ascii") as file:
                file.write(fingerprint)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            raise RefusedError(f"line {line!r} is being answered.") from None
        sync(self._folder / run)  # before anything is charged: a power cut must not forget that it was

    def keep(self, run: str, line: str, value: FloatArray) -> None:
        """Store the answer before it is sent: a half-written one would be sent as if it were the one paid for."""
        write_whole(self._path(run, line, "npy"), value)

    def _path(self, run: str, line: str, kind: str) -> Path:
        return self._folder / run / f"{re.sub('[^a-z0-9]', '-', line)}.{kind}"


def write_whole(path: Path, content: str | FloatArray) -> None:
    """Write text or numbers to a file that is whole or absent, also after a power cut."""
    part = path.with_suffix(f".{os.getpid()}.part")  # of two processes, each writes its own
    with open(part, "wb") as file:
        if isinstance(content, str):
            file.write(content.encode())
        else:
            np.save(file, content, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    sync(path.parent)


class RunLedger(FileLedger):
    """A `FileLedger` that begins a run, or goes on with run `run` in another process.

    A site may be stopped and started in the middle of a run, so the end of a process does not end the run: what the
    plan set aside stays set aside until the run is complete or closed.
    """

    _gives_back = False

    def __init__(self, path: str | PathLike[str], run: str = "", *, purpose: str = "federated run") -> None:
        super().__init__(path, purpose=purpose)
        self._run = run

    @property
    def run(self) -> str:
        """Name of the run in the file."""
        return self._run

    @property
    def _called(self) -> str:
        """The guarantee is told to the coordinator, whom no file name of the site's concerns."""
        return "the site's ledger"

    def reserved_for(self, purpose: str, plan: Plan) -> str | None:
        """The run that set this very plan aside for this purpose and released nothing of it; None if there is none."""
        wanted = Counter(plan.events)
        return next((run.id for run in self.runs() if run.purpose == purpose and Counter(run.unspent) == wanted), None)

    def reserve(self, plan: Plan) -> None:
        """Set the whole plan aside; nothing to do for a run that goes on."""
        if not self._run:
            super().reserve(plan)


T = TypeVar("T")
_JOURNAL = {"run": str, "settings": str, "heard": dict, "members": dict, "accepted": dict}


def read_journal(path: Path) -> dict[str, Any]:
    """What a coordinator noted of a run; `InputError` for a file that does not tell."""
    kept = read_object(path)
    if not all(isinstance(kept.get(name), kind) for name, kind in _JOURNAL.items()):
        raise InputError(unreadable(path))
    return kept


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of the coordinator's; `InputError` if there is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise InputError(unreadable(path))
    return data


def unreadable(path: Path) -> str:
    """What to say of such a file."""
    return f"folder: {path} cannot be read; restore it, or delete it to begin anew."


class Journal:
    """A run's memory, in the file `path` if there is one."""

    def __init__(self, run: str | None = None, path: Path | None = None) -> None:
        self.run = run or secrets.token_hex(16)
        self.members: dict[str, int | None] = {}
        self.accepted: dict[str, int | None] = {}
        self._heard: dict[str, list[str]] = {}
        self._latest: tuple[str, list[str]] | None = None
        self._path, self._settings = path, ""
        self.abandoned: list[str] = []

    @classmethod
    def resume(cls, path: Path, settings: Mapping[str, Any], *, anew: bool = False) -> "Journal":
        """The run that was interrupted here, if it had the same settings; a new one otherwise, or if told so.

        A run that is not gone on with is `abandoned`: its sites are told, so that they give back what it set aside.
        """
        journal = cls(path=path)
        journal._settings = dump_json(dict(settings))
        if path.exists():
            kept = read_journal(path)
            journal.abandoned = kept.get("abandoned", [])
            if kept["settings"] == journal._settings and not anew:
                journal.run, journal._heard = kept["run"], kept["heard"]
                journal.members, journal.accepted = kept["members"], kept["accepted"]
                return journal
            journal.abandoned = [*journal.abandoned, kept["run"]]
        journal._write()
        return journal

    def given_up(self) -> None:
        """The sites were told of the runs that nobody goes on with."""
        self.abandoned = []
        self._write()

    def begin(self, members: Mapping[str, int | None]) -> None:
        """The sites that the plan is made for, with their sizes; whoever comes later does not take part."""
        self.members = self.members or dict(members)
        self._write()

    def accept(self, members: Mapping[str, int | None]) -> None:
        """The sites that accepted the plan."""
        self.accepted = self.accepted or dict(members)
        self._write()

    def same(self, line: str, asked: Collection[str], found: dict[str, T]) -> dict[str, T]:
        """The answers that count on a line: of those who were heard the first time. Sites may be asked in turns."""
        turn = f"{line}: {', '.join(sorted(asked))}"
        known = self._heard.get(turn)
        if known is None:
            self._latest = (turn, sorted(found))
            return found
        gone = [site for site in known if site not in found]
        if gone:
            raise SitesLostError(
                f"{', '.join(gone)} answered {line!r} before this run was interrupted and must be there to go on with "
                f"it; start again when it is, or begin anew without {self._path or 'the name of the run'}."
            )
        return {site: found[site] for site in known}

    def go_on(self) -> None:
        """The last line's answers were enough: what is asked next depends on them."""
        if self._latest is not None:
            turn, sites = self._latest
            self._heard[turn], self._latest = sites, None
            self._write()

    def forget(self) -> None:
        """The run has an outcome."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        data = {"run": self.run, "settings": self._settings, "heard": self._heard}
        data |= {"members": self.members, "accepted": self.accepted, "abandoned": self.abandoned}
        write_whole(self._path, json.dumps(data))
