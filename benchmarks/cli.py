"""What the command line adds to the library: `sfumato fit` on 1,000,000 x 20 Parquet, and when progress is seen.

    python -m benchmarks.cli

Both in fresh processes, in turn; wall time from start to end. Writes benchmarks/results/cli.md.
"""

import argparse
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.study import write

LIBRARY = """
from sfumato import PrivateSIR, scan
PrivateSIR(epsilon=1.0, delta=1e-6, picture=True).fit(scan("big.parquet", response="y"))
"""


def table(folder: Path, n: int = 1_000_000, p: int = 20) -> None:
    """Features of different scales, a response of one direction."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, p)) * np.logspace(-2, 3, p)
    y = x[:, 0] / 0.01 + rng.normal(size=n)
    pq.write_table(
        pa.table({f"x{j}": x[:, j] for j in range(p)} | {"y": y}), folder / "big.parquet", row_group_size=2**17
    )


def seconds(command: list[str], folder: Path) -> float:
    """Wall time of a process."""
    began = time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def first_sign(command: list[str], folder: Path) -> float:
    """Seconds until something is seen on a terminal; the run is then stopped."""
    ours, theirs = pty.openpty()
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs)
    try:
        seen = ""
        while "loading" not in seen:
            if select.select([ours], [], [], 30)[0]:
                seen += os.read(ours, 4096).decode(errors="replace")
        return time.monotonic() - began
    finally:
        process.terminate()
        process.wait()
        os.close(theirs)
        os.close(ours)


def main(runs: int) -> None:
    """The fastest of `runs` turns."""
    program = str(Path(sys.executable).parent / "sfumato")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table(folder)
        fit = [program, "fit", "big.parquet", "-y", "y", "--epsilon", "1", "--delta", "1e-6"]
        kinds = {
            "library: `fit(scan(...))`": [sys.executable, "-c", LIBRARY],
            "`sfumato fit`": fit,
            "`sfumato fit --out`, with report and model": [*fit, "--out", "result"],
        }
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(runs):
            for kind, command in kinds.items():
                times[kind].append(seconds(command, folder))
        signs = [first_sign(fit, folder) for _ in range(runs)]
    base = min(times["library: `fit(scan(...))`"])
    rows = [(kind, f"{(m := min(each)):.2f} s", f"{m - base:+.2f} s") for kind, each in times.items()]
    rows.append(("first sign of progress", f"{min(signs):.2f} s", ""))
    intro = (
        "Command line over library\n1,000,000 x 20 Parquet, bounds found privately, picture included; wall time of a "
        f"fresh process, the fastest of {runs} turns: loading libraries varies by more than the difference."
    )
    write("cli", f"python -m benchmarks.cli --runs {runs}", intro, ("what", "time", "over the library"), rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    main(parser.parse_args().runs)
