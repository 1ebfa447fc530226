"""Real deployments: both methods, votes, units of their own; killed, interrupted, replaying and poisoned sites."""

import json

import numpy as np
import pytest
from tests.federated.deployment import BOUNDED, FLOWER, SITES, Deployment, Impostor

from sfumato import Bounds, PrivateSIR, PrivateSparseSIR
from sfumato.federated import simulate
from sfumato.privacy.ledger import FileLedger
from sfumato.simulate import he

pytestmark = pytest.mark.skipif(
    not (FLOWER / "sfumato").exists(), reason="there is no .venv-flower with Flower; `make test` creates it"
)
SOON = 12.0
"""Seconds that a dead site is waited for, twice. A round of live ones takes half a second on an idle machine."""


def parts_of(p, sparse=None, move=0.0):
    """Three sites; the last one's features are moved by so much."""
    sample = he("I", n=3_000, p=p, sparse=sparse, random_state=0)
    return {name: (sample.x[i::3] + (move if i == 2 else 0.0), sample.y[i::3]) for i, name in enumerate(SITES)}


@pytest.fixture
def deployed(tmp_path):
    made = []

    def deploy(parts):
        made.append(Deployment(tmp_path, parts))
        return made[0]

    yield deploy
    made[0].stop()


def ledger_of(made, name):
    return FileLedger(made.folder / f"{name}.jsonl")


def agrees_with(found, here):
    np.testing.assert_allclose(found["directions"], here.directions_, rtol=0, atol=1e-12)
    assert found["left_out"] == here.left_out_
    assert found["disagreeing"] == {name: comparison.about for name, comparison in here.disagreeing_.items()}


def test_a_deployment_equals_its_simulation_and_survives_kills_replays_and_poison(deployed):
    made = deployed(parts_of(5))

    # a coordinator that is killed in mid-round and started again: same result, and nobody pays twice
    made.server(*BOUNDED, "--method", "one-shot")
    made.until_asked("h0", "ranks")
    made.kill("server")
    made.nothing_left_of(*SITES)
    made.server(*BOUNDED, "--method", "one-shot")
    sound = made.outcome()
    here = simulate(PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot", classes=[0, 1], random_state=7), made.parts)
    agrees_with(sound, here)
    for name in SITES:
        assert ledger_of(made, name).spent() == pytest.approx(1.0, rel=1e-6)
        assert len(ledger_of(made, name)) == len(here.ledger_)
        assert f"{name}: epsilon 1 spent in all runs, cap (epsilon = 9, delta = 1e-05)" in made.said("server")
        assert sound["spending"][name]["releases"] == len(here.ledger_)
        assert sound["uploaded_bytes"]["slices"][name] <= 1.05 * 8 * (5 * 6 // 2 + 5 * (2 + 1) + 2)
    assert sound["sites"] == dict.fromkeys(SITES, 1_000) and (made.folder / "federation/result/report.html").exists()

    made.lose_one_and_replay_another(SOON, "descent")

    # the dead site comes back; now every upload is poisoned: one sentence names all of them
    made.fault(h0={"ranks": "nan"}, h1={"ranks": "huge"}, h2={"ranks": "square"})
    made.site("h1")
    made.server(*BOUNDED, "--method", "one-shot", minimum=1)
    assert made.ended("server") == 2
    reasons = ("not finite", "larger than its records can add up to", "wrong length", "Start the same command again")
    for reason in reasons:
        assert reason in made.said("server")

    for name in SITES:  # no ledger is ever short: all that was answered is recorded
        ledger = ledger_of(made, name)
        assert len(ledger) >= len(made.answers(name, "*/*.npy"))
        assert ledger.spent() > 1.0
        ledger.verify()


def test_interrupted_sites_and_coordinators_go_on_where_they_were_at_no_further_cost(deployed):
    made = deployed(parts_of(40, sparse=4, move=4.0))
    impostor = Impostor(made.folder)
    made.site("lost", data="h0.parquet", port=impostor.port)

    # Ctrl-C at the coordinator in the middle of the votes
    vote = ("--sparse", "--lower", -9, "--upper", 9, "--leave-out")
    made.server(*vote, minimum=2)
    made.until_asked("h0", "picks-2")
    made.interrupt("server")
    assert made.ended("server") == 130
    assert made.said("server").splitlines()[-1] == "error: interrupted; no half-written file was left."
    kept = {path.name.partition("-")[0] for path in (made.folder / "federation").iterdir()}
    assert kept == {"home", "nodes", "run.json", "server.log"}
    made.nothing_left_of(*SITES, "lost")
    made.server(*vote, minimum=2)
    found = made.outcome()
    sparse = PrivateSparseSIR(1.0, 1e-5, 1, Bounds(-9, 9), classes=[0, 1], random_state=7)
    here = simulate(sparse, made.parts, leave_out=True)
    agrees_with(found, here)
    assert found["support"] == here.support_.tolist() and "h2" in found["disagreeing"]
    for name in SITES:
        assert len(ledger_of(made, name)) == len(here.ledgers_[name])
    before = {name: len(ledger_of(made, name)) for name in SITES}

    # Ctrl-C at a site while it makes an answer, which is kept and sent all the same
    made.fault(h1={"shape": "hold"})
    made.server("--own-units", "--method", "one-shot")
    made.until((made.folder / "h1.held").exists, "the question about the shape")
    closed = [f"/v1/control/{name}" for name in ("register-node", "unregister-node", "start-run", "stop-run")]
    closed += ["/v1/fleet/register-node", "/v1/fleet/unregister-node", "/v1/runtime/pull-messages", "/docs"]
    assert made.knock(*closed) == [403] * len(closed)  # nobody is admitted, forgotten, started or stopped
    assert made.knock("/v1/fleet/pull-messages") == [401]  # sites are heard, and must sign
    made.site("stranger", data="h0.parquet")  # who is not admitted is not asked
    made.until(lambda: "is not admitted (yet) by" in made.said("stranger"), "a stranger's visit")
    made.interrupt("stranger")
    assert made.ended("stranger") == 130
    made.site("stranger", "other.crt", "h0.parquet")  # who trusts another authority does not listen
    assert made.ended("stranger") == 2 and "was not signed by other.crt" in made.said("stranger")
    made.interrupt("h1")
    (made.folder / "go").touch()
    assert made.ended("h1") == 130
    assert made.said("h1").splitlines()[-1] == "error: interrupted; no half-written file was left."
    run = json.loads((made.folder / "federation/run.json").read_text())["run"]
    assert {path.suffix for path in made.answers("h1", f"{run}/*")} == {".json", ".claim", ".npy"}
    assert len(made.answers("h1", f"{run}/*.claim")) == len(made.answers("h1", f"{run}/*.npy"))
    made.site("h1")
    found = made.outcome()
    one_shot = PrivateSIR(1.0, 1e-5, 1, method="one-shot", classes=[0, 1], random_state=7)
    here = simulate(one_shot, made.parts, own_units=True)
    agrees_with(found, here)
    for name in SITES:
        ours = [here.local_[name].lower, here.local_[name].upper]
        np.testing.assert_array_equal([found["own_units"][name][side] for side in ("lower", "upper")], ours)
        assert len(ledger_of(made, name)) == before[name] + len(here.ledger_)
        ledger_of(made, name).verify()

    # a site that meets somebody else is still there, says so, and has shown its signature to nobody on plain http
    made.until(lambda: len(impostor.asked) > 2, "a third visit to the impostor")
    assert "does not understand what it was told" in made.said("lost") and not impostor.elsewhere
    impostor.stop()
