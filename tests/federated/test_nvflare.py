"""Coordinator and sites as a job of NVFlare's, in its simulator and in its real processes: ``make test-nvflare``."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.deployment import LONG
from tests.federated.stock import free_ports
from tests.federated.test_flower_app import FIT, HERE, agrees

from sfumato import Budget
from sfumato.federated import simulate
from sfumato.federated.site import UNABLE
from sfumato.privacy.ledger import FileLedger
from sfumato.simulate import he

JOB = Path(__file__).parents[2] / "examples" / "nvflare_job"
NVFLARE = Path(os.environ.get("SFUMATO_NVFLARE", "nowhere")) / "bin"
VERSION = tuple(map(int, os.environ.get("SFUMATO_NVFLARE_VERSION", "0.0").split(".")))
OURS = ["sfumato.federated.nvflare.Coordinator", "sfumato.federated.nvflare.SiteExecutor", "nvflare_recorder.Recorder"]

pytestmark = pytest.mark.skipif(
    "SFUMATO_NVFLARE" not in os.environ, reason="NVFlare has an environment of its own: `make test-nvflare`"
)


class Sites:
    """Tables, ledgers and settings of three sites, and the workspace of a simulator."""

    def __init__(self, folder):
        self.folder, self.local = folder, folder / "workspace" / "local"
        self.local.mkdir(parents=True)
        allowed = {"format_version": 2, "class_allow_list": OURS, "components": []}
        (self.local / "resources.json").write_text(json.dumps(allowed))
        sample = he("I", n=3_000, p=5, random_state=0)
        some = {"north": slice(0, 1_500), "south": slice(1_500, 2_400), "west": slice(2_400, None)}
        self.parts = {name: (sample.x[rows], sample.y[rows]) for name, rows in some.items()}
        for name, (x, y) in self.parts.items():
            self.write(name, {f"x{j}": x[:, j] for j in range(5)} | {"y": y})
            FileLedger(folder / f"{name}.jsonl", Budget.approximate(9, 1e-5), rehearsal=True)

    def write(self, name, columns):
        """The records of a site, and the file that tells what the site is."""
        pq.write_table(pa.table(columns), self.folder / f"{name}.parquet")
        files = {"data": f"{name}.parquet", "ledger": f"{name}.jsonl", "folder": f"{name}-answers"}
        told = {"response": "y", "classes": "0|1"} | {key: str(self.folder / file) for key, file in files.items()}
        lines = [*(f"{key} = '{value}'" for key, value in told.items()), "seed = 7", "most = 1.5"]
        (self.local / f"sfumato-{name}.toml").write_text("\n".join(lines))

    def job(self, told, lasts=-1):
        """The example's job with these settings, and a coordinator that notes the replies."""
        job = self.folder / "job"
        shutil.rmtree(job, ignore_errors=True)
        shutil.copytree(JOB, job)
        path = job / "app" / "config" / "config_fed_server.json"
        config = json.loads(path.read_text())
        settings = {"folder": str(self.folder / "federation"), "wait": LONG, "timeout": LONG} | FIT | told
        notes = {"notes": str(self.folder / "notes"), "lasts": lasts}
        config["workflows"][0] |= {"path": "nvflare_recorder.Recorder", "args": {"settings": settings} | notes}
        path.write_text(json.dumps(config))
        return job

    def simulate(self, told, names=("north", "south", "west"), lasts=-1):
        """Run the job in NVFlare's simulator; each client is a process of its own. What it prints."""
        where = ("-w", "workspace", "-c", ",".join(names), "-t", str(len(names)))
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [NVFLARE / "nvflare", "simulator", self.job(told, lasts), *where],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONG,
        )
        return done.stdout + done.stderr

    def notes(self):
        return [json.loads(line) for line in (self.folder / "notes").read_text().splitlines()]


SUBMIT = """
import sys
from nvflare.fuel.flare_api.flare_api import new_secure_session

session = new_secure_session("admin@nvidia.com", sys.argv[1], timeout=60)
for job in sys.argv[2:]:
    name = session.submit_job(job)
    session.monitor_job(name, timeout=240, poll_interval=0.5)
    print("status", session.get_job_meta(name)["status"], flush=True)
session.close()
"""
"""By NVFlare's public interface for administrators."""


