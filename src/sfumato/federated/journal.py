"""What a coordinator must remember of a run to go on with it: its name, who takes part, and who was heard when.

A question follows from the answers before it. A run that goes on must ask the very questions it has asked already, as a
site answers each line once; so it adds up the answers of the same sites as before, also where more are there by now.
"""

import json
import os
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sfumato.federated.wire import canonical
from sfumato.settings.federated import SitesLostError

T = TypeVar("T")


class Journal:
    """A run's memory, in the file `path` if there is one."""

    def __init__(self, run: str | None = None, path: Path | None = None) -> None:
        self.run = run or secrets.token_hex(16)
        self.members: dict[str, int | None] = {}
        self.accepted: dict[str, int | None] = {}
        self._heard: dict[str, list[str]] = {}
        self._latest: tuple[str, list[str]] | None = None
        self._path, self._settings = path, ""

    @classmethod
    def resume(cls, path: Path, settings: Mapping[str, Any]) -> "Journal":
        """The run that was interrupted here, if it had the same settings; a new one otherwise."""
        journal = cls(path=path)
        journal._settings = canonical(dict(settings))
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["settings"] == journal._settings:
                journal.run, journal._heard = kept["run"], kept["heard"]
                journal.members, journal.accepted = kept["members"], kept["accepted"]
                return journal
        journal._write()
        return journal

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
        data |= {"members": self.members, "accepted": self.accepted}
        part = self._path.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self._path)
