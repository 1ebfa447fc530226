"""A small part of benchmarks/fuzz.py: hostile input to every entry point is refused in a sentence, or accepted."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = 20


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGALRM")
def test_hostile_input_is_no_surprise():
    command = [sys.executable, "-m", "benchmarks.fuzz", "--cases", str(CASES), "--first", "500000"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    assert "FOUND" not in run.stderr, run.stderr
    rows = [line.split("|") for line in run.stdout.splitlines()]
    assert len(rows) >= 14
    for _, entry, cases, accepted, refused, found, *_ in rows:
        assert int(cases) == CASES == int(accepted) + int(refused) and int(found) == 0, entry
