"""Real processes: interruption, progress, pipes and completion."""

import os
import pty
import re
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
from sfumato.model import load_model
from sfumato.privacy.ledger import FileLedger

SLOW = ("fit", "slow.parquet", "-y", "y", "--out", "result")


@pytest.fixture(scope="module")
def slow(tmp_path_factory) -> Path:
    """A table large enough that a fit takes a while."""
    path = tmp_path_factory.mktemp("slow") / "slow.parquet"
    x = np.random.default_rng(0).normal(size=(200_000, 12))
    pq.write_table(pa.table({f"x{i}": x[:, i] for i in range(12)} | {"y": x[:, 0]}), path)
    return path


class Terminal:
    """A terminal that a process writes its progress to."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self.seen = ""

    def wait_for(self, words: str, seconds: float = 120.0) -> None:
        end = time.monotonic() + seconds
        while words not in self.plain:
            assert time.monotonic() < end, self.seen
            self.read()

    def read(self) -> None:
        """Read what was written: a process that fills an unread terminal waits for its reader for ever."""
        if select.select([self._ours], [], [], 0.1)[0]:
            self.seen += os.read(self._ours, 4096).decode(errors="replace")

    @property
    def plain(self) -> str:
        """What was seen, on one line and without colours."""
        return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen).split())

    def close(self) -> None:
        os.close(self.theirs)
        os.close(self._ours)


@pytest.fixture
def terminal():
    screen = Terminal()
    yield screen
    screen.close()


def finished(process: subprocess.Popen, terminal: Terminal | None = None, seconds: float = 120.0) -> int:
    end = time.monotonic() + seconds
    while terminal and process.poll() is None and time.monotonic() < end:
        terminal.read()
    process.communicate(timeout=max(end - time.monotonic(), 0.1))
    return process.returncode


@pytest.fixture
def study(here, slow) -> FileLedger:
    (here / "slow.parquet").symlink_to(slow)
    return FileLedger(here / "study.jsonl", Budget.approximate(3, 1e-6))


CAPPED = (*SLOW, "--cap-ledger", "study.jsonl")
PCA = ("fit", "slow.parquet", "--estimator", "pca", "--cap-ledger", "study.jsonl", "--out", "result")
WAITS, PAID = "the fit is finished and its result kept", "the model was paid for and is result/model.json"


@pytest.mark.parametrize(
    ("number", "code", "words", "moment"),
    [
        (signal.SIGINT, 130, CAPPED, "span of the response"),
        (signal.SIGTERM, 143, CAPPED, "ranks of the response"),
        (signal.SIGHUP, 129, CAPPED, "ranks of the response"),
        (signal.SIGINT, 130, PCA, "typical length of a record"),
    ],
)
def test_a_fit_that_is_interrupted_once_it_is_charged_leaves_its_result(
    number, code, words, moment, start, here, study, terminal
):
    process = start(*words, stderr=terminal.theirs)
    terminal.wait_for(moment)
    process.send_signal(number)
    terminal.wait_for(WAITS)
    terminal.wait_for(PAID)
    assert finished(process, terminal) == code
    assert sorted(os.listdir(here / "result")) == ["directions.csv", "model.json"]
    spent = load_model(here / "result" / "model.json").ledger_.total()
    assert study.refresh().total() == pytest.approx(spent) == pytest.approx(1.0)
    assert "all hashes agree" in study.verify()


def test_a_terminal_that_closes_in_the_middle_of_a_fit_does_not_lose_what_was_paid_for(start, here, study):
    terminal = Terminal()
    process = start(*CAPPED, stderr=terminal.theirs)
    terminal.wait_for("ranks of the response")
    terminal.close()  # from now on nothing can be told
    process.send_signal(signal.SIGHUP)
    assert finished(process) == 129
    assert sorted(os.listdir(here / "result")) == ["directions.csv", "model.json"]
    assert study.refresh().total() == pytest.approx(load_model(here / "result" / "model.json").ledger_.total())


def test_the_second_interruption_gives_the_fit_up_and_says_what_it_spent(start, here, study, terminal):
    before = sorted(here.iterdir())
    process = start(*CAPPED, stderr=terminal.theirs)
    terminal.wait_for("ranks of the response")
    assert [path for path in (here / "result").iterdir() if path.name.endswith(".partial")]
    process.send_signal(signal.SIGINT)
    terminal.wait_for(WAITS)
    process.send_signal(signal.SIGINT)
    terminal.wait_for("no half-written file was left")
    assert finished(process, terminal) == 130
    assert sorted(here.iterdir()) == before
    purposes = [entry.purpose for entry in study.refresh().entries]
    assert "span of the response" in purposes and "picture of the first direction against the response" not in purposes
    assert 0 < study.total() < 1.0 and "all hashes agree" in study.verify()
    said = re.search(r"no result was made; (\d+) of 28 releases were made and stay in (\S+)", terminal.plain)
    assert said and int(said[1]) == len(purposes) and said[2] == str(here / "study.jsonl")


@pytest.mark.parametrize("moment", ["loading the library", "reading and checking the records"])
def test_a_fit_that_is_interrupted_before_it_is_charged_spends_nothing(moment, start, here, study, terminal):
    before = sorted(here.iterdir())
    process = start(*CAPPED, stderr=terminal.theirs)
    terminal.wait_for(moment)
    process.send_signal(signal.SIGINT)
    terminal.wait_for("nothing was spent")
    assert finished(process, terminal) == 130
    assert sorted(here.iterdir()) == before
    assert study.refresh().total() == 0.0 and len(study) == 0


CONSOLE = """
import os, signal, sys, threading
import numpy as np
from sfumato import Bounds, PrivateSIR
from sfumato.progress import listening
from sfumato.signals import defer_interrupts

signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell ignores it

class Press:
    def planned(self, purposes):
        self.left = int(sys.argv[1])
    def started(self, purpose):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGINT)
    def advanced(self, fraction):
        pass

x = np.random.default_rng(0).normal(size=(500, 3))
sir = PrivateSIR(bounds=Bounds(-3, 3), ledger="study.jsonl", method="descent")
with listening(Press()):
    if sys.argv[2] == "patient":
        with defer_interrupts():
            sir.fit(x, x[:, 0])
            print(sir.ledger_.total())
    else:
        sir.fit(x, x[:, 0])
"""


def test_ctrl_c_in_python_says_what_the_fit_has_charged(here, study):
    run = [sys.executable, "-c", CONSOLE]
    hurried = subprocess.run([*run, "3", "hurried"], capture_output=True, text=True, timeout=120)
    assert "KeyboardInterrupt" in hurried.stderr and "the first 3 releases may have been charged" in hurried.stderr
    assert len(study.refresh()) in (2, 3) and 0 < study.total() < 1.0
    patient = subprocess.run([*run, "3", "patient"], capture_output=True, text=True, timeout=120)
    assert float(patient.stdout) > 0 and "KeyboardInterrupt" in patient.stderr and "charged" not in patient.stderr


def test_progress_is_seen_at_once_and_names_the_releases(start, here, slow, terminal):
    (here / "slow.parquet").symlink_to(slow)
    begun = time.monotonic()
    process = start(*SLOW, stderr=terminal.theirs)
    terminal.wait_for("loading the library")
    seen_after = time.monotonic() - begun
    terminal.wait_for("ranks of the response")
    terminal.wait_for("/28")
    assert finished(process, terminal) == 0
    assert seen_after < 10.0  # 0.4 s on an idle machine; the tests share theirs


def test_interrupting_while_the_library_loads_is_quiet(start, here, terminal, fit_words):
    process = start(*fit_words, "--out", "los", stderr=terminal.theirs)
    terminal.wait_for("loading the library")
    process.send_signal(signal.SIGINT)
    assert finished(process, terminal) == 130
    assert sorted(os.listdir(here)) == ["bounds.toml", "patients.csv"]


def test_run_again_from_a_shell_without_a_terminal_it_gives_plain_text(sfumato, start, here, fit_words):
    assert sfumato(*fit_words, "--out", "los")[0] == 0
    process = start(*fit_words, "--out", "los")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and b"los/report.html" in out
    assert b"\x1b" not in out + err and b"Traceback" not in err
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
