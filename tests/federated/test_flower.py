"""A real deployment on loopback: SuperLink and three SuperNodes, TLS, node authentication, faults.

Needs ``pip install sfumato[federated]``; about 90 s on two idle cores, most of it for the process Flower starts for
every message. ``SFUMATO_PATIENCE`` stretches the time allowed for a round on a busy machine.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sfumato import Bounds, Budget, PrivateSIR
from sfumato.federated import simulate
from sfumato.privacy.ledger_file import FileLedger
from sfumato.simulate import he

pytest.importorskip("flwr", reason="the federated extra is not installed")

ROUND = float(os.environ.get("SFUMATO_PATIENCE", "25"))
BIN = Path(sys.executable).parent
POISONED = """
import json
from flwr.clientapp import ClientApp
from sfumato.federated.flower.client import open_site, request_of, reply_to
from sfumato.federated.site import handle

app = ClientApp()

@app.query()
def answer(message, context):
    request = request_of(message)
    head, values = handle(open_site(context.node_config), request)
    if context.node_config["name"] == "h2" and json.loads(request).get("line") == "shape":
        values = b"\\xff" * len(values)
    return reply_to(message, head, values)
"""


def _port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Deployment:
    """Everything that was started, so that everything can be stopped."""

    def __init__(self, folder):
        self.folder, self.port, self.started = folder, _port(), {}
        quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "FLWR_HOME": str(folder / "home")}
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, **quiet, "PATH": path, "OMP_NUM_THREADS": "1"}
        (folder / "home").mkdir()
        config = f'[superlink]\ndefault = "test"\n\n[superlink.test]\naddress = "127.0.0.1:{self.port}"\n'
        (folder / "home" / "config.toml").write_text(f'{config}root-certificates = "{folder / "ca.crt"}"\n')

    def start(self, name, *command):
        with (self.folder / f"{name}.log").open("wb") as log:
            self.started[name] = subprocess.Popen(
                [str(BIN / command[0]), *map(str, command[1:])],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, *command):
        done = subprocess.run(
            [str(BIN / command[0]), *map(str, command[1:])],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=8 * ROUND,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def kill(self, name):
        process = self.started.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)

    def stop(self):
        for name in list(self.started):
            self.kill(name)

    def wait_for(self, path, seconds):
        end = time.monotonic() + seconds
        while not path.exists():
            assert time.monotonic() < end, f"{path.name} did not appear; see the logs in {self.folder}"
            time.sleep(0.2)

    def outcome(self, name, seconds):
        self.wait_for(self.folder / name / "outcome.json", seconds)
        time.sleep(0.5)
        return json.loads((self.folder / name / "outcome.json").read_text())


def _certify(folder):
    """A certificate for 127.0.0.1 signed by a throw-away authority, and a key for each node."""
    run = {"cwd": folder, "check": True, "capture_output": True}
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    subprocess.run([*new, "-x509", "-days", "1", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt"], **run)
    subprocess.run([*new, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"], **run)
    (folder / "san").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    sign = ["openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"]
    subprocess.run([*sign, "-days", "1", "-extfile", "san", "-out", "server.crt"], **run)
    for i in range(3):
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-f", f"key{i}"], **run)


@pytest.fixture
def deployment(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    _certify(tmp_path)
    sample = he("I", n=3_000, p=5, random_state=0)
    for i in range(3):
        columns = {f"x{j}": sample.x[i::3, j] for j in range(5)} | {"y": sample.y[i::3]}
        pq.write_table(pa.table(columns), tmp_path / f"h{i}.parquet")
        FileLedger(tmp_path / f"h{i}.jsonl", Budget.approximate(3.0, 1e-5), rehearsal=True)
    made = Deployment(tmp_path)
    try:
        files = ("--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key")
        only = ("--enable-supernode-auth", "--disable-runtime-dependency-installation", "--database", "links.db")
        made.start("superlink", "flower-superlink", "--host", "127.0.0.1", "--port", made.port, *only, *files)
        _listening(made.port, 3 * ROUND)
        for i in range(3):
            made.run("flwr", "supernode", "register", f"key{i}.pub", "test")
            made.start(f"h{i}", *_supernode(tmp_path, made.port, i))
        yield made, [(sample.x[i::3], sample.y[i::3]) for i in range(3)]
    finally:
        made.stop()


def _listening(port, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the SuperLink does not listen")


def _supernode(folder, port, i):
    told = {"name": f"h{i}", "data": folder / f"h{i}.parquet", "response": "y", "ledger": folder / f"h{i}.jsonl"}
    told |= {"folder": folder / f"answers{i}", "classes": "0|1"}
    config = " ".join(f'{key}="{value}"' for key, value in told.items()) + " seed=7"
    command = ("flower-supernode", "--root-certificates", "ca.crt", "--superlink", f"127.0.0.1:{port}")
    own = ("--host", "127.0.0.1", "--port", _port(), "--auth-supernode-private-key", f"key{i}")
    return (*command, *own, "--node-config", config)


def _app(made, name, method, run, **more):
    from sfumato.federated.flower.app import write_app

    fit = {"epsilon": 1.0, "delta": 1e-5, "directions": "1", "lower": "-6", "upper": "6", "classes": "0|1"}
    places = {"out": str(made.folder / name), "run": run, "method": method, "wait": 3 * ROUND, "timeout": ROUND}
    return write_app(made.folder / f"app-{name}", **fit, **places, **more)


def test_a_real_federation_equals_its_simulation_and_survives_its_faults(deployment):
    made, parts = deployment
    made.run("flwr", "run", _app(made, "sound", "one-shot", "aa" * 8, sites=3, minimum=3), "test")
    sound = made.outcome("sound", 12 * ROUND)
    estimator = PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot", classes=[0, 1], random_state=7)
    here = simulate(estimator, {f"h{i}": part for i, part in enumerate(parts)})
    np.testing.assert_array_equal(sound["directions"], here.directions_)
    assert sound["left_out"] == {} and set(sound["spending"]) == {"h0", "h1", "h2"}

    app = _app(made, "faulty", "descent", "bb" * 8, client=POISONED, sites=3, minimum=1)
    made.run("flwr", "run", app, "test")
    made.wait_for(made.folder / "answers1" / ("bb" * 8) / "residual-3.claim", 14 * ROUND)
    made.kill("h1")
    faulty = made.outcome("faulty", 14 * ROUND)
    assert "not finite" in faulty["left_out"]["h2"]
    assert np.isfinite(faulty["directions"]).all()
    for i in range(3):
        ledger = FileLedger(made.folder / f"h{i}.jsonl")
        answered = list((made.folder / f"answers{i}").glob("*/*.npy"))
        assert len(ledger) >= len(answered)  # no ledger is ever short
        assert ledger.spent() > 1.0
