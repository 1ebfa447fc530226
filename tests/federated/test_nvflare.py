"""Coordinator and sites as a job of NVFlare's, in its simulator and in its real processes: ``make test-nvflare``."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.deployment import LONG
from tests.federated.test_flower_app import FIT, HERE, agrees

from sfumato import Budget
from sfumato.federated import simulate
from sfumato.federated.site import UNABLE
from sfumato.privacy.ledger import FileLedger
from sfumato.simulate import he

JOB = Path(__file__).parents[2] / "examples" / "nvflare_job"
NVFLARE = Path(os.environ.get("SFUMATO_NVFLARE", "nowhere")) / "bin"
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


@pytest.fixture
def sites(tmp_path):
    return Sites(tmp_path)


def test_a_job_that_goes_on_is_a_simulation_paid_once(sites):
    said = sites.simulate({"sites": 3}, lasts=4)
    assert "stopped for the test" in said and not (sites.folder / "federation" / "result").exists()
    before = {name: len(FileLedger(sites.folder / f"{name}.jsonl")) for name in sites.parts}
    first = sites.notes()
    said = sites.simulate({"sites": 3})
    assert "1 direction(s) from 3 site(s)" in said, said
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
    assert "1 direction(s) from 2 site(s)" in said, said
    found = json.loads((sites.folder / "federation" / "result" / "outcome.json").read_text())
    assert set(found["left_out"]) == {"west", "east"} and UNABLE in found["left_out"]["east"]
    here = simulate(HERE, {name: sites.parts[name] for name in ("north", "south")})
    np.testing.assert_allclose(found["directions"], here.directions_, rtol=0, atol=1e-12)
    assert not len(FileLedger(sites.folder / "west.jsonl")) and not (sites.folder / "east.jsonl").exists()
    assert "ledger" in (sites.folder / "east-answers" / "site.log").read_text()
