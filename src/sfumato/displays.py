"""Displays: who shows a fit, a plan or a ledger in a notebook, draws its pictures and makes its page.

What is shown is made by `sfumato.report`, which reads all of these, so they cannot import it: `sfumato` names it here.
"""

from collections.abc import Callable
from typing import Any

_displays: list[Callable[[], Any]] = []


def set_displays(load: Callable[[], Any]) -> None:
    """Say where displays are made: a function that imports the module, when something is first shown."""
    _displays[:] = [load]


def displays() -> Any:
    """The module that makes displays: `sfumato.report.build`."""
    return _displays[0]()


class Displayed:
    """Has a face in notebooks, besides its ``repr``."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """HTML of released values, parameters and words only."""
        return str(displays().show(self))
