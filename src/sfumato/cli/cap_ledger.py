"""The seam to ledger files: one cap, shared by many runs on the same records."""

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.terminal import note

if TYPE_CHECKING:
    from sfumato.privacy.ledger import FileLedger


def open_cap_ledger(path: Path, purpose: str) -> "FileLedger":
    """The ledger in a file that exists; what the run is for is written into it."""
    from sfumato.privacy.ledger import FileLedger

    return FileLedger(path, purpose=purpose)


def say_what_is_left(ledger: "FileLedger") -> None:
    """One line on the account: where it is, what is spent, what is left."""
    from sfumato.privacy.ledger.admin import summary

    note(f"{summary(ledger)}.")
