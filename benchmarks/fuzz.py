"""Hostile input for every entry point; writes benchmarks/results/fuzz.md.

    python -m benchmarks.fuzz --cases 10000

A case is accepted, or refused with a `SfumatoError` in one line; anything else (another exception, more than 20 s of
processor time) is a finding, printed with its number so that it can be repeated (`--only arrays --first 1234`).
Tallies are kept in fuzz.json by entry point, in pieces, and a second call with --keep goes on.
"""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks import fuzz_entries, fuzz_files, fuzz_wire
from sfumato import SfumatoError

RESULTS = Path(__file__).parent / "results"
ENTRIES = fuzz_entries.ENTRIES | fuzz_wire.ENTRIES
ENOUGH = 10_000
PIECE = 500


def attempt(entry, number, folder):
    """What became of a case: accepted, refused, or what was found."""
    rng = np.random.default_rng([number, sum(entry.encode())])
    signal.setitimer(signal.ITIMER_PROF, 20)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ENTRIES[entry](rng, folder)
        return "accepted"
    except SfumatoError as error:
        return "refused" if "\n" not in str(error) else "FOUND a message of several lines"
    except TimeoutError:
        return "FOUND more than 20 s"
    except Exception as error:
        return f"FOUND {type(error).__name__}: {str(error)[:80]!r}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def overdue(number, frame):
    raise TimeoutError


def run(entry, first, cases, folder):
    """Tally of an entry point, and what was found."""
    began, tally, found = time.process_time(), Counter(), Counter()
    for number in range(first, first + cases):
        outcome = attempt(entry, number, folder)
        tally[outcome.split()[0]] += 1
        if outcome.startswith("FOUND"):
            found[outcome] += 1
            if found[outcome] == 1:
                print(entry, number, outcome, file=sys.stderr, flush=True)
    counts = {"cases": cases, "accepted": tally["accepted"], "refused": tally["refused"], "found": tally["FOUND"]}
    return counts | {"seconds": time.process_time() - began, "what": dict(found)}


def kept_run(entry, cases, seconds, folder):
    """Go on where the last run of this entry point ended, in pieces, each saved."""
    store, began = RESULTS / "fuzz.json", time.process_time()
    while True:
        kept = json.loads(store.read_text()) if store.exists() else {}
        done = kept.get(entry, {"cases": 0, "accepted": 0, "refused": 0, "found": 0, "seconds": 0.0, "what": {}})
        if done["cases"] >= cases or time.process_time() - began > seconds:
            return done
        more = run(entry, done["cases"], min(PIECE, cases - done["cases"]), folder)
        total = {name: done[name] + more[name] for name in done if name != "what"}
        total["what"] = dict(Counter(done["what"]) + Counter(more["what"]))
        kept = (json.loads(store.read_text()) if store.exists() else {}) | {entry: total}
        store.write_text(json.dumps(kept, indent=1))
        (RESULTS / "fuzz.md").write_text(page(kept))


def row(entry, result):
    cells = [f"{result[name]}" for name in ("cases", "accepted", "refused", "found")]
    return f"| {entry} | {' | '.join(cells)} | {result['seconds']:.1f} |"


def page(kept):
    lines = ["| entry point | cases | accepted | refused | found | s |", "|---|---|---|---|---|---|"]
    lines += [row(entry, kept[entry]) for entry in ENTRIES if entry in kept]
    notes = [f"* {entry}: {count} x {what}" for entry, one in kept.items() for what, count in one["what"].items()]
    head = f"`python -m benchmarks.fuzz --cases {ENOUGH}`, Python {platform.python_version()}."
    about = "Accepted: the input was fine, or harmless. Refused: one sentence, nothing spent. Found: anything else."
    what = [f"* **{entry}**: {ENTRIES[entry].__doc__}" for entry in ENTRIES]
    tail = notes or ["No uncaught exception, no hang."]
    return "\n".join(["# Hostile input", "", head, "", about, "", *lines, "", *tail, "", *what, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=ENOUGH)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", choices=list(ENTRIES), action="append")
    parser.add_argument("--keep", action="store_true", help="write results/fuzz.json and fuzz.md, and go on from there")
    parser.add_argument("--seconds", type=float, default=1e9, help="with --keep: begin no piece after so long")
    given = parser.parse_args()
    signal.signal(signal.SIGPROF, overdue)
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        fuzz_files.seeds(folder)
        for entry in given.only or ENTRIES:
            if given.keep:
                result = kept_run(entry, given.cases, given.seconds, folder)
            else:
                result = run(entry, given.first, given.cases, folder)
            print(row(entry, result), flush=True)


if __name__ == "__main__":
    main()
