"""The page of proofs names every sum that is put to records."""

import importlib
import pkgutil
from inspect import isabstract
from pathlib import Path

from sfumato import statistics
from sfumato.sums import BoundedSum

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "privacy.md"


def sums(kind):
    for child in kind.__subclasses__():
        yield child
        yield from sums(child)


def test_every_sum_of_the_core_has_its_sensitivity_on_the_page():
    for module in pkgutil.iter_modules(statistics.__path__, "sfumato.statistics."):
        importlib.import_module(module.name)
    named = {
        kind.__name__
        for kind in sums(BoundedSum)
        if kind.__module__.startswith("sfumato.statistics.")
        and not isabstract(kind)  # what some of them share is not asked
    }
    text = PAGE.read_text()
    missing = {name for name in named if f"`{name}`" not in text}
    assert len(named) > 12 and not missing
