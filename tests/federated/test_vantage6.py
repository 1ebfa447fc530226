"""Coordinator and sites as an algorithm of vantage6's, with vantage6's own client for tests: ``make test-vantage6``."""

import base64
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.deployment import LONG
from tests.federated.test_flower_app import FIT, HERE, agrees, sites

from sfumato.federated import simulate
from sfumato.federated.site import UNABLE
from sfumato.privacy.ledger import FileLedger

VANTAGE6 = Path(os.environ.get("SFUMATO_VANTAGE6", "nowhere")) / "bin"
ORGANIZATIONS = {4: "north", 5: "south", 6: "west"}

pytestmark = pytest.mark.skipif(
    "SFUMATO_VANTAGE6" not in os.environ, reason="vantage6 has an environment of its own: `make test-vantage6`"
)


def begin(folder):
    """Records and settings of three sites, in one folder that all their nodes mount here."""
    parts, settings = sites(folder)
    for each, name in ORGANIZATIONS.items():
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings[name].items()]
        (folder / f"organization-{each}.toml").write_text("\n".join(lines))
    return parts


def run(folder, mounted=True, **told):
    """Run the task; what it printed and how it ended."""
    settings = FIT | {"folder": str(folder / "federation"), "timeout": 60} | told.pop("settings", {})
    job = {"organizations": list(ORGANIZATIONS), "settings": settings, "notes": str(folder / "notes")} | told
    (folder / "job.json").write_text(json.dumps(job))
    environment = os.environ | ({"SFUMATO_DATABASE_URI": str(folder)} if mounted else {})
    command = [VANTAGE6 / "python", Path(__file__).with_name("vantage6_algorithm.py"), folder / "job.json"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG)


def notes(folder):
    return [json.loads(line) for line in (folder / "notes").read_text().splitlines()]


def test_a_task_that_goes_on_is_a_simulation_paid_once(tmp_path):
    parts = begin(tmp_path)
    assert "ConnectionError" in run(tmp_path, lasts=11).stderr
    first = notes(tmp_path)
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert set(said["callable"]) == {"algorithm_client", "answer", "fit"}
    assert said["found"] == json.loads((tmp_path / "federation" / "result" / "outcome.json").read_text())
    agrees(tmp_path, simulate(HERE, parts))
    again = notes(tmp_path)[len(first) :]
    repeated = [note for note in first if '"answer"' in note[0]]
    assert repeated and all(note in again for note in repeated)
    assert all("/" not in reply["json"] for _, (reply,) in notes(tmp_path))
    assert "asks for (epsilon = 1" in (tmp_path / "site.log").read_text()


def test_a_site_with_other_columns_and_one_without_an_account_are_left_out_by_name(tmp_path):
    parts = begin(tmp_path)
    x, y = parts["west"]
    pq.write_table(pa.table({"age": x[:, 0], "y": y}), tmp_path / "west.parquet")
    done = run(tmp_path, organizations=[4, 5, 6, 7], settings={"minimum": 2})  # nobody wrote settings for 7
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])["found"]
    assert set(found["left_out"]) == {"west", "7"} and UNABLE in found["left_out"]["7"]
    assert not len(FileLedger(tmp_path / "west.jsonl"))
    here = simulate(HERE, {name: parts[name] for name in ("north", "south")})
    np.testing.assert_allclose(found["directions"], here.directions_, rtol=0, atol=1e-12)
    assert "organization-7.toml cannot be read" in (tmp_path / "site.log").read_text()
    assert "organization-7.toml" not in (tmp_path / "notes").read_text()


def test_a_node_that_mounts_no_folder_has_no_account_and_answers_nothing(tmp_path):
    begin(tmp_path)
    done = run(tmp_path, mounted=False)
    assert done.returncode != 0 and "the node has no folder 'sfumato'" in done.stdout
    assert all(json.loads(reply["json"]) == {"refused": UNABLE} for _, (reply,) in notes(tmp_path))


def test_a_container_answers_for_the_organization_of_its_token_and_for_nobody_that_a_task_names(tmp_path):
    """The image's own command with the files that a node writes for it; no server is needed to answer."""
    begin(tmp_path)
    claims = base64.urlsafe_b64encode(json.dumps({"sub": {"organization_id": 4}}).encode()).decode().rstrip("=")
    (tmp_path / "token").write_text(f"eyJhbGciOiJIUzI1NiJ9.{claims}.c2lnbmVk")
    place = {"HOST": "http://127.0.0.1", "PORT": "9", "API_PATH": "/api", "SFUMATO_DATABASE_URI": str(tmp_path)}
    files = {f"{name.upper()}_FILE": str(tmp_path / name) for name in ("token", "input", "output")}
    environment = os.environ | place | files | {"PKG_NAME": "sfumato.federated.vantage6.algorithm"}
    wrap = "from vantage6.algorithm.tools.wrap import wrap_algorithm; wrap_algorithm(log_traceback=False)"
    heads = []
    for more in ({}, {"mock_client": {"organization_id": 5}}):
        task = {"method": "answer", "kwargs": {"question": '{"ask":"facts"}'} | more}
        (tmp_path / "input").write_text(json.dumps(task))
        done = subprocess.run(
            [VANTAGE6 / "python", "-c", wrap], env=environment, capture_output=True, text=True, timeout=LONG
        )
        assert done.returncode == 0, done.stdout + done.stderr
        heads.append(json.loads(json.loads((tmp_path / "output").read_text())["json"]))
    assert heads[0]["name"] == "north" and heads[0]["n_records"] == 1_000
    assert heads[1] == {"refused": "unexpected AttributeError at the site."}
