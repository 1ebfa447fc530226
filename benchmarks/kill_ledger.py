"""Kill -9 in the middle of fits that share one ledger, and races for the rest of a cap: processes, threads, joblib.

    python benchmarks/kill_ledger.py --kills 200 --rounds 100 --contests 100 --out benchmarks/results/kill_ledger.md

A worker prints each release the moment its noise is drawn; after the kill, every printed release must be in the ledger
(no under-report) and the ledger must verify (not corrupt). The control writes the ledger *after* the noise, as a naive
implementation would: the same test must catch it.
"""

import argparse
import json
import os
import platform
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from sfumato import Bounds, Budget, BudgetError, Ledger, PrivateSIR
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.plan import Line, Plan

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 3))
Y = X[:, 0] + 0.1 * RNG.standard_normal(200)


def fit(path, rho):
    return PrivateSIR(rho=rho, bounds=Bounds(-1, 1), method="descent", ledger=path).fit(X, Y)


def announce(out, late):
    """Make the curator print (run, purpose) of every release; with `late`, record only after printing."""
    answer, record = Curator.answer, FileLedger.record

    def announced(self, query, name):
        line = self._open[name]
        stash = []
        if late:
            FileLedger.record = lambda ledger, entry: stash.append(entry)
        release = answer(self, query, name)
        os.write(out, f"{self._ledger._run} {line.purpose}\n".encode())
        for entry in stash:
            record(self._ledger, entry)
        return release

    Curator.answer = announced


def worker(path, out, late):
    announce(out, late)
    while True:
        fit(path, 1e-4)


def start(path, late):
    """Fork a worker; returns its process and the pipe it prints to."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            worker(path, write, late)
        finally:
            os._exit(1)
    os.close(write)
    return child, read


def stop(child, read):
    """Kill -9, and what the worker had printed by then."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        return [tuple(line.split(" ", 1)) for line in pipe.read().decode().splitlines()]


def kills(path, count, seed, late=False):
    """Two workers share the ledger; one is killed at a random moment and another takes its place. What was found."""
    FileLedger(path, Budget.zcdp(1e6))
    rng, crew = random.Random(seed), [start(path, late), start(path, late)]
    tally = Counter(kills=0, releases=0, under_reports=0, corrupt=0, interrupted_runs=0)
    for i in range(count):
        time.sleep(rng.uniform(0.02, 0.3))
        printed = stop(*crew[i % 2])
        tally["kills"] += 1
        tally["releases"] += len(printed)
        tally.update(check(path, printed))
        crew[i % 2] = start(path, late)
    for pair in crew:
        stop(*pair)
    tally["interrupted_runs"] = sum(run.state == "open" for run in FileLedger(path).runs())
    return dict(tally)


def check(path, printed):
    try:
        FileLedger(path).verify()
    except BudgetError:
        return {"corrupt": 1}
    runs = {run.id: Counter(entry.purpose for _, entry in run.entries) for run in FileLedger(path).runs()}
    return {"under_reports": int(any(not runs.get(run, Counter())[purpose] for run, purpose in printed))}


def contender(path, rho, start, out):
    os.read(start, 1)  # all wake at once
    try:
        fit(path, rho)
        os.write(out, b"admitted\n")
    except BudgetError:
        os.write(out, b"refused\n")


def race(path, processes):
    """Processes race for the last tenth of a cap, which has room for two of them."""
    ledger = FileLedger(path, Budget.zcdp(1.0))
    ledger.reserve(Plan((Line("before", "earlier runs", 1.0, ""),)).calibrate(Budget.zcdp(0.9)))
    start_read, start_write = os.pipe()
    out_read, out_write = os.pipe()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            try:
                contender(path, 0.04, start_read, out_write)
            finally:
                os._exit(0)
        children.append(child)
    os.close(out_write)
    os.write(start_write, b"x" * processes)
    for child in children:
        os.waitpid(child, 0)
    with os.fdopen(out_read, "rb") as pipe:
        outcome = Counter(pipe.read().decode().split())
    os.close(start_read)
    os.close(start_write)
    spent = FileLedger(path).rho
    return {"admitted": outcome["admitted"], "refused": outcome["refused"], "rho": spent, "over": spent > 1.0 + 1e-9}


