"""What tests of estimators share."""

import pytest

from sfumato.forecast import assessment, belief, family


@pytest.fixture
def few_stand_ins(monkeypatch):
    """Fits are judged by a few stand-ins only: as any number of them would be, but sooner and roughly."""
    for module, name, few in (
        (assessment, "BATCH", 3),
        (assessment, "BATCHES", 1),
        (assessment, "POPULATIONS", 1),
        (assessment, "EACH", 2),
        (belief, "PILOTS", 1),
        (belief, "PROBES", 1),
        (family, "PILOTS", 1),
    ):
        monkeypatch.setattr(module, name, few)
