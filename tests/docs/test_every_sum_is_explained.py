"""The page of proofs names every sum that is put to records."""

import importlib
import pkgutil
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
    named = {kind.__name__ for kind in sums(BoundedSum) if kind.__module__.startswith("sfumato.statistics.")}
    text = PAGE.read_text()
    missing = {
        name for name in named - {"Histogram"} if f"`{name}`" not in text
    }  # Histogram is what four of them share
    assert len(named) > 12 and not missing
