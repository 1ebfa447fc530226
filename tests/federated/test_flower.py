"""A real deployment on loopback, started from the command line: TLS, node authentication, three sites, faults.

Flower pins versions that the development environment does not have, so its commands live in an environment of their
own, ``.venv-flower``, which ``make test`` creates (`SFUMATO_FLOWER` names another). About two minutes on 2 idle cores,
most of it for the processes Flower starts for every message; `SFUMATO_PATIENCE` stretches the seconds of a round.
"""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from sfumato import Bounds, PrivateSIR
from sfumato.federated import simulate
from sfumato.privacy.ledger_file import FileLedger
from sfumato.simulate import he

FLOWER = Path(os.environ.get("SFUMATO_FLOWER", Path(__file__).parents[2] / ".venv-flower")) / "bin"
ROUND = float(os.environ.get("SFUMATO_PATIENCE", "20"))
NAMES = ("h0", "h1", "h2")
pytestmark = pytest.mark.skipif(
    not (FLOWER / "flower-superlink").exists(), reason="there is no .venv-flower; `make deployment` creates it"
)

CERTIFY = """
import datetime, ipaddress
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

def private(key, path, style):
    open(path, "wb").write(key.private_bytes(form.Encoding.PEM, style, form.NoEncryption()))

def certificate(subject, key, issuer, signer, extension):
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
    made = made.not_valid_after(now + datetime.timedelta(days=1)).add_extension(extension, critical=False)
    return made.sign(signer, hashes.SHA256()).public_bytes(form.Encoding.PEM)

authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
here = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
root = x509.BasicConstraints(ca=True, path_length=None)
open("ca.crt", "wb").write(certificate("ca", authority, "ca", authority, root))
open("server.crt", "wb").write(certificate("server", server, "ca", authority, here))
private(server, "server.key", form.PrivateFormat.PKCS8)
for site in ("h0", "h1", "h2"):
    key = ec.generate_private_key(ec.SECP384R1())
    private(key, site, form.PrivateFormat.OpenSSH)
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    open(site + ".pub", "wb").write(public)
"""
SITECUSTOMIZE = """
import json, os, pathlib, sys

def poison(faults):
    from sfumato.federated.flower import client
    honest, folder = client.reply_to, pathlib.Path(os.environ["FAULTS"]).parent

    def reply_to(message, head, values):
        told = json.loads(head)
        fault = faults.get(told.get("name"), {}).get(told.get("line"))
        kept = folder / (str(told.get("name")) + ".kept")
        if fault == "nan":
            values = b"\\xff" * len(values)
        elif fault == "huge":
            values = b"\\x00" * (len(values) - 8) + b"\\xff\\xff\\xff\\xff\\xff\\xff\\xef\\x7f"
        elif fault == "square":  # a full matrix that need not be symmetric, where half of one is asked for
            values = b"\\x00" * 8 * (5 + 5 * 5)
        elif fault == "replay":
            head, values = json.loads(kept.read_text())[0], bytes.fromhex(json.loads(kept.read_text())[1])
        elif told.get("line"):
            kept.write_text(json.dumps([head, values.hex()]))
        return honest(message, head, values)

    client.reply_to = reply_to

place = pathlib.Path(os.environ.get("FAULTS", "/nowhere"))
if "clientapp" in sys.argv[0] and place.exists():
    poison(json.loads(place.read_text()))
"""


