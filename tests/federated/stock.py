"""A network as Flower ships it, which a consortium may operate already: SuperLink, SuperNodes, ``flwr run``."""

import json
import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.federated.deployment import FLOWER, LONG
from tests.federated.supernodes import ENVIRONMENT, SuperNodes

APP = Path(__file__).parents[2] / "examples" / "flower_app"


def free_ports(count):
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


class Stock(SuperNodes):
    """TLS and node authentication; the SuperLink starts our app, and no code of ours starts anything."""

    def begin(self):
        super().begin()
        try:
            self._begin()
        except BaseException:
            self.stop()
            raise

    def _begin(self):
        self.port, self.control, runtime = free_ports(3)
        if self.version >= (1, 37):  # one port for two interfaces, then for all three
            self.control = runtime
        if self.version >= (1, 40):
            self.port = runtime
        self.home = {"FLWR_HOME": str(self.folder / "home"), "PATH": f"{FLOWER}{os.pathsep}{os.environ['PATH']}"}
        (self.folder / "home").mkdir()
        where = f'address = "127.0.0.1:{self.control}"\nroot-certificates = "{self.folder / "ca.crt"}"\n'
        (self.folder / "home" / "config.toml").write_text(f"[superlink.stock]\n{where}")
        listen = ["--host", "127.0.0.1", "--port", runtime]
        listen += ["--fleet-api-address", f"127.0.0.1:{self.port}"] if self.version < (1, 40) else []
        listen += ["--control-api-address", f"127.0.0.1:{self.control}"] if self.version < (1, 37) else []
        files = ("--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key")
        only = ("--enable-supernode-auth", "--disable-runtime-dependency-installation")
        command = (FLOWER / "flower-superlink", *listen, *files, *only)
        self.run("superlink", *command, **ENVIRONMENT, **self.home)
        self.until(self._listens, "the SuperLink's start")
        for name in self.parts:
            self.flwr("supernode", "register", f"{name}.pub", "stock")

    @property
    def version(self):
        look = "from importlib.metadata import version; print(version('flwr'))"
        done = subprocess.run([FLOWER / "python", "-c", look], capture_output=True, text=True, check=True)
        return tuple(map(int, done.stdout.split(".")[:2]))

    @property
    def speaks_ours(self):
        """Whether `sfumato federated site` can join this version's network."""
        return self.version >= (1, 41)

    def flwr(self, *words):
        """One of Flower's commands; what it says, as JSON. Its exit code says little: a run that failed has 0."""
        command = [str(FLOWER / "flwr"), *map(str, words), "--format", "json"]
        environment = self.environment | ENVIRONMENT | self.home
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LONG, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout[done.stdout.index("{") :])

    def fit(self, told):
        """Submit the app and wait for the outcome."""
        told = {"folder": str(self.folder / "federation"), "wait": LONG, "timeout": LONG} | told
        settings = "\n".join(f"{key} = {json.dumps(value)}" for key, value in told.items())
        (self.folder / "fit.toml").write_text(settings)
        self.flwr("run", APP, "stock", "-c", self.folder / "fit.toml")
        self.until(lambda: self._state() == "finished", "the end of the run")

    def _state(self):
        (run,) = self.flwr("list", "stock")["runs"]
        assert "failed" not in run["status"], self.said("superlink")
        return run["status"].partition(":")[0]

    def _listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.control), timeout=1.0).close()
        except OSError:
            return False
        return True
