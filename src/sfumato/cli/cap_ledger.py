"""The seam to ledger files: a cap shared by many runs."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.cli.options import Wishes

MODULE = "sfumato.privacy.ledger_file"


def open_cap_ledger(path: Path, wishes: "Wishes") -> Any:
    """The ledger in a file, opened for a run with these wishes."""
    if find_spec(MODULE) is None:
        raise InputError("cap-ledger: ledger files are not available in this version of sfumato; leave it out.")
    return import_module(MODULE).open_ledger_file(path, relation=wishes.relation)
