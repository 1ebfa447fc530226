"""A site's ledger file, one run of which is continued by every process that answers a part of it."""

from os import PathLike

from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.plan import Plan


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

    def reserve(self, plan: Plan) -> None:
        """Set the whole plan aside; nothing to do for a run that goes on."""
        if not self._run:
            super().reserve(plan)
