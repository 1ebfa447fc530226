"""A small part of benchmarks/kill_ledger.py: kill -9 and races leave the ledger whole and true."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_ledger.py"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_no_kill_and_no_race_makes_the_ledger_say_too_little():
    command = [sys.executable, str(SCRIPT), "--kills", "15", "--rounds", "3", "--contests", "0"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    result = json.loads(run.stdout.splitlines()[-1])
    assert result["kills"]["kills"] == 15 and result["kills"]["releases"] > 0
    assert result["kills"]["under_reports"] == result["kills"]["corrupt"] == 0
    assert result["races"]["over_the_cap"] == 0 and result["races"]["answered"]
    assert result["races"]["admitted"] == [2, 2, 2]
