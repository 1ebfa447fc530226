"""The same deployment with SuperNodes as Flower ships them, which members of a consortium may operate already."""

import json
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

from tests.federated.deployment import FLOWER, LONG, Deployment

from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import FileLedger

ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
}


class SuperNodes(Deployment):
    """Some sites are ``flower-supernode``: one process to stay, and new ones for every message. Others are ours."""

    STOCK = ("h0", "h1")

    def begin(self):
        """Ledgers with a cap. The nodes are started when the coordinator knows them, as Flower's end otherwise."""
        for name in self.STOCK:
            FileLedger(self.folder / f"{name}.jsonl", Budget.approximate(9, 1e-5), rehearsal=True)

    def enter(self):
        self.until(lambda: "waiting for 3 site(s)" in self.said("server"), "the server's start")
        for name in self.parts:
            self.supernode(name) if name in self.STOCK else self.site(name)

    def supernode(self, name):
        files = {"data": f"{name}.parquet", "ledger": f"{name}.jsonl", "folder": f"{name}-answers"}
        told = {"name": name, "response": "y", "classes": "0|1", "seed": 7} | files
        settings = "\n".join(f"{key} = {json.dumps(value)}" for key, value in told.items())
        (self.folder / f"{name}.toml").write_text(settings)
        where = ("--superlink", f"127.0.0.1:{self.port}", "--root-certificates", "ca.crt")
        own = ("--auth-supernode-private-key", name, "--node-config", f"{name}.toml")
        home = {"FLWR_HOME": str(self.folder / f"{name}-home"), "PATH": f"{FLOWER}{os.pathsep}{os.environ['PATH']}"}
        for _ in range(6):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                listen = ("--host", "127.0.0.1", "--port", probe.getsockname()[1])
            self.run(name, FLOWER / "flower-supernode", *where, *listen, *own, **ENVIRONMENT, **home)
            if self._stays(name):
                return

    def _stays(self, name):
        """Flower gives a node's own server a few seconds to start; on a busy machine it ends, as if it had failed."""
        end = time.monotonic() + LONG
        while "SuperNode ID" not in self.said(name) and time.monotonic() < end:
            if self.started[name].poll() is not None:
                assert "failed to start" in self.said(name), self.said(name)
                return False
            time.sleep(0.1)
        return True

    def kill(self, name):
        """As if the machine were switched off: no process of the command's session survives."""
        process = self.started.pop(name)
        for each in _session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.wait(timeout=LONG)


def _session(leader):
    """The processes of a session, its leader first."""
    members = [leader]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and int(stat.parent.name) != leader:
            members.append(int(stat.parent.name))
    return members
