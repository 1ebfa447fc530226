"""A real federation on loopback, started from the command line: TLS, node authentication, and faults on demand.

Flower pins versions that the development environment does not have, so its commands live in an environment of their
own, ``.venv-flower``, which ``make test`` creates; `SFUMATO_FLOWER` names another.
"""

import json
import os
import signal
import socket
import ssl
import subprocess
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FLOWER = Path(os.environ.get("SFUMATO_FLOWER", Path(__file__).parents[2] / ".venv-flower")) / "bin"
LONG = 240.0
"""Seconds that nothing takes on a machine that works at all."""
BOUNDED = ("--lower", -6, "--upper", 6)
SITES = ("h0", "h1", "h2")

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
open("other.crt", "wb").write(certificate("ca", server, "ca", server, root))
for site in ("h0", "h1", "h2", "stranger", "lost"):
    key = ec.generate_private_key(ec.SECP384R1())
    private(key, site, form.PrivateFormat.OpenSSH)
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    open(site + ".pub", "wb").write(public)
"""
SITECUSTOMIZE = (
    (Path(__file__).parents[1] / "few_stand_ins" / "sitecustomize.py").read_text()
    + """
import json, os, pathlib, sys, time

def poison(folder):
    from sfumato.federated import site as module
    honest = module.handle

    def handle(site, request):
        line = json.loads(request).get("line")
        faults = folder / "faults.json"
        fault = json.loads(faults.read_text()).get(site.name, {}).get(line) if faults.exists() else None
        kept = folder / (site.name + ".kept")
        while fault == "hold" and not (folder / "go").exists():
            (folder / (site.name + ".held")).touch()
            time.sleep(0.05)
        if fault == "replay":
            head, values = json.loads(kept.read_text())
            return head, bytes.fromhex(values)
        head, values = honest(site, request)
        if fault == "nan":
            values = b"\\xff" * len(values)
        elif fault == "huge":
            values = b"\\x00" * (len(values) - 8) + b"\\xff\\xff\\xff\\xff\\xff\\xff\\xef\\x7f"
        elif fault == "square":  # a full matrix that need not be symmetric, where half of one is asked for
            values = b"\\x00" * 8 * (5 + 5 * 5)
        elif line:
            kept.write_text(json.dumps([head, values.hex()]))
        return head, values

    module.handle = handle

if "FAULTS" in os.environ and ("site" in sys.argv or "clientapp" in sys.argv[0]):
    poison(pathlib.Path(os.environ["FAULTS"]))
"""
)


KNOCK = """
import ssl, sys
import httpx

with httpx.Client(verify=ssl.create_default_context(cafile="ca.crt")) as stranger:
    for path in sys.argv[2:]:
        where, said = f"https://127.0.0.1:{sys.argv[1]}{path}", {"content-type": "application/protobuf"}
        print(stranger.post(where, content=b"", headers=said).status_code)
"""


class Impostor:
    """Somebody at a coordinator's address: first points elsewhere, to plain http, then talks nonsense."""

    def __init__(self, folder):
        asked, elsewhere = [], []

        class Plain(BaseHTTPRequestHandler):
            def do_POST(self):
                elsewhere.append(dict(self.headers))
                self.send_error(404)

            def log_message(self, *_):
                pass

        class Secure(Plain):
            def do_POST(self):
                asked.append(self.path)
                self.rfile.read(int(self.headers["content-length"]))
                if len(asked) == 1:
                    self.send_response(307)
                    self.send_header("location", f"http://127.0.0.1:{plain.server_port}{self.path}")
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                self.send_response(200)
                self.send_header("content-length", "9")
                self.end_headers()
                self.wfile.write(b"\xff\xff\xffno way")

        plain, secure = (ThreadingHTTPServer(("127.0.0.1", 0), kind) for kind in (Plain, Secure))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        self.asked, self.elsewhere, self.port, self._servers = asked, elsewhere, secure.server_port, (plain, secure)
        for server in self._servers:
            Thread(target=server.serve_forever, daemon=True).start()

    def stop(self):
        for server in self._servers:
            server.shutdown()
            server.server_close()