class Processes(Sites):
    """Server and sites as NVFlare provisions them: a process each, certificates at both ends, a site's own rules."""

    def begin(self):
        self.environment = os.environ | {
            "NVFLARE_POC_WORKSPACE": str(self.folder / "poc"),
            "HOME": str(self.folder),
            "PYTHONPATH": str(Path(__file__).parent),
            "OMP_NUM_THREADS": "1",
        }
        self.run("nvflare", "poc", "prepare", "-c", *self.parts)
        self.home = self.folder / "poc" / "example_project" / "prod_00"
        (port,) = free_ports(1)
        for path in self.home.glob("*/startup/fed_*.json"):
            path.write_text(path.read_text().replace("8002", str(port)))
        for name in ("server", *self.parts):
            self._rule(name)
        self.running = []

    def _rule(self, name):
        """What a site allows: our executor and nothing else, no code that comes with a job, no logs to the server."""
        local = self.home / name / "local"
        given = next(path for kind in ("", ".default") if (path := local / f"resources.json{kind}").exists())
        rules = json.loads(given.read_text())
        if name == "server":
            rules["class_allow_list"] = [OURS[0], OURS[2]]
        else:
            rules |= {"class_allow_list": [OURS[1]], "allow_log_streaming": False}
            rules["components"] = [each for each in rules["components"] if "log" not in each["id"]]
            roles = json.loads((local / "authorization.json.default").read_text())
            everything = dict.fromkeys(roles["permissions"]["lead"], "any")
            roles["permissions"]["project_admin"] = everything | {"byoc": "none", "shell_commands": "none"}
            (local / "authorization.json").write_text(json.dumps(roles))
            shutil.copy(self.local / f"sfumato-{name}.toml", local)
        (local / "resources.json").write_text(json.dumps(rules))

    def run(self, program, *words):
        command = [NVFLARE / program, *map(str, words)]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=LONG
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, name):
        kind, own = ("server", []) if name == "server" else ("client", [f"uid={name}"])
        command = [NVFLARE / "python", "-m", f"nvflare.private.fed.app.{kind}.{kind}_train", "-m", self.home / name]
        command += ["-s", f"fed_{kind}.json", "--set", "secure_train=true", *own, "org=nvidia", "config_folder=config"]
        with (self.folder / f"{name}.log").open("wb") as log:
            place = {"cwd": self.home / name, "env": self.environment, "process_group": 0}
            self.running.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **place))

    def submit(self, *jobs):
        """Submit jobs, one after the other; how each ended."""
        said = self.run("python", "-c", SUBMIT, self.home / "admin@nvidia.com", *jobs)
        return [line.split()[1] for line in said.splitlines() if line.startswith("status ")]

    def stop(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            for process in self.running:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, how)
            time.sleep(2.0)
        for process in self.running:
            process.wait()


@pytest.fixture
def sites(tmp_path):
    return Sites(tmp_path)


def test_a_job_that_goes_on_is_a_simulation_paid_once(sites):
    said = sites.simulate({"sites": 3}, lasts=4)
    assert [path.name for path in (sites.folder / "federation").iterdir()] == ["run.json"], said
    before = {name: len(FileLedger(sites.folder / f"{name}.jsonl")) for name in sites.parts}
    first = sites.notes()
    said = sites.simulate({"sites": 3})
    assert (sites.folder / "federation" / "result").exists(), said
    agrees(sites.folder, simulate(HERE, sites.parts))
    again = sites.notes()[len(first) :]
    repeated = [note for note in first if note["asked"]["ask"] == "answer"]
    assert repeated and all(note in again for note in repeated) and set(before.values()) == {len(repeated) // 3}
    assert all("/" not in note["head"] and ".jsonl" not in note["head"] for note in sites.notes())
    assert "asks for (epsilon = 1" in (sites.folder / "north-answers" / "site.log").read_text()
    sent = "".join(path.read_text() for path in (sites.folder / "workspace").rglob("*log*.txt"))
    assert "asks for (epsilon" not in sent and "north.jsonl" not in sent  # NVFlare sends its logs to the server


def test_a_site_with_other_columns_and_one_without_an_account_are_left_out_by_name(sites):
    x, y = sites.parts["west"]
    sites.write("west", {"age": x[:, 0], "y": y})
    sites.write("east", {f"x{j}": x[:, j] for j in range(5)} | {"y": y})  # which has no ledger
    said = sites.simulate({"sites": 4, "minimum": 2}, ("north", "south", "west", "east"))
    assert (sites.folder / "federation" / "result").exists(), said
    found = json.loads((sites.folder / "federation" / "result" / "outcome.json").read_text())
    assert set(found["left_out"]) == {"west", "east"} and UNABLE in found["left_out"]["east"]
    here = simulate(HERE, {name: sites.parts[name] for name in ("north", "south")})
    np.testing.assert_allclose(found["directions"], here.directions_, rtol=0, atol=1e-12)
    assert not len(FileLedger(sites.folder / "west.jsonl")) and not (sites.folder / "east.jsonl").exists()
    assert "ledger" in (sites.folder / "east-answers" / "site.log").read_text()


@pytest.mark.skipif(
    VERSION < (2, 8), reason="before 2.8 a site of NVFlare's could not say which classes a job may name"
)
def test_real_processes_fit_what_a_simulation_fits_and_sites_refuse_jobs_that_bring_code(tmp_path):
    made = Processes(tmp_path)
    made.begin()
    wrong = made.job({"sites": 3, "folder": str(tmp_path / "elsewhere")})
    other = shutil.copytree(wrong, tmp_path / "other")
    (other / "app" / "custom").mkdir()
    (other / "app" / "custom" / "sitecustomize.py").write_text(f"open({str(tmp_path / 'seen')!r}, 'w')")
    shell = shutil.copytree(wrong, tmp_path / "shell")
    config = json.loads((shell / "app" / "config" / "config_fed_client.json").read_text())
    launcher = "nvflare.app_common.launchers.subprocess_launcher.SubprocessLauncher"
    config["components"] = [{"id": "shell", "path": launcher, "args": {"script": f"touch {tmp_path / 'seen'}"}}]
    (shell / "app" / "config" / "config_fed_client.json").write_text(json.dumps(config))
    try:
        for name in ("server", *made.parts):
            made.start(name)
        ended = made.submit(made.job({"sites": 3}), other, shell)
    finally:
        made.stop()
    assert ended[0] == "FINISHED:COMPLETED" and "FINISHED:COMPLETED" not in ended[1:], ended
    agrees(tmp_path, simulate(HERE, made.parts))
    assert "BYOC not permitted" in (tmp_path / "server.log").read_text()
    assert f"'{launcher}' at config path" in (tmp_path / "north.log").read_text()
    assert not (tmp_path / "seen").exists()
