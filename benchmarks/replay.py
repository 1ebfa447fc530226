"""Replay every private fit on hostile neighbours. Writes benchmarks/results/replay.md.

    nice -n 10 python benchmarks/replay.py --pairs 200

Rows are kept in build/replay.json as they are made: run it again to go on after an interruption. Where there is no time
for all of it, ``--quick 24`` makes the rows that are missing with fewer pairs; run it again without to make them whole.
"""

import argparse
import platform
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from benchmarks.store import Store
from benchmarks.study import commit
from sfumato.audit.controls import broken_fits
from sfumato.audit.replays import Row, replay_markdown, runs

RESULTS = Path(__file__).parent / "results"
KEPT = Path(__file__).parents[1] / "build" / "replay.json"


def row_of(run, store, pairs, quick):
    """The row that is kept, or made, and its commit: of so many pairs, or of fewer if it must be quick."""

    def key(count):
        return f"{count} pairs, {run.name}, {run.relation}, {run.way}"

    count = pairs if quick is None or key(pairs) in store else quick
    kept = store.get(key(count), lambda: {"row": asdict(run.row(count, 0)), "commit": commit()})
    return Row(**kept["row"]), kept["commit"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--quick", type=int, help="Pairs of rows that are not there yet, if not as many.")
    parser.add_argument("--seconds", type=float, default=1e9, help="Processor time to spend at most.")
    options = parser.parse_args()
    KEPT.parent.mkdir(exist_ok=True)
    store = Store(KEPT, options.seconds)
    rows, commits = zip(*(row_of(run, store, options.pairs, options.quick) for run in runs()), strict=True)
    made = ", ".join(f"{count} rows at {where}" for where, count in Counter(commits).most_common())
    caught = {control.name: control.caught() for control in broken_fits()}
    passed = sum(row.passed for row in rows)
    head = [
        "# Replay",
        "",
        f"`python {' '.join(sys.argv)}`, Python {platform.python_version()}: {made}.",
        "",
        f"**{passed} of {len(rows)} rows show nothing but their releases, on {sum(row.pairs for row in rows)} pairs of "
        f"neighbours; {sum(caught.values())} of {len(caught)} controls caught.**",
        "",
        "Fit D, then its neighbour with the releases of D; half of the pairs with forged releases. *questions*: the "
        "most that a fit asked. *moved*: the largest part of its stated sensitivity that a sum moved. *raised*: pairs "
        "on which both fits ended with the same error: forged releases, or public features that do not vary.",
        "",
    ]
    controls = ["", "## Controls", "", "| broken promise | caught |", "|---|---|"]
    controls += [f"| {name} | {'yes' if seen else '**no**'} |" for name, seen in caught.items()]
    text = "\n".join([*head, replay_markdown(rows), *controls, ""])
    (RESULTS / "replay.md").write_text(text, encoding="utf-8")
    print(head[4])


if __name__ == "__main__":
    began = time.process_time()
    main()
    print(f"{time.process_time() - began:.0f} seconds of processor time")
