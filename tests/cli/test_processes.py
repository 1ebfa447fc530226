"""Real processes: interruption, progress, pipes and completion."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import Budget
from sfumato.privacy.ledger import FileLedger

SLOW = ("fit", "slow.parquet", "-y", "y", "--out", "result")


@pytest.fixture(scope="module")
def slow(tmp_path_factory) -> Path:
    """A table large enough that a fit takes a while."""
    path = tmp_path_factory.mktemp("slow") / "slow.parquet"
    x = np.random.default_rng(0).normal(size=(300_000, 12))
    pq.write_table(pa.table({f"x{i}": x[:, i] for i in range(12)} | {"y": x[:, 0]}), path)
    return path


class Terminal:
    """A terminal that a process writes its progress to."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self.seen = ""

    def wait_for(self, words: str, seconds: float = 120.0) -> None:
        end = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self._ours], [], [], 0.1)[0]:
                self.seen += os.read(self._ours, 4096).decode(errors="replace")

    def close(self) -> None:
        os.close(self.theirs)
        os.close(self._ours)


@pytest.fixture
def terminal():
    screen = Terminal()
    yield screen
    screen.close()


def finished(process: subprocess.Popen, seconds: float = 120.0) -> int:
    process.communicate(timeout=seconds)
    return process.returncode


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_fit_leaves_nothing_half_written_and_a_truthful_ledger(
    number, code, start, here, slow, terminal
):
    (here / "slow.parquet").symlink_to(slow)
    FileLedger(here / "study.jsonl", Budget.approximate(3, 1e-6))
    before = sorted(here.iterdir())
    process = start(*SLOW, "--cap-ledger", "study.jsonl", stderr=terminal.theirs)
    terminal.wait_for("ranks of the response")
    assert [path for path in (here / "result").iterdir() if path.name.endswith(".partial")]
    process.send_signal(number)
    assert finished(process) == code
    assert sorted(here.iterdir()) == before
    ledger = FileLedger(here / "study.jsonl")
    assert "all hashes agree" in ledger.verify()
    purposes = [entry.purpose for entry in ledger.entries]
    assert "span of the response" in purposes and "picture of the first direction against the response" not in purposes
    assert 0 < ledger.total() < 1.0


def test_an_interrupted_fit_of_components_is_as_clean(start, here, slow, terminal):
    (here / "slow.parquet").symlink_to(slow)
    FileLedger(here / "study.jsonl", Budget.approximate(3, 1e-6))
    before = sorted(here.iterdir())
    words = ("fit", "slow.parquet", "--estimator", "pca", "--cap-ledger", "study.jsonl", "--out", "result")
    process = start(*words, stderr=terminal.theirs)
    terminal.wait_for("typical length of a record")
    process.send_signal(signal.SIGINT)
    assert finished(process) == 130
    assert sorted(here.iterdir()) == before
    ledger = FileLedger(here / "study.jsonl")
    assert "all hashes agree" in ledger.verify() and 0 < ledger.total() <= 1.0
    assert "spread of each feature" in [entry.purpose for entry in ledger.entries]


def test_progress_is_seen_at_once_and_names_the_releases(start, here, slow, terminal):
    (here / "slow.parquet").symlink_to(slow)
    begun = time.monotonic()
    process = start(*SLOW, stderr=terminal.theirs)
    terminal.wait_for("loading the library")
    seen_after = time.monotonic() - begun
    terminal.wait_for("ranks of the response")
    terminal.wait_for("/17")
    assert finished(process) == 0
    assert seen_after < 10.0  # 0.4 s on an idle machine; the tests share theirs


def test_interrupting_while_the_library_loads_is_quiet(start, here, terminal, fit_words):
    process = start(*fit_words, "--out", "los", stderr=terminal.theirs)
    terminal.wait_for("loading the library")
    process.send_signal(signal.SIGINT)
    assert finished(process) == 130
    assert sorted(os.listdir(here)) == ["bounds.toml", "patients.csv"]


def test_run_twice_from_a_shell_without_a_terminal_gives_plain_text(start, here, fit_words):
    for _ in range(2):
        process = start(*fit_words, "--out", "los")
        out, err = process.communicate(timeout=120)
        assert (
            process.returncode == 0
            and b"los/report.html" in out
            and b"\x1b" not in out + err
            and b"Traceback" not in err
        )
    assert sorted(os.listdir(here / "los")) == ["directions.csv", "model.json", "report.html"]


def test_a_closed_pipe_is_no_traceback_and_loses_no_result(start, here, fit_words):
    with start(*fit_words, "--out", "los") as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert sorted(os.listdir(here / "los")) == ["directions.csv", "model.json", "report.html"]  # what was paid for


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sfumato f", ["fit", "federated"]),
        ("sfumato fit --relation ad", ["add-remove"]),
        ("sfumato explain --estimator sp", ["sparse-sir", "sparse-pca"]),
        ("sfumato fit patients.csv --response w", ["weight", "ward"]),
        ("sfumato fit absent.csv --response w", []),
    ],
)
def test_the_shell_completes_commands_values_and_columns(words, expected, start):
    environment = {"_SFUMATO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    out, _ = start(env=environment).communicate(timeout=120)
    assert out.decode().split() == expected


def test_help_does_not_load_the_heavy_libraries():
    code = (
        "import sys; from sfumato.cli.app import app; "
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
