"""Fewer stand-ins in tests, and in the processes that tests start: those have this folder on their path.

Fits are judged, and methods chosen, by so many stand-ins: as by any number of them, but sooner and roughly. What other
budgets and other numbers of records would change is told for fewer of them.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

FEW = {
    "sfumato.forecast.assessment": {"BATCH": 3, "BATCHES": 1, "POPULATIONS": 1, "EACH": 2, "TAILS": 1},
    "sfumato.forecast.belief": {"PILOTS": 1, "PROBES": 1},
    "sfumato.forecast.family": {"PILOTS": 1},
    "sfumato.forecast.prospect": {"DRAWS": 2},
    "sfumato.methods.explanation": {"MOST_DRAWS": 1, "TOLD": 1, "SOUGHT": 1, "COMPARED": 1},
    "sfumato.report.build": {"DRAWS": 1, "USUAL_DRAWS": 1, "BUDGETS": (0.25, 1.0), "SIZES": (1.0, 4.0)},
}


class Finder(MetaPathFinder):
    """Finds these modules where they are, and changes them as they are imported."""

    def find_spec(self, name, path, target=None):
        spec = PathFinder.find_spec(name, path) if name in FEW else None
        if spec is not None:
            run = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (run(module), vars(module).update(FEW[name]))
        return spec


if __name__ == "sitecustomize":  # a process that has just begun
    sys.meta_path.insert(0, Finder())
