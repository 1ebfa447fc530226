"""The desk: one folder with tables, one account for all of them, and the runs that were declared."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import InputError
from sfumato.hints import visible
from sfumato.web.declaration import Declaration
from sfumato.web.forms import Terms
from sfumato.web.jobs import Bench, Job, run_command, said_in

if TYPE_CHECKING:
    from sfumato.methods.explanation import Explanation
    from sfumato.privacy.budget import Budget
    from sfumato.privacy.ledger import FileLedger
    from sfumato.sources.table import Table

State = Literal["planned", "running", "done", "stopped"]
HOME = "sfumato"
_NAME = re.compile("[0-9a-f]{16}")
FILES = {
    "report.html": "the report, one page to look at, print and send",
    "model.json": "the model, for sfumato transform and sfumato compare",
    "directions.csv": "the directions, in the units of the table",
}


@dataclass(frozen=True)
class Progress:
    """How far a fit has come: releases made, out of how many, and the last of them. All of it stands in the ledger."""

    made: int
    planned: int
    last: str


@dataclass(frozen=True)
class Run:
    """A declaration and what became of it; everything of it is in its folder."""

    said: Declaration
    folder: Path
    state: State

    @property
    def id(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def job(self) -> Job | None:
        """The process that made it, if it was ever started."""
        return Job.read(self.folder / "started")

    @property
    def model(self) -> Path:
        """The model file, if the run is done."""
        return self.folder / "result" / "model.json"

    def messages(self, word: str) -> list[str]:
        """What the command said: its errors or its notes."""
        try:
            text = (self.folder / "messages.txt").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return [visible(sentence) for sentence in said_in(text, word)]


class Desk:
    """What the pages are about.

    Parameters
    ----------
    folder : Path
        The tables: files in this folder, not below it and not linked from elsewhere.
    account : Path, optional
        The ledger file of these tables; ``sfumato/account.jsonl`` in the folder if not given.
    """

    def __init__(self, folder: Path, account: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.home = self.folder / HOME
        self.account = self.home / "account.jsonl" if account is None else account.resolve()
        self.bench = Bench(self.home)
        self._counted: dict[tuple[Any, ...], int] = {}

    def check(self) -> None:
        """Refuse a folder that is none."""
        if not self.folder.is_dir():
            raise InputError(f"folder: {self.folder} is not a directory; name the one with your tables.")

    def open(self) -> None:
        """Make the desk's own folder, for nobody else to read."""
        self.check()
        try:
            self.home.mkdir(mode=0o700, exist_ok=True)
            (self.home / "runs").mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise InputError(f"folder: cannot write in {self.folder} ({error.strerror}); choose another.") from None

    def tables(self) -> list[str]:
        """Names of the tables."""
        from sfumato.sources.formats import ARROW, CSV, PARQUET

        known = (*CSV, *PARQUET, *ARROW)
        shown = [p for p in self.folder.iterdir() if p.name.lower().endswith(known) and not p.name.startswith(".")]
        return sorted(p.name for p in shown if p.is_file() and p.resolve().parent == self.folder)

    def table(self, name: str) -> "Table":
        """A table of the folder; nothing but its names and types is read."""
        from sfumato.sources.formats import open_tables

        if name not in self.tables():  # whatever the name says, only these are opened
            raise InputError("table: there is no such table in the folder; choose one from the list.")
        return open_tables([self.folder / name])[0]

    def has_account(self) -> bool:
        """Whether the account was opened."""
        return self.account.exists()

    def ledger(self) -> "FileLedger":
        """The account."""
        from sfumato.privacy.ledger import FileLedger

        if not self.has_account():
            raise InputError("account: open an account first; it says how much may ever be spent on these tables.")
        return FileLedger(self.account)

    def open_account(self, cap: "Budget", relation: Any, protects: Any, purpose: str) -> None:
        """Open the account, once."""
        from sfumato.privacy.ledger import FileLedger

        if self.has_account():
            raise InputError("account: it is open already; its cap stands.")
        FileLedger(self.account, cap, relation, purpose=purpose, protects=protects)

    def terms(self) -> Terms:
        """What the account has settled for all fits."""
        ledger = self.ledger()
        return Terms(ledger.relation, ledger.protects)

    def declare(self, said: Declaration) -> Run:
        """The run of a declaration: a new one, or the one that was declared before in the same words."""
        folder = self._place(said.id)
        if not (folder / "study.json").exists():
            folder.mkdir(mode=0o700, exist_ok=True)
            if said.bounds:
                (folder / "bounds.toml").write_text(said.bounds_file(), encoding="utf-8")
            (folder / "study.json").write_text(said.written(), encoding="utf-8")
        return self.run(said.id)

    def declare_again(self, run: Run) -> Run:
        """The same declaration, to be paid for anew: the first of its repetitions that was never started."""
        said = run.said
        while (self._place(said.id) / "started").exists():
            said = said.fit_again()
        return self.declare(said)

    def run(self, name: str) -> Run:
        """A run by its name."""
        folder = self._place(name)
        if not _NAME.fullmatch(name) or not (folder / "study.json").is_file():
            raise InputError("run: there is no such run; go back to the list.")
        said = Declaration.read((folder / "study.json").read_text(encoding="utf-8"))
        if said.id != name:
            raise InputError("run: its declaration was changed after it was made; declare the study again.")
        return Run(said, folder, self._state(folder))

    def runs(self) -> list[Run]:
        """Every run that can be read, the latest first."""
        found = []
        for folder in sorted((self.home / "runs").glob("*"), key=_age):
            try:
                found.append(self.run(folder.name))
            except InputError:  # a folder that is none of ours, or was altered
                continue
        return found

    def start(self, run: Run) -> None:
        """Fit; a run that was ever started is not started again, whoever asks."""
        if run.state == "planned":
            self.ledger().admit(self.explain(run).plan)
            words = run.said.words(self._short(run.folder), self._short(self.account))
            self.bench.start(run.id, words, self.folder, run.folder / "messages.txt", run.folder / "started")

    def command(self, run: Run) -> str:
        """The command that fits a run, as it would be typed in the folder of the tables."""
        return run.said.command(self._short(run.folder), self._short(self.account))

    def explain(self, run: Run, n_records: int | None = None) -> "Explanation":
        """The plan of a run, and what to expect; of `n_records` records if given, else of its own."""
        from sfumato.study import explain_fit, prepare

        self.table(run.said.table)
        file, said = (self.folder / run.said.table).stat(), run.said
        about = (said.table, said.features, said.second, said.response, said.person, said.drop_missing, said.relation)
        key = (file.st_mtime_ns, file.st_size, file.st_ino, *about)
        prepared = prepare(*said.study(self.folder, run.folder))
        plan = explain_fit(*prepared, n_records or self._counted.get(key))
        if n_records is None:
            self._counted[key] = plan.n_samples  # counting reads the whole table: once is enough
        return plan

    def progress(self, run: Run) -> Progress:
        """How far a fit has come, as its ledger says."""
        job = run.job
        if job is None or not self.has_account():
            return Progress(0, 0, "")
        ours = [each for each in self.ledger().runs() if each.by.get("pid") == job.pid and each.at >= job.started]
        if not ours:
            return Progress(0, 0, "")
        entries = ours[-1].entries
        return Progress(len(entries), len(ours[-1].planned), entries[-1][1].purpose if entries else "")

    def discard(self, run: Run) -> None:
        """Forget a plan that was never fitted."""
        if run.state == "planned":
            shutil.rmtree(run.folder)

    def make_report(self, run: Run) -> Path:
        """The report of a run that is done; made from its model if the fit was interrupted before it."""
        report = run.model.parent / "report.html"
        if not report.exists():
            run_command(["report", str(run.model), f"--out={report}"], self.folder)
        return report

    @contextmanager
    def scores(self, run: Run) -> Iterator[Path]:
        """The coordinates of the table's own records, in a file that is gone afterwards. They are not private."""
        self.table(run.said.table)
        with TemporaryDirectory(dir=run.folder) as folder:
            out = Path(folder) / "scores.csv"
            drop = ["--drop-missing"] if run.said.drop_missing else []
            words = ["transform", f"--model={run.model}", f"--out={out}", *drop, "--", run.said.table]
            run_command(words, self.folder)
            yield out

    def _short(self, path: Path) -> Path:
        """A path as it is named from the folder of the tables."""
        return path.relative_to(self.folder) if path.is_relative_to(self.folder) else path

    def _place(self, name: str) -> Path:
        return self.home / "runs" / name

    def _state(self, folder: Path) -> State:
        if not (folder / "started").exists():
            return "planned"
        job = self.bench.current()
        if job is not None and job.run == folder.name:
            return "running"
        return "done" if (folder / "result" / "model.json").exists() else "stopped"


def _age(folder: Path) -> tuple[float, str]:
    """Latest first."""
    try:
        return -folder.stat().st_mtime, folder.name
    except OSError:
        return 0.0, folder.name
