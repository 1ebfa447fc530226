"""A small part of benchmarks/fuzz.py: hostile files and ledgers are refused in a sentence, or accepted."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGALRM")
@pytest.mark.parametrize("entry", ["ledgers", "model bytes", "model structure", "csv"])
def test_hostile_input_is_no_surprise(entry):
    command = [sys.executable, str(SCRIPT), "--only", entry, "--cases", "80"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert "FOUND" not in run.stderr, run.stderr
    _, _, cases, accepted, refused, found, _, _ = run.stdout.split("|")
    assert int(cases) == 80 == int(accepted) + int(refused) and int(found) == 0