def attempt(ledger):
    """A fit with its part of a cap that has room for one; whether it was admitted."""
    try:
        PrivateSIR(epsilon=1.0, bounds=Bounds(-1, 1), method="descent", ledger=ledger).fit(X, Y)
    except BudgetError:
        return False
    return True


def contest(ledger, workers, backend):
    """Workers of joblib want the same cap; how many were admitted, the cost, and whether the guarantee is true."""
    admitted = sum(Parallel(n_jobs=workers, backend=backend)(delayed(attempt)(ledger) for _ in range(workers)))
    whole = FileLedger(ledger) if isinstance(ledger, Path) else ledger
    true = whole.total() <= 1.2 and whole.budget.describe() in whole.guarantee and not whole.guarantee.startswith("No")
    return {"admitted": admitted, "total": whole.total(), "over": whole.total() > 1.2, "false": not true}


def contests(folder, rounds):
    """Four threads on a ledger in memory; eight processes of joblib on a file; eight on copies of one in memory."""
    cap = Budget.approximate(1.2, 1e-6)
    found = {}
    for name, workers, backend in (("threads, in memory", 4, "threading"), ("joblib, a file", 8, "loky")):
        told = []
        for i in range(rounds):
            ledger = Ledger(cap, "replace") if backend == "threading" else FileLedger(folder / f"{name}{i}", cap).path
            told.append(contest(ledger, workers, backend))
        found[name] = tally(told)
    told = [contest(Ledger(cap, "replace"), 8, "loky") for _ in range(rounds)]
    found["joblib, copies of a ledger in memory"] = tally(told)
    return found


def tally(told):
    return {
        "rounds": len(told),
        "admitted": dict(Counter(str(each["admitted"]) for each in told)),
        "over_the_cap": sum(each["over"] for each in told),
        "false_sentences": sum(each["false"] for each in told),
        "largest_total": max((each["total"] for each in told), default=0.0),
    }


def study(folder, count, rounds, processes, together):
    races = [race(folder / f"race{i}.jsonl", processes) for i in range(rounds)]
    return {
        "contests": contests(folder, together),
        "kills": kills(folder / "kills.jsonl", count, seed=1),
        "control": kills(folder / "control.jsonl", count, seed=1, late=True),
        "races": {
            "rounds": rounds,
            "processes": processes,
            "admitted": [r["admitted"] for r in races],
            "answered": all(r["admitted"] + r["refused"] == processes for r in races),
            "over_the_cap": sum(r["over"] for r in races),
            "largest_rho": max((r["rho"] for r in races), default=0.0),
        },
    }


def page(result, command, seconds):
    rows = [f"| {name} | {' | '.join(str(v) for v in result[name].values())} |" for name in ("kills", "control")]
    races = result["races"]
    return "\n".join(
        [
            "# Kill -9 and races on a shared ledger",
            "",
            f"`{command}`, {seconds:.0f} s, Python {platform.python_version()}, {os.cpu_count()} cores.",
            "",
            f"| ledger written | {' | '.join(result['kills'])} |",
            "|---|" + "---|" * len(result["kills"]),
            rows[0].replace("| kills |", "| before the noise (sfumato) |"),
            rows[1].replace("| control |", "| after the noise (control, must be caught) |"),
            "",
            f"{races['processes']} processes, {races['rounds']} rounds, for the last 10 % of a cap (room for 2): "
            f"{races['over_the_cap']} rounds over the cap, largest rho {races['largest_rho']:.9f} of 1, "
            f"admitted per round {dict(Counter(races['admitted']))}.",
            "",
            "Fits at epsilon = 1 that want a cap of 1.2 at the same time (room for one):",
            "",
            "| who | rounds | admitted: rounds | over the cap | false sentences | largest total |",
            "|---|---|---|---|---|---|",
            *(
                f"| {name} | {t['rounds']} | {t['admitted']} | {t['over_the_cap']} | {t['false_sentences']} "
                f"| {t['largest_total']:.4f} |"
                for name, t in result["contests"].items()
            ),
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--contests", type=int, default=100)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    fit(None, 1.0)  # everything is imported before the first fork
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = study(Path(folder), given.kills, given.rounds, given.processes, given.contests)
    if given.out is not None:
        given.out.write_text(page(result, "python " + " ".join(sys.argv), time.monotonic() - began))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
