"""A curator without noise, so that what is left is the textbook."""

import numpy as np
import pytest

from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise, SeededNoise
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.settings.central import Central
from sfumato.sources import ArraySource


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
    from sfumato.forecast import assessment, belief, family, prospect
    from sfumato.report import build

    for module, name, few in (
        (assessment, "BATCH", 3),
        (assessment, "BATCHES", 1),
        (assessment, "POPULATIONS", 1),
        (assessment, "EACH", 2),
        (belief, "PILOTS", 1),
        (belief, "PROBES", 1),
        (family, "PILOTS", 1),
        (prospect, "DRAWS", 2),
        (build, "DRAWS", 1),
        (build, "USUAL_DRAWS", 1),
    ):
        monkeypatch.setattr(module, name, few)


@pytest.fixture(autouse=True)
def _sooner(request):
    """Few stand-ins will do wherever what is said of errors is not what is tested; such tests are marked `judged`."""
    if not request.node.get_closest_marker("judged"):
        request.getfixturevalue("few_stand_ins")
