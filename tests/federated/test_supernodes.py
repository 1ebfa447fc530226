"""A real deployment on Flower's own SuperNodes and a site of ours: equal to its simulation, and no ledger is short."""

import time

import numpy as np
import pytest
from tests.federated.deployment import BOUNDED, FLOWER, SITES
from tests.federated.supernodes import SuperNodes

from sfumato import Bounds, PrivateSIR
from sfumato.federated import simulate
from sfumato.privacy.ledger import FileLedger
from sfumato.simulate import he

pytestmark = pytest.mark.skipif(
    not (FLOWER / "sfumato").exists(), reason="there is no .venv-flower with Flower; `make test` creates it"
)
EXCHANGES = 7
"""Of a one-shot fit: facts, plan, four lines and the end."""


@pytest.fixture
def deployed(tmp_path):
    sample = he("I", n=3_000, p=5, random_state=0)
    some = dict(zip(SITES, np.split(np.arange(3_000), [1_500, 2_500]), strict=True))  # unequal, so that weights matter
    made = SuperNodes(tmp_path, {name: (sample.x[rows], sample.y[rows]) for name, rows in some.items()})
    yield made
    made.stop()


def test_supernodes_equal_a_simulation_and_survive_kills_and_replays(deployed):
    made = deployed

    # a coordinator that is killed in mid-round and started again: same result, and nobody pays twice
    made.server(*BOUNDED, "--method", "one-shot")
    made.enter()
    made.until_asked("h0", "ranks")
    made.kill("server")
    began = time.monotonic()
    made.server(*BOUNDED, "--method", "one-shot")
    sound = made.outcome()
    patience = 2.0 * (time.monotonic() - began) / EXCHANGES  # about 15 s on an idle machine; it is waited for twice
    here = simulate(PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot", classes=[0, 1], random_state=7), made.parts)
    np.testing.assert_allclose(sound["directions"], here.directions_, rtol=0, atol=1e-12)
    assert sound["left_out"] == {} and sound["sites"] == {name: len(y) for name, (_, y) in made.parts.items()}
    for name in SITES:
        ledger = FileLedger(made.folder / f"{name}.jsonl")
        assert len(ledger) == len(here.ledger_) == sound["spending"][name]["releases"]
        assert ledger.spent() == pytest.approx(1.0, rel=1e-6)

    made.lose_one_and_replay_another(patience, "one-shot")
    for name in SITES:  # no ledger is ever short: all that was answered is recorded
        ledger = FileLedger(made.folder / f"{name}.jsonl")
        assert len(ledger) >= len(made.answers(name, "*/*.npy"))
        assert ledger.spent() > 1.0
        ledger.verify()
