"""What is foreseen is what is tested here: a loss is the mean of as many stand-ins as a user's."""

import pytest

from sfumato.methods import explanation

USUAL = {name: getattr(explanation, name) for name in ("TOLD", "SOUGHT", "COMPARED")}


@pytest.fixture(autouse=True)
def _as_usual(_sooner, monkeypatch):
    for name, draws in USUAL.items():
        monkeypatch.setattr(explanation, name, draws)
