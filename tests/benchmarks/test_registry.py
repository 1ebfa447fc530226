"""The registry of studies: no result without a study that makes it, no study that cannot be started."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECK = """
from pathlib import Path
from benchmarks.registry import BENCHMARKS

written = [name for study in BENCHMARKS.values() for name in study.writes]
assert len(written) == len(set(written)), "two studies write one file"
results = {path.name for path in Path("benchmarks/results").iterdir()}
print("unnamed:", sorted(results - set(written)))
print("without a page:", [name for name in written if name.startswith("docs/") and not Path(name).exists()])
"""


def run(*words: str) -> str:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_every_committed_result_is_named_by_one_study():
    assert run("-c", CHECK).splitlines() == ["unnamed: []", "without a page: []"]


def test_the_list_names_every_study_with_its_purpose_and_what_it_writes():
    lines = run("-m", "benchmarks", "--list").splitlines()
    assert len(lines) > 30 and all(": " in line for line in lines)
    assert any(line.startswith("kill-ledger ") and line.endswith("kill_ledger.md") for line in lines)
    assert len(run("-m", "benchmarks", "--list", "speed", "timing").splitlines()) == 2


def test_every_study_is_a_module_that_is_there():
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    text = (ROOT / "benchmarks" / "registry.py").read_text(encoding="utf-8")
    started = {word.split('"')[1] for word in text.replace("call(", "start(").split("start(")[1:] if word[0] == '"'}
    assert len(started) > 20 and started <= modules
