"""Tables to run commands on, and a way to run them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest
from typer.testing import CliRunner

BOUNDS = '[bounds]\n"age" = [-4, 4]\n"weight" = [-4, 4]\n"dose" = [-4, 4]\n'


@pytest.fixture(scope="session")
def patients(tmp_path_factory) -> Path:
    rng = np.random.default_rng(11)
    x = rng.normal(size=(4000, 3))
    los = x @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=4000)
    ward = rng.choice(["north", "south", "west"], size=4000)
    table = pa.table({"age": x[:, 0], "weight": x[:, 1], "dose": x[:, 2], "ward": ward, "los": los})
    path = tmp_path_factory.mktemp("data") / "patients.csv"
    pcsv.write_csv(table, path)
    return path


@pytest.fixture
def here(tmp_path, monkeypatch, patients) -> Path:
    """An own directory to work in, with patients.csv and bounds.toml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "patients.csv").symlink_to(patients)
    (tmp_path / "bounds.toml").write_text(BOUNDS)
    return tmp_path


@pytest.fixture
def sfumato(here):
    """Run a command in this process; (exit code, stdout, stderr)."""
    from sfumato.cli.app import app

    def run(*words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, list(words))
        return result.exit_code, result.stdout, result.stderr

    return run


@pytest.fixture
def start(here):
    """Start a command in a process of its own."""
    program = [str(Path(sys.executable).parent / "sfumato")]

    def run(*words: str, **options) -> subprocess.Popen[bytes]:
        environment = os.environ | {"COLUMNS": "100"} | options.pop("env", {})
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen([*program, *words], cwd=here, env=environment, preexec_fn=_hear_interrupts, **streams)

    return run


def _hear_interrupts() -> None:
    """A shell that runs the tests in the background, or nohup, makes them, and what they start, deaf to signals."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


FIT = ("fit", "patients.csv", "-y", "los", "--features", "age,weight,dose", "--bounds", "bounds.toml")


@pytest.fixture
def fit_words() -> tuple[str, ...]:
    return FIT