class Deployment:
    """Everything that was started, so that everything can be stopped."""

    def __init__(self, folder):
        self.folder, self.started = folder, {}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        more = {"PYTHONPATH": str(folder), "FAULTS": str(folder / "faults.json"), "OMP_NUM_THREADS": "1"}
        self.environment = {**os.environ, **more, "OPENBLAS_NUM_THREADS": "1"}

    def start(self, name, *command):
        with (self.folder / f"{name}.out").open("ab") as out:
            self.started[name] = subprocess.Popen(
                [FLOWER / "sfumato", "federated", *map(str, command)],
                cwd=self.folder,
                env=self.environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def site(self, name):
        who = ("--name", name, "--key", name, "--ca", "ca.crt", "--coordinator", f"127.0.0.1:{self.port}")
        own = ("--cap", 5, "--cap-delta", 1e-5, "--classes", "0,1", "--rehearse", 7)
        self.start(name, "site", f"{name}.parquet", "-y", "y", *who, *own)

    def server(self, method, minimum):
        keys = [word for name in NAMES for word in ("--site", f"{name}.pub")]
        files = ("--certificate", "server.crt", "--key", "server.key", "--ca", "ca.crt", "--port", self.port)
        fit = ("--epsilon", 1, "--delta", 1e-5, "--directions", 1, "--lower", -6, "--upper", 6, "--classes", "0,1")
        limits = ("--method", method, "--minimum", minimum, "--timeout", ROUND, "--wait", 6 * ROUND)
        self.start("server", "server", *keys, *files, *fit, *limits)

    def outcome(self, seconds):
        """Exit code, what was said, and the outcome."""
        code = self.started["server"].wait(timeout=seconds)
        del self.started["server"]
        said = (self.folder / "server.out").read_text()
        return code, said, json.loads((self.folder / "federation" / "result" / "outcome.json").read_text())

    def run(self):
        """Name of the run that is going on."""
        kept = self.folder / "federation" / "run.json"
        return json.loads(kept.read_text())["run"] if kept.exists() else "none"

    def answers(self, name, pattern):
        return sorted((self.folder / f"{name}-answers").glob(pattern))

    def wait_for(self, name, line):
        """Until the site has begun to answer a line of the run that is going on."""
        end = time.monotonic() + 16 * ROUND
        while not self.answers(name, f"{self.run()}/{line}.claim"):
            assert self.started["server"].poll() is None, (self.folder / "server.out").read_text()
            assert time.monotonic() < end, f"{name} was not asked {line}; see the logs in {self.folder}"
            time.sleep(0.1)

    def kill(self, name):
        """As if the machine were switched off: no process of the command's session survives."""
        process = self.started.pop(name)
        for each in _session(process.pid):
            os.kill(each, signal.SIGKILL)
        process.wait(timeout=20)

    def stop(self):
        """End everything, and what Flower put in sessions of its own: nothing may be left after a while."""
        for name in list(self.started):
            self.kill(name)
        end = time.monotonic() + 30.0
        while left := self.left():
            if time.monotonic() > end:
                for each in left:
                    os.kill(each, signal.SIGKILL)
                raise AssertionError(f"processes {left} were left behind")
            time.sleep(0.5)

    def left(self):
        """Processes whose environment names this deployment."""
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                mine = str(self.folder / "faults.json").encode() in environment.read_bytes()
            except OSError:
                continue
            if mine:
                found.append(int(environment.parent.name))
        return found


def _session(leader):
    """The processes of a session, from /proc; the leader alone where there is none."""
    members = [leader]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and int(stat.parent.name) != leader:
            members.append(int(stat.parent.name))
    return members


@pytest.fixture
def deployment(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    subprocess.run([FLOWER / "python", "-c", CERTIFY], cwd=tmp_path, check=True)
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    sample = he("I", n=3_000, p=5, random_state=0)
    parts = {name: (sample.x[i::3], sample.y[i::3]) for i, name in enumerate(NAMES)}
    for name, (x, y) in parts.items():
        pq.write_table(pa.table({f"x{j}": x[:, j] for j in range(5)} | {"y": y}), tmp_path / f"{name}.parquet")
    made = Deployment(tmp_path)
    try:
        for name in NAMES:
            made.site(name)
        yield made, parts
    finally:
        made.stop()


def test_a_real_federation_equals_its_simulation_and_survives_its_faults(deployment):
    made, parts = deployment

    # a coordinator that is killed in mid-round and started again: same result, and nobody pays twice
    made.server("one-shot", 3)
    made.wait_for("h0", "ranks")
    made.kill("server")
    made.server("one-shot", 3)
    code, said, sound = made.outcome(24 * ROUND)
    assert code == 0, said
    here = simulate(PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot", classes=[0, 1], random_state=7), parts)
    np.testing.assert_allclose(sound["directions"], here.directions_, rtol=0, atol=1e-12)
    assert sound["left_out"] == {} and set(sound["spending"]) == set(NAMES)
    for name in NAMES:
        assert FileLedger(made.folder / f"{name}.jsonl").spent() == pytest.approx(1.0, rel=1e-6)
        assert len(FileLedger(made.folder / f"{name}.jsonl")) == len(here.ledger_)

    # a site dies in mid-round, another replays what it sent before: the third finishes
    (made.folder / "faults.json").write_text(json.dumps({"h2": {"shape": "replay"}}))
    made.server("descent", 1)
    made.wait_for("h1", "shape")
    made.kill("h1")
    code, said, faulty = made.outcome(24 * ROUND)
    assert code == 0, said
    assert "answers another line" in faulty["left_out"]["h2"]
    assert "did not answer" in faulty["left_out"].get("h1", "did not answer") and "h1" not in faulty["spending"]
    assert np.isfinite(faulty["directions"]).all()

    # the dead site comes back; now every upload is poisoned: one sentence names all of them
    faults = {"h0": {"ranks": "nan"}, "h1": {"ranks": "huge"}, "h2": {"ranks": "square"}}
    (made.folder / "faults.json").write_text(json.dumps(faults))
    made.site("h1")
    made.server("one-shot", 1)
    code, said, lost = made.outcome(24 * ROUND)
    assert code == 2 and "Start the same command again" in said
    for reason in ("not finite", "larger than its records can add up to", "wrong length"):
        assert reason in lost["failed"], lost

    for name in NAMES:  # no ledger is ever short: all that was answered is recorded
        ledger = FileLedger(made.folder / f"{name}.jsonl")
        assert len(ledger) >= len(made.answers(name, "*/*.npy"))
        assert ledger.spent() > 1.0
        ledger.verify()
