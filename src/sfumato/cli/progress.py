"""The progress bar: visible before the heavy libraries are loaded, one step per planned release."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sfumato.cli.terminal import stderr
from sfumato.progress import listening


class Bar:
    """Follows a run; a `Listener`."""

    def __init__(self, progress: Progress, first: str) -> None:
        self._progress = progress
        self._task = progress.add_task(first, total=None)
        self._begun = 0

    def say(self, what: str) -> None:
        """What is being done now."""
        self._progress.update(self._task, description=what, refresh=True)

    def planned(self, purposes: Sequence[str]) -> None:
        """The releases to come."""
        self._progress.update(self._task, total=len(purposes))

    def started(self, purpose: str) -> None:
        """One more release is being made: those before it are done."""
        self._progress.update(self._task, description=purpose, completed=self._begun, refresh=True)
        self._begun += 1

    def advanced(self, fraction: float) -> None:
        """The bar moves on as records are read; not while they are checked, before the first release."""
        self._progress.advance(self._task, fraction if self._begun else 0.0)


@contextmanager
def working(first: str) -> Iterator[Bar]:
    """Show a bar on the terminal while the block runs; it leaves no trace."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("releases"),
        TimeElapsedColumn(),
    )
    console = stderr()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = Bar(progress, first)
        with listening(bar):
            yield bar
