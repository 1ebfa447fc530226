"""Is what we use of Flower still there? For the version in the environment that `SFUMATO_FLOWER` names.

`make test-flower-versions` asks every version that is supported.
"""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.federated.deployment import FLOWER

from sfumato.federated.flower import library

ROOT = Path(__file__).parents[2]
LOOK = """
import json
from importlib.metadata import version
from sfumato.federated.flower import keys, library
from sfumato.federated.flower.link import build_app

keys.demand_flower()
identity = library.TaskIdentity
identity.task_id, identity.run_id, identity.node_id = 1, 2, 3
grid = library.HttpGrid("127.0.0.1:1", root_certificates=None, token="none")
client = library.stay(library.client_of(grid))
told = library.Message(library.RecordDict({}), dst_node_id=1, message_type=library.MessageType.QUERY, ttl=9.0)
library.name_message(told, "a name")
print(json.dumps({
    "version": version("flwr"),
    "absent": library.absent_parts(),
    "retries": [hasattr(grid._retry_invoker, name) for name in ("max_time", "max_tries")],
    "interceptors": isinstance(client._interceptors, tuple),
    "redirects": client._client.follow_redirects,
    "id": told.metadata.message_id,
    "run": told.metadata.run_id,
    "middleware": len(library.extensions.get_middleware()),
    "app": len(build_app()) > 100,
}))
"""


@pytest.mark.skipif(not (FLOWER / "python").exists(), reason="there is no .venv-flower; `make test` creates it")
def test_every_part_of_flower_that_is_used_is_there_and_does_what_is_expected_of_it(tmp_path):
    environment = {**os.environ, "FLWR_HOME": str(tmp_path), "FLWR_TELEMETRY_ENABLED": "0"}
    done = subprocess.run([FLOWER / "python", "-c", LOOK], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    version = tuple(map(int, found.pop("version").split(".")[:2]))
    assert library.VERSIONS[0] <= version < library.VERSIONS[1]
    assert found == {
        "absent": [],
        "retries": [True, True],
        "interceptors": True,
        "redirects": False,
        "id": "a name",
        "run": 2,
        "middleware": 0,  # nobody else's, which ours would replace
        "app": True,
    }


def test_the_versions_that_are_checked_are_those_that_are_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (required,) = map(Requirement, project["optional-dependencies"]["federated"])
    (first, least), (other, below) = library.VERSIONS
    assert required.name == "flwr" and set(map(str, required.specifier)) == {f">={first}.{least}", f"<{other}.{below}"}


def test_names_that_are_not_public_are_in_one_module_alone():
    """Attributes of Flower's objects that begin with an underscore, and imports of Flower's."""
    for path in (ROOT / "src" / "sfumato").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        inner = re.findall(r"\b(?!self\b|cls\b)\w+\._(?:runtime_client|retry_invoker|interceptors|client)\b", text)
        imported = re.findall(r"(?m)^\s*(?:from|import) flwr\.(?!app\b|clientapp\b|serverapp\b)\S+", text)
        assert path.name == "library.py" or not (inner or imported), path
