"""How long it takes, and how much memory, to open a ledger of a hundred thousand lines.

    python benchmarks/long_ledger.py --lines 100000 --out benchmarks/results/long_ledger.md

Seconds and memory are those of `FileLedger(path)` and its total alone, in a process that has imported the library.
Three files with the same runs: with checkpoints, as they are written; without, as earlier versions left them; and that
one after one more run, which adds a checkpoint. The first two must have the same total.
"""

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sfumato import Budget
from sfumato.privacy.ledger import Entry, FileLedger, disk
from sfumato.privacy.ledger.chain import EVERY, checkpoint
from sfumato.privacy.ledger.lines import entry_to, event_to
from sfumato.privacy.plan import Line, Plan

CAP = Budget.approximate(1e4, 1e-6)
OPEN = """
import json, pathlib, re, sys, time
from sfumato.privacy.ledger import FileLedger

def memory(name):
    return int(re.search(name + r":\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) / 1024

pathlib.Path("/proc/self/clear_refs").write_text("5")  # the largest so far was that of the imports: forget it
before, began = memory("VmRSS"), time.perf_counter()
ledger = FileLedger(sys.argv[1])
total = ledger.total()
seconds = time.perf_counter() - began
print(json.dumps({"seconds": seconds, "MB": memory("VmHWM") - before, "total": total, "lines": ledger._chain.count}))
"""


def plan_of(i):
    """Runs of different costs, one in three with a selection."""
    lines = [Line(f"step {j}", "a step", 1.0, "") for j in range(6)]
    if i % 3 == 0:
        lines.append(Line("picks", "picks", 1.0, "", "selection", 4))
    return Plan(tuple(lines)).scaled(1e-4 * (1.0 + i % 97 / 97.0))


def lines_of(i):
    """The lines of a run, as a fit writes them."""
    about = {
        "run": f"{i:016x}",
        "purpose": "a study of some length",
        "by": disk.who(),
        "at": "2026-01-01T00:00:00+00:00",
    }
    plan = plan_of(i)
    yield "reserve", {**about, "planned": [event_to(event) for event in plan.events]}
    for event in plan.events:
        entry = Entry("a step", "a sum over the records", event, 1.4142, 33.3, 0.1, "replace", about["at"])
        yield "entry", {**about, "entry": entry_to(entry)}


def write(path, lines, every):
    """A ledger of so many lines, a checkpoint after every so many; in batches, as every line by itself is synced."""
    ledger = FileLedger(path, CAP)
    wanted = itertools.chain.from_iterable(map(lines_of, itertools.count()))
    for done in range(0, lines, min(every, lines)):
        with ledger._writing() as fd:
            ledger._write(fd, itertools.islice(wanted, min(every, lines - done)))
            if ledger._chain.count - ledger._chain.checked >= every:
                told = checkpoint(ledger._chain, disk.digest(fd, ledger._chain.size))
                ledger._write(fd, [("checkpoint", {**told, "by": disk.who(), "at": ""})])


def run(ledger, plan):
    ledger.reserve(plan)
    for event in plan.events:
        ledger.record(Entry("a step", "a sum over the records", event, 1.4142, 33.3, 0.1, "replace"))


def opened(path):
    done = subprocess.run([sys.executable, "-c", OPEN, str(path)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def study(folder, lines):
    found = {}
    write(folder / "new.jsonl", lines, EVERY)
    found["with checkpoints"] = opened(folder / "new.jsonl")
    write(folder / "old.jsonl", lines, 10**9)
    found["without, as before"] = opened(folder / "old.jsonl")
    began = time.perf_counter()
    run(FileLedger(folder / "old.jsonl"), plan_of(1))
    appended = time.perf_counter() - began
    found["the same after one more run"] = opened(folder / "old.jsonl")
    size = (folder / "new.jsonl").stat().st_size / 2**20
    with disk.locked(folder / "new.jsonl", write=False) as fd:
        began = time.perf_counter()
        disk.digest(fd, (folder / "new.jsonl").stat().st_size)
        hashed = time.perf_counter() - began
    began = time.perf_counter()
    FileLedger(folder / "new.jsonl").verify()
    return {
        "files": found,
        "size": size,
        "hashed": hashed,
        "one more run": appended,
        "verify": time.perf_counter() - began,
    }


def page(result, command):
    rows = [
        f"| {name} | {told['lines']:,} | {told['seconds']:.2f} | {told['MB']:.0f} | {told['total']:.9g} |"
        for name, told in result["files"].items()
    ]
    return "\n".join(
        [
            "# A ledger of a hundred thousand lines",
            "",
            f"`{command}`, Python {platform.python_version()}, {os.cpu_count()} cores.",
            "",
            "| ledger | lines | seconds to open | MB more than before | total epsilon |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"The file has {result['size']:.0f} MB; hashing it takes {result['hashed']:.2f} s, checking every line "
            f"(`sfumato ledger verify`) {result['verify']:.1f} s.",
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = study(Path(folder), given.lines)
    if given.out is not None:
        given.out.write_text(page(result, "python " + " ".join(sys.argv)))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
