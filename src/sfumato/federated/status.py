"""What a coordinator's folder tells: the run that is going on or was left undone, and the last result."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.coordinator import summarise_outcome
from sfumato.federated.store import read_journal, read_object, unreadable
from sfumato.hints import visible
from sfumato.report import svg
from sfumato.report.html import templates

GOES_ON = "the same command goes on with it, --anew gives it up"


@dataclass(frozen=True, slots=True)
class Member:
    """A site of a run; `records` is None where their number is private."""

    site: str
    records: int | None
    accepted: bool

    @property
    def size(self) -> str:
        """As one says it."""
        return "records" if self.records is None else f"{self.records:,} records"

    @property
    def state(self) -> str:
        """As one says it."""
        return "takes part" if self.accepted else "has not accepted (yet)"


@dataclass(frozen=True, slots=True)
class Run:
    """A run without an outcome; a run that has not begun has no members. `answered` counts the sites of each line."""

    name: str
    members: tuple[Member, ...]
    answered: tuple[tuple[str, int], ...]
    abandoned: int

    def describe(self) -> list[str]:
        """In a few lines."""
        found = [f"run {self.name} is going on, or was interrupted: {GOES_ON}"]
        found += [f"  {member.site}: {member.size}, {member.state}" for member in self.members]
        heard = ", ".join(f"{line} ({count})" for line, count in self.answered)
        found.append(f"  answered so far, by so many sites: {heard or 'nothing'}")
        if self.abandoned:
            found.append(f"  {self.abandoned} run(s) given up, of which sites are told when they are there")
        return found


@dataclass(frozen=True, slots=True)
class Status:
    """All that a coordinator's folder tells; `outcome` is the last result, as it is written in the file `result`."""

    run: Run | None
    result: Path
    outcome: dict[str, Any] | None
    summary: str

    def describe(self) -> list[str]:
        """In a few lines."""
        found = ["no run is going on"] if self.run is None else self.run.describe()
        if self.outcome is not None:
            found += ["", f"last result ({self.result}):", *self.summary.split("\n")]
        return found


def read_status(folder: Path) -> Status:
    """Read a coordinator's folder; `InputError` for one that is none, or whose files cannot be read."""
    if not folder.is_dir():
        raise InputError(f"folder: there is no {folder}; name the folder of a coordinator, as 'server --folder' did.")
    journal, result = folder / "run.json", folder / "result" / "outcome.json"
    run = _run_of(read_journal(journal)) if journal.exists() else None
    outcome = read_object(result) if result.exists() else None
    try:
        return Status(run, result, outcome, "" if outcome is None else summarise_outcome(outcome))
    except (KeyError, TypeError, AttributeError):
        raise InputError(unreadable(result)) from None


def describe_status(folder: Path) -> str:
    """A coordinator's folder in a few lines, for the terminal."""
    return "\n".join(map(visible, read_status(folder).describe()))


def make_status_page(folder: Path) -> str:
    """The same as an HTML page in the manner of a report: it loads nothing and runs no script."""
    page = templates().get_template("status.html.jinja")
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return svg.printable(page.render(status=read_status(folder), goes_on=GOES_ON, now=now, ramp=svg.RAMP))


def _run_of(run: dict[str, Any]) -> Run:
    members = tuple(Member(site, size, site in run["accepted"]) for site, size in run["members"].items())
    answered = tuple((turn.partition(":")[0], len(sites)) for turn, sites in run["heard"].items())
    return Run(run["run"][:8], members, answered, len(run.get("abandoned", ())))
