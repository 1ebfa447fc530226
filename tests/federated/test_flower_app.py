"""The app for networks that run Flower already: the same numbers as a simulation, by public messages alone.

In one process here. With a real SuperLink and SuperNodes, and a site of our own among them, in `make test-flower-app`.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.deployment import FLOWER, LONG
from tests.federated.stock import Stock

from sfumato import Bounds, Budget, InputError, PrivateSIR
from sfumato.federated import simulate
from sfumato.federated.run_settings import estimator_of, folder_of, limits_of
from sfumato.privacy.ledger import FileLedger
from sfumato.simulate import he

PUBLIC = {"flwr.app", "flwr.clientapp", "flwr.serverapp"}
FIT = {"epsilon": 1, "delta": 1e-5, "n-directions": 1, "method": "one-shot", "lower": -6, "upper": 6, "classes": "0|1"}
HERE = PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot", classes=[0, 1], random_state=7)


def sites(folder, names=("north", "south", "west")):
    """Tables and ledgers of some sites; what is in them, and the settings of their nodes."""
    sample = he("I", n=1_000 * len(names), p=5, random_state=0)
    parts, settings = {}, {}
    for i, name in enumerate(names):
        parts[name] = (sample.x[i :: len(names)], sample.y[i :: len(names)])
        x, y = parts[name]
        pq.write_table(pa.table({f"x{j}": x[:, j] for j in range(5)} | {"y": y}), folder / f"{name}.parquet")
        FileLedger(folder / f"{name}.jsonl", Budget.approximate(9, 1e-5), rehearsal=True)
        files = {"data": f"{name}.parquet", "ledger": f"{name}.jsonl", "folder": f"{name}-answers"}
        own = {"name": name, "response": "y", "classes": "0|1", "seed": 7, "most": 1.5}
        settings[name] = own | {key: str(folder / file) for key, file in files.items()}
    return parts, settings


@pytest.mark.skipif(not (FLOWER / "python").exists(), reason="there is no .venv-flower; `make test` creates it")
def test_the_app_goes_on_with_a_run_fits_what_a_simulation_fits_and_uses_public_names_alone(tmp_path):
    parts, settings = sites(tmp_path)
    nodes = {11 + i: each for i, each in enumerate(settings.values())}
    (tmp_path / "nodes.json").write_text(json.dumps(nodes))
    (tmp_path / "config.json").write_text(json.dumps(FIT | {"folder": str(tmp_path / "federation"), "timeout": 60}))
    command = [FLOWER / "python", Path(__file__).with_name("public_app.py"), tmp_path]
    environment = {**os.environ, "FLWR_HOME": str(tmp_path / "home"), "FLWR_TELEMETRY_ENABLED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("waiting for 3 site(s)") == 2 and done.stdout.count("1 direction(s) from 3 site(s)") == 1
    assert set(json.loads(done.stdout.splitlines()[-1])["asked"]) == PUBLIC
    here = simulate(HERE, parts)
    agrees(tmp_path, here)


def agrees(folder, here):
    """The outcome of a run is the simulation's, and each site's ledger says what it says."""
    found = json.loads((folder / "federation" / "result" / "outcome.json").read_text())
    np.testing.assert_allclose(found["directions"], here.directions_, rtol=0, atol=1e-12)
    assert found["left_out"] == {} and not (folder / "federation" / "run.json").exists()
    for name, told in found["spending"].items():
        ledger = FileLedger(folder / f"{name}.jsonl")
        assert len(ledger) == len(here.ledgers_[name]) == told["releases"]
        assert ledger.spent() == pytest.approx(1.0, rel=1e-6)
        ledger.verify(told["head"])
    assert set(found["spending"]) == set(here.ledgers_)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"estimator": "kmeans"}, "estimator must be one of sir"),
        ({"n_rounds": 3}, "n-rounds: sir has no such parameter"),
        ({"random-state": 3}, "random-state: sir has no such parameter"),
        ({"ledger": "x.jsonl"}, "ledger: sir has no such parameter"),
        ({"estimator": "pca", "classes": "a|b"}, "classes: pca takes none"),
        ({"second-lower": 0, "second-upper": 1}, "second-lower: sir takes none"),
        ({"lower": "a", "upper": 1}, "lower and upper must be numbers"),
        ({"lower": 0}, "both or neither"),
        ({"sites": 0}, "sites must be the number"),
        ({"sites": 2, "minimum": 3}, "minimum must be a whole number up to the 2 sites"),
        ({"sites": 2, "wait": "long"}, "wait and timeout must be seconds"),
        ({"sites": 2, "anew": "yes"}, "must be true or false"),
        ({"sites": 2, "folder": "federation"}, "by its whole path"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_a_sentence(told, sentence):
    with pytest.raises(InputError, match=sentence):
        _ = estimator_of(told), limits_of(told), folder_of(told)


def test_settings_that_are_not_given_have_their_usual_values():
    limits = limits_of({"sites": 3})
    assert (limits.minimum, limits.least, limits.anew) == (3, None, False)
    made = estimator_of({"estimator": "cca", "lower": "0|1", "upper": 2, "second-lower": 0, "second-upper": 1})
    assert list(made.bounds.lower) == [0.0, 1.0] and made.y_bounds == Bounds(0.0, 1.0) and made.epsilon == 1.0


@pytest.mark.skipif("SFUMATO_STOCK" not in os.environ, reason="SuperNodes start a process for every message: see above")
def test_a_stock_network_and_a_site_of_our_own_equal_a_simulation(tmp_path):
    sample = he("I", n=2_000, p=5, random_state=0)
    some = {"h0": np.arange(1_200), "h1": np.arange(1_200, 2_000)}  # unequal, so that weights matter
    made = Stock(tmp_path, {name: (sample.x[rows], sample.y[rows]) for name, rows in some.items()})
    try:
        made.supernode("h0")
        made.site("h1") if made.speaks_ours else made.supernode("h1")
        made.fit(FIT | {"sites": 2})
    finally:
        made.stop()
    agrees(tmp_path, simulate(HERE, made.parts))