class Deployment:
    """Everything that was started, so that everything can be stopped."""

    def __init__(self, folder, parts):
        self.folder, self.parts, self.started = folder, parts, {}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.environment = {**os.environ, **one, "PYTHONPATH": path, "FAULTS": str(folder)}
        subprocess.run([FLOWER / "python", "-c", CERTIFY], cwd=folder, check=True, timeout=LONG)
        (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
        for name, (x, y) in parts.items():
            columns = {f"x{j}": x[:, j] for j in range(x.shape[1])}
            pq.write_table(pa.table(columns | {"y": y}), folder / f"{name}.parquet")
        self.begin()

    def begin(self):
        for name in self.parts:
            self.site(name)

    def start(self, name, *command):
        """Run `sfumato federated` in a session of its own, as a terminal does; what it says is in NAME.out."""
        self.run(name, FLOWER / "sfumato", "federated", *command)

    def run(self, name, *command, **more):
        with (self.folder / f"{name}.out").open("wb") as out:
            self.started[name] = subprocess.Popen(
                list(map(str, command)),
                cwd=self.folder,
                env=self.environment | more,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ours may run in the background
            )

    def site(self, name, ca="ca.crt", data=None, port=None):
        who = ("--name", name, "--key", name, "--ca", ca, "--coordinator", f"127.0.0.1:{port or self.port}")
        own = ("--cap", 9, "--cap-delta", 1e-5, "--classes", "0,1", "--rehearse", 7)
        new = () if (self.folder / f"{name}.jsonl").exists() else ("--create-ledger",)
        self.start(name, "site", data or f"{name}.parquet", "-y", "y", *who, *own, *new)

    def server(self, *fit, minimum=3, timeout=LONG):
        keys = [word for name in SITES for word in ("--site", f"{name}.pub")]
        files = ("--certificate", "server.crt", "--key", "server.key", "--ca", "ca.crt", "--port", self.port)
        budget = ("--epsilon", 1, "--delta", 1e-5, "--directions", 1, "--classes", "0,1")
        self.start(
            "server", "server", *keys, *files, *budget, *fit, "--minimum", minimum, "--timeout", timeout, "--wait", LONG
        )

    def knock(self, *paths):
        """What somebody without the secret is answered at these paths of the server."""
        command = [FLOWER / "python", "-c", KNOCK, str(self.port), *paths]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True, timeout=LONG)
        return list(map(int, done.stdout.split()))

    def fault(self, **faults):
        (self.folder / "faults.json").write_text(json.dumps(faults))

    def said(self, name):
        return (self.folder / f"{name}.out").read_text()

    def ended(self, name):
        """Exit code of a command that ends by itself, or was told to; nothing else that was started may end."""
        process, end = self.started.pop(name), time.monotonic() + LONG
        while process.poll() is None:
            self._all_alive()
            assert time.monotonic() < end, f"{name} did not end; see the files in {self.folder}"
            time.sleep(0.05)
        return process.returncode

    def _all_alive(self):
        for name, process in self.started.items():
            assert process.poll() is None, f"{name}: {self.said(name)}"

    def outcome(self):
        assert self.ended("server") == 0, self.said("server")
        return json.loads((self.folder / "federation" / "result" / "outcome.json").read_text())

    def answers(self, name, pattern):
        return sorted((self.folder / f"{name}-answers").glob(pattern))

    def until(self, seen, what):
        """Wait for an event while the server works."""
        end = time.monotonic() + LONG
        while not seen():
            self._all_alive()
            assert time.monotonic() < end, f"{what} did not happen; see the files in {self.folder}"
            time.sleep(0.05)

    def until_asked(self, name, line):
        """Until a site has begun to answer a line of the run that is going on."""
        run = self.folder / "federation" / "run.json"
        self.until(
            lambda: run.exists() and self.answers(name, f"{json.loads(run.read_text())['run']}/{line}.claim"),
            f"{line} at {name}",
        )

    def interrupt(self, name):
        """Ctrl-C: a signal to the foreground process group, as a terminal sends it."""
        os.killpg(self.started[name].pid, signal.SIGINT)

    def kill(self, name):
        """Not even a chance to clean up."""
        process = self.started.pop(name)
        process.kill()
        process.wait(timeout=LONG)

    def lose_one_and_replay_another(self, timeout, method):
        """A site dies in mid-round, another replays what it sent before: the third finishes, and both are named."""
        self.fault(h2={"shape": "replay"})
        self.server(*BOUNDED, "--method", method, minimum=1, timeout=timeout)
        self.until_asked("h1", "shape")
        self.kill("h1")
        found = self.outcome()
        assert "answers another line" in found["left_out"]["h2"]
        assert "did not answer" in found["left_out"].get("h1", "did not answer") and "h1" not in found["spending"]
        assert np.isfinite(found["directions"]).all()

    def nothing_left_of(self, *names):
        """No process but those of the commands that still run carries this deployment's environment."""
        end = time.monotonic() + 60.0
        while left := self._left() - {self.started[name].pid for name in names}:
            assert time.monotonic() < end, f"processes {left} were left behind"
            time.sleep(0.1)

    def stop(self):
        for name in list(self.started):
            self.kill(name)
        try:
            self.nothing_left_of()
        finally:
            for each in self._left():
                os.kill(each, signal.SIGKILL)

    def _left(self):
        found = set()
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"FAULTS={self.folder}\0".encode() in environment.read_bytes():
                    found.add(int(environment.parent.name))
            except OSError:
                continue
        return found
