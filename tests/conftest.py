"""A curator without noise, so that what is left is the textbook."""

import os
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.few_stand_ins.sitecustomize import FEW

from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise, SeededNoise
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.settings.central import Central
from sfumato.sources import ArraySource

FOLDER = Path(__file__).parent / "few_stand_ins"


class Silent(Noise):
    """Words in the middle of their range, which every sampler turns into zero noise."""

    def words(self, count):
        return np.full(count, 2**63 - 1, dtype=np.uint64)


def curator_of(x, y, lines, *, rho=1e12, response=None, noise=None, relation="replace"):
    budget = Budget.zcdp(rho)
    ledger = Ledger(budget, relation, rehearsal=True)
    source = ArraySource(np.ascontiguousarray(x, dtype=float), y, response or Response())
    return Curator(Central(source), Plan(tuple(lines)).calibrate(budget), ledger, noise or Silent())


@pytest.fixture
def silent():
    """(x, y, lines) -> Curator that adds no noise and knows of next to none."""
    return curator_of


@pytest.fixture
def noisy():
    """(x, y, lines, seed, rho) -> Curator with seeded noise."""

    def make(x, y, lines, seed=0, rho=0.02, **more):
        return curator_of(x, y, lines, rho=rho, noise=SeededNoise(seed), **more)

    return make


@pytest.fixture
def few_stand_ins(monkeypatch):
    """Fits are judged by a few stand-ins only: as any number of them would be, but sooner and roughly."""
    for module, numbers in FEW.items():
        for name, few in numbers.items():
            monkeypatch.setattr(import_module(module), name, few)


@pytest.fixture(scope="session", autouse=True)
def _few_in_processes():
    """The same in processes that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FOLDER), prepend=os.pathsep)
        yield


@pytest.fixture(autouse=True)
def _sooner(request, monkeypatch):
    """Few stand-ins will do wherever what is said of errors is not what is tested; such tests are marked `judged`."""
    if not request.node.get_closest_marker("judged"):
        request.getfixturevalue("few_stand_ins")
    else:
        paths = os.environ["PYTHONPATH"].split(os.pathsep)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path != str(FOLDER)))
