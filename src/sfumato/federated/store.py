"""What a site remembers: its ledger, the terms of every run, every answer it ever gave, on disk before it is sent.

A question that comes again, after a lost connection or from a coordinator that was started again, gets the stored
answer: no new noise, no new cost. A site that was killed between charge and answer has a claim without an answer, and
never draws that noise a second time.
"""

import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.federated.wire import RefusedError, canonical
from sfumato.privacy.ledger import Mark
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
            self._write(self._folder / "ledger.json", canonical(asdict(mark)).encode())

    def begin(self, run: str, terms: dict[str, Any], account: str) -> None:
        """Remember accepted terms and the run of the ledger they were reserved under."""
        (self._folder / run).mkdir(parents=True, exist_ok=True)
        self._write(self._folder / run / "terms.json", canonical({"terms": terms, "account": account}).encode())

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
            with open(self._path(run, line, "claim"), "x", encoding="ascii") as file:
                file.write(fingerprint)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            raise RefusedError(f"line {line!r} is being answered.") from None

    def keep(self, run: str, line: str, value: FloatArray) -> None:
        """Store the answer before it is sent."""
        target = self._path(run, line, "npy")
        part = target.with_suffix(".part")
        with open(part, "wb") as file:
            np.save(file, value, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)

    def _path(self, run: str, line: str, kind: str) -> Path:
        return self._folder / run / f"{re.sub('[^a-z0-9]', '-', line)}.{kind}"

    @staticmethod
    def _write(path: Path, text: bytes) -> None:
        part = path.with_suffix(f".{os.getpid()}.part")  # of two processes, each writes its own
        with open(part, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
