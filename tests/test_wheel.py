"""What a user installs: the built wheel with what it requires and nothing else, or an image."""

import json
import re
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from sfumato.cli.app import app

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory) -> Path:
    """The programs of an environment that holds the wheel and the packages that it requires, linked from this one."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", with_pip=False)
    programs = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "--disable-pip-version-check"]
    _run(*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel))
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for name in _required("sfumato") - {"sfumato"}:
        for file in distribution(name).files or ():
            link, target = packages / file.parts[0], distribution(name).locate_file(file.parts[0])
            if file.parts[0] != ".." and not link.exists():
                link.symlink_to(Path(str(target)))
    return programs


def test_the_wheel_holds_pages_data_and_types_but_no_tests(wheel):
    names = ZipFile(wheel).namelist()
    for needed in ("report/report.html.jinja", "web/static/desk.css", "data/flights.parquet", "py.typed"):
        assert f"sfumato/{needed}" in names
    assert not [name for name in names if name.startswith(("tests", "docs", "benchmarks"))]


def test_a_fit_and_its_report_work_without_extras(clean, tmp_path):
    said = _run(str(clean / "sfumato"), "demo", "--out", "report.html", cwd=tmp_path).stdout
    assert "differentially private" in said and (tmp_path / "report.html").stat().st_size > 10_000


def test_what_needs_an_extra_says_which(clean, tmp_path):
    done = _run(str(clean / "sfumato"), "serve", cwd=tmp_path, check=False)
    assert done.returncode == 2 and "pip install 'sfumato[web]'" in done.stderr
    look = "from importlib.util import find_spec; print(any(map(find_spec, ('starlette', 'flwr', 'dask', 'pandas'))))"
    assert _run(str(clean / "python"), "-c", look).stdout.strip() == "False"


def _required(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """A package and what it requires without extras, and so on."""
    found = {name}
    for line in distribution(name).requires or ():
        required = Requirement(line)
        if (required.marker is None or required.marker.evaluate({"extra": ""})) and required.name not in seen | found:
            found |= _required(canonicalize_name(required.name), seen | found)
    return found


def _run(*command: str, cwd: Path | None = None, check: bool = True) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(command, cwd=cwd, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=120)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def test_images_copy_files_that_exist_and_start_commands_that_exist():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    ]
    assert copied and all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert all(f"!{name}" in ignored for name in copied)
    extras = {name for line in lines for group in re.findall(r"\$1\[([\w,]+)\]", line) for name in group.split(",")}
    assert extras <= set(distribution("sfumato").metadata.get_all("Provides-Extra"))
    starts = [json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if line.startswith("ENTRYPOINT")]
    assert len(starts) == 2
    for words in starts:
        assert CliRunner().invoke(app, [*words[1:], "--help"]).exit_code == 0
