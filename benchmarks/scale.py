"""How far it goes: time, memory and bytes sent against rows, features and workers.

Times are CPU seconds of all threads, which other work on the machine disturbs least; ratios are taken in one run.
``--replications`` is the largest table in units of 10,000 rows: 100 is a million, 20,000 the two hundred million of a
cluster.
"""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.speed import table, write_parquet
from benchmarks.study import write
from sfumato import Bounds, PrivateSIR, scan

P = 30
MEMORY = ("700MB", "4GB")
FRESH = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
from sfumato import Bounds, PrivateSIR, scan
source = scan(sys.argv[1], response="y", memory=sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
PrivateSIR(bounds=Bounds(-5, 5), n_directions=1, random_state=1).fit(source)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu": time.process_time() - start, "peak": peak // 1024, "grown": (peak - before) // 1024}))
"""
FLOOR = """
import sys, time, numpy as np
from sfumato import scan
source, w, start = scan(sys.argv[1], response="y", memory=0), None, time.process_time()
for part in source.parts():
    for records in source.read(part):
        w = np.eye(records.x.shape[1]) if w is None else w
        records.x.T @ records.x, records.x @ w
print(time.process_time() - start)
"""


def fresh(code: str, *arguments: object) -> str:
    """What a process of its own prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def by_rows(folder: Path, largest: int) -> list[tuple[object, ...]]:
    """Files of more and more rows, each fitted by a process of its own."""
    rows = []
    for n in (largest // 16, largest // 4, largest):
        path = folder / f"{n}.parquet"
        write_parquet(path, n, P)
        floor = float(fresh(FLOOR, path))
        for memory in MEMORY:
            done = json.loads(fresh(FRESH, path, memory))
            ratio = f"{done['cpu'] / floor:.1f} x"
            rows.append(
                (f"{n:,} x {P}", memory, f"{floor:.2f} s", f"{done['cpu']:.2f} s", ratio, f"{done['peak']} MiB")
            )
    return rows


def by_features() -> list[tuple[object, ...]]:
    """Wider and wider tables in memory, against the two products that no method can do without."""
    rows = []
    for p in (30, 100, 300, 1000):
        n = 20_000
        x, y = table(n, p)
        w = np.eye(p)
        start = time.process_time()
        _ = x.T @ x, x @ w
        floor = time.process_time() - start
        start = time.process_time()
        PrivateSIR(bounds=Bounds(-5, 5), n_directions=1, random_state=1).fit(x, y)
        done = time.process_time() - start
        rows.append((f"{n:,} x {p}", f"{floor:.2f} s", f"{done:.2f} s", f"{done / floor:.1f} x"))
    return rows


def by_workers(path: Path, n: int) -> list[tuple[object, ...]]:
    """The same file by this process and by one and two workers of a cluster; what is sent is counted, not sampled."""
    from sfumato.settings.dask import DaskAdder, local_cluster
    from sfumato.statistics.wire import dump_json, encode
    from sfumato.sums import BoundedSum
    from sfumato.typing import IntArray

    estimator = PrivateSIR(bounds=Bounds(-5, 5), n_directions=1, random_state=1)
    start = time.perf_counter()
    alone = estimator.fit(scan(path, response="y")).directions_
    rows: list[tuple[object, ...]] = [
        (f"{n:,} x {P}", "this process", f"{time.perf_counter() - start:.1f} s", "-", "-")
    ]
    asked: list[int] = []
    answered: list[int] = []
    add = DaskAdder.sum

    def counted(self: DaskAdder, query: BoundedSum) -> IntArray:
        asked.append(len(dump_json(encode(query))))
        answered.append(8 * int(np.prod(query.shape)))
        return add(self, query)

    DaskAdder.sum = counted  # type: ignore[method-assign]
    for workers in (1, 2):
        asked.clear()
        answered.clear()
        with local_cluster(workers) as client:
            start = time.perf_counter()
            together = estimator.fit(scan(path, response="y", cluster=client)).directions_
            took = time.perf_counter() - start
        assert np.array_equal(alone, together)
        sent = (f"{workers * sum(sizes) / 1e3:,.0f} kB" for sizes in (asked, answered))
        rows.append((f"{n:,} x {P}", f"{workers} worker{'s' * (workers > 1)}", f"{took:.1f} s", *sent))
    DaskAdder.sum = add  # type: ignore[method-assign]
    return rows


def main(replications: int) -> None:
    """All curves; the largest table has ``replications`` times 10,000 rows."""
    warnings.simplefilter("ignore")
    largest, command = 10_000 * replications, f"python -m benchmarks scale --replications {replications}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(
            "scale-rows",
            command,
            "Rows\nCPU seconds, PrivateSIR with bounds given, from Parquet. 'Floor' is decoding the file once and "
            "taking X.T @ X and X @ W of each chunk; 'memory' is what the process may take, about; the peak is that "
            "of a fresh process, libraries included.",
            ("table", "memory", "floor", "fit", "ratio", "peak"),
            by_rows(folder, largest),
        )
        write(
            "scale-workers",
            command,
            "Workers\nWall seconds on two cores. Questions go to each worker once for each release, and one sum comes "
            "back from each: their sizes do not depend on the number of rows. The directions are the same to the bit.",
            ("table", "added by", "fit", "questions", "sums"),
            by_workers(folder / f"{largest}.parquet", largest),
        )
    write(
        "scale-features",
        command,
        "Features\nCPU seconds in memory; 'products' is one X.T @ X plus one X @ W.",
        ("table", "products", "fit", "ratio"),
        by_features(),
    )


if __name__ == "__main__":
    main(100)
