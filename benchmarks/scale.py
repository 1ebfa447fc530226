"""How far it goes: time, memory and bytes sent against rows, features and workers.

Times are CPU seconds of all threads, which other work on the machine disturbs least; ratios are taken in one run.
``--replications`` is the largest table in units of 10,000 rows: 500 is the five million of `scale-rows` and
`scale-workers`, 20,000 the two hundred million of `scale-vast`.
"""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.speed import side_by_side, table, write_parquet
from benchmarks.study import write
from sfumato import Bounds, PrivateSIR, scan

P, FEW = 30, 4
GROUP = 1_000_000
"""Rows of a row group, as most programs write them: none is in memory whole."""
FRESH = """
import json, re, sys, time, warnings
warnings.simplefilter("ignore")
from sfumato import Bounds, PrivateSIR, scan
source = scan(sys.argv[1], response="y", memory=None if sys.argv[2] == "default" else sys.argv[2])
start, wall = time.process_time(), time.perf_counter()
PrivateSIR(bounds=Bounds(-5, 5), n_directions=1, random_state=1).fit(source)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])  # ru_maxrss has the parent's in it
cpu, wall = time.process_time() - start, time.perf_counter() - wall
print(json.dumps({"cpu": cpu, "wall": wall, "peak": 1024 * peak / 1e6}))
"""
FLOOR = """
import sys, time, numpy as np
from threadpoolctl import threadpool_limits
from sfumato import scan
threadpool_limits(1)
source, w, start = scan(sys.argv[1], response="y", memory=0), None, time.process_time()
for part in source.split(source.parts(), 1)[0]:
    for records in source.read(part):
        w = np.eye(records.x.shape[1]) if w is None else w
        records.x.T @ records.x, records.x @ w
print(time.process_time() - start)
"""


def fresh(code: str, *arguments: object) -> str:
    """What a process of its own prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def by_rows(folder: Path, sizes: Sequence[int], p: int, budgets: Sequence[str]) -> list[tuple[object, ...]]:
    """Files of more and more rows, each fitted by a process of its own."""
    rows = []
    for n in sizes:
        path = folder / f"{n}.parquet"
        write_parquet(path, n, p, GROUP)
        floor = float(fresh(FLOOR, path))
        for memory in budgets:
            done = json.loads(fresh(FRESH, path, memory))
            took = (f"{done['cpu']:.1f} s", f"{done['cpu'] / floor:.1f} x", f"{done['wall']:.0f} s")
            rows.append((f"{n:,} x {p}", memory, f"{floor:.1f} s", *took, f"{done['peak']:.0f} MB"))
    return rows


def by_features() -> list[tuple[object, ...]]:
    """Wider and wider tables in memory, against the two products that no method can do without."""
    rows = []
    for p in (30, 100, 300, 1000, 2000):
        n = 20_000
        x, y = table(n, p)
        w = np.eye(p)
        with threadpool_limits(1):
            floor, done = side_by_side(
                lambda x=x, w=w: (x.T @ x, x @ w),
                lambda x=x, y=y: PrivateSIR(bounds=Bounds(-5, 5), n_directions=1, random_state=1).fit(x, y),
                rounds=1,
                clock=time.process_time,
            )
        rows.append((f"{n:,} x {p}", f"{floor:.2f} s", f"{done:.2f} s", f"{done / floor:.1f} x"))
    return rows


def by_workers(path: Path, n: int) -> list[tuple[object, ...]]:
    """The same file by this process and by one and two workers of a cluster; what is sent is counted, not sampled."""
    from sfumato.settings.dask import DaskAdder, local_cluster
    from sfumato.statistics.wire import dump_json, encode
    from sfumato.sums import BoundedSum
    from sfumato.typing import IntArray

    estimator = PrivateSIR(bounds=Bounds(-5, 5), n_directions=1, random_state=1)

    def timed(client: Any = None) -> tuple[np.ndarray, float, float]:
        """Directions, wall and CPU seconds of this process and of the workers."""
        clocks = [time.process_time] if client is None else [time.process_time, lambda: _spent(client)]
        start, before = time.perf_counter(), sum(clock() for clock in clocks)
        found = estimator.fit(scan(path, response="y", cluster=client)).directions_
        return found, time.perf_counter() - start, sum(clock() for clock in clocks) - before

    alone, wall, cpu = timed()
    rows: list[tuple[object, ...]] = [(f"{n:,} x {P}", "this process", f"{wall:.1f} s", f"{cpu:.1f} s", "-", "-")]
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
            together, *took = timed(client)
        assert np.array_equal(alone, together)
        sent = (f"{workers * sum(sizes) / 1e3:,.0f} kB" for sizes in (asked, answered))
        ratios = (f"{mine:.1f} s ({mine / base:.2f} x)" for mine, base in zip(took, (wall, cpu), strict=True))
        rows.append((f"{n:,} x {P}", f"{workers} worker{'s' * (workers > 1)}", *ratios, *sent))
    DaskAdder.sum = add  # type: ignore[method-assign]
    return rows


def _spent(client: Any) -> float:
    return sum(client.run(time.process_time).values())


ROWS = (
    "Rows\nCPU seconds, PrivateSIR with bounds given, from Parquet in row groups of a million rows. 'Floor' is "
    "decoding the file once and taking X.T @ X and X @ W of each chunk; 'memory' is what the process may take; the "
    "peak is that of a fresh process, libraries included, in the same units. 'default' keeps 512 MiB between passes. "
    "Wall seconds are of two cores."
)
COLUMNS = ("table", "memory", "floor", "fit", "ratio", "wall", "peak")


def vast(replications: int) -> None:
    """One table as large as they come, and a tenth of it, in the same memory."""
    n, command = 10_000 * replications, f"python -m benchmarks scale-vast --replications {replications}"
    with tempfile.TemporaryDirectory() as name:
        write("scale-vast", command, ROWS, COLUMNS, by_rows(Path(name), (n // 10, n), FEW, ("6GB",)))


def rows(replications: int) -> None:
    """Files of ``replications`` times 10,000 rows and of a tenth, in much memory, by default and in little."""
    n, command = 10_000 * replications, f"python -m benchmarks scale-rows --replications {replications}"
    with tempfile.TemporaryDirectory() as name:
        found = by_rows(Path(name), (n // 10, n), P, ("4GB", "default", "700MB"))
    write("scale-rows", command, ROWS, COLUMNS, found)


def workers(replications: int) -> None:
    """One file of ``replications`` times 10,000 rows, by this process and by a cluster on this machine."""
    warnings.simplefilter("ignore")
    n = 10_000 * replications
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"{n}.parquet"
        write_parquet(path, n, P, GROUP)
        found = by_workers(path, n)
    write(
        "scale-workers",
        f"python -m benchmarks scale-workers --replications {replications}",
        "Workers\nWall seconds, and CPU seconds of this process and the workers, on two cores. Questions go to each "
        "worker once for each release, and one sum comes back from each: their sizes do not depend on the number of "
        "rows. The directions are the same to the bit.",
        ("table", "added by", "wall", "CPU", "questions", "sums"),
        found,
    )


def features(replications: int) -> None:
    """Wider and wider tables; `replications` does not apply."""
    warnings.simplefilter("ignore")
    write(
        "scale-features",
        "python -m benchmarks scale-features",
        "Features\nCPU seconds in memory, one BLAS thread for each of ours; 'products' is one X.T @ X plus one X @ W.",
        ("table", "products", "fit", "ratio"),
        by_features(),
    )
