"""Does the time of a fit tell anything about the records? Writes benchmarks/results/timing.md.

    python benchmarks/timing.py --fits 300

Tables of the same size and very different values are fitted in turn, in random order; processor time, so that other
programs disturb less. One record of 10,000 differs between "ordinary" and its neighbours; all in the other rows.
"""

import argparse
import platform
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

from sfumato import Bounds, PrivateSIR

OUT = Path(__file__).parent / "results" / "timing.md"


def tables(n=10_000, p=10):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (n, p)), rng.standard_normal(n)

    def changed(value):
        other = x.copy()
        other[7] = value
        return other, y

    return {
        "ordinary": (x, y),
        "one record at 1e300": changed(1e300),
        "one record of denormals (5e-324)": changed(5e-324),
        "one record at zero": changed(0.0),
        "all at zero": (np.zeros((n, p)), np.zeros(n)),
        "half of all values at zero": (x * (rng.random(x.shape) < 0.5), y),
        "all outside the bounds": (1e6 * x, 1e6 * y),
        "all denormals": (np.full((n, p), 5e-324), np.full(n, 5e-324)),
        "all equal": (np.full((n, p), 0.3), np.full(n, 0.3)),
    }


def seconds(x, y):
    began = time.process_time()
    PrivateSIR(bounds=Bounds(-1, 1)).fit(x, y)
    return time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=300)
    count = parser.parse_args().fits
    data, rng = tables(), np.random.default_rng(1)
    names = list(data)
    times = {name: [] for name in names}
    for name in names:
        seconds(*data[name])
    for _ in range(count):
        for name in rng.permutation(names):
            times[name].append(seconds(*data[name]))
    lines = ["| table | median ms | against ordinary | p (Mann-Whitney) |", "|---|---|---|---|"]
    base = np.median(times["ordinary"])
    for name in names:
        p = mannwhitneyu(times[name], times["ordinary"]).pvalue
        ratio = np.median(times[name]) / base
        lines.append(f"| {name} | {1e3 * np.median(times[name]):.2f} | {100 * (ratio - 1):+.1f} % | {p:.2g} |")
    head = f"`python {' '.join(sys.argv)}`, Python {platform.python_version()}; 10,000 x 10 records, {count} fits each."
    OUT.write_text("\n".join(["# Time of a fit and the values of records", "", head, "", *lines, ""]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
