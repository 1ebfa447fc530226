"""Speed and memory as ratios measured side by side in one run, so that the machine cancels out."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from benchmarks.study import write
from sfumato import Bounds, PrivateSIR, scan
from sfumato.privacy.noise import SecureNoise, rounded_gaussian

SHAPES = ((1_000_000, 20), (200_000, 100))
RUNS = 5


def seconds(job: Callable[[], object], runs: int = RUNS, clock: Callable[[], float] = time.perf_counter) -> float:
    """Fastest of a few runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(runs):
        start = clock()
        job()
        times.append(clock() - start)
    return min(times)


def side_by_side(
    *jobs: Callable[[], object], rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Median time of each job, taken in turns: whatever slows the machine for a while slows them all.

    In each turn the fastest of three runs counts, so that all find their memory and their threads warm.
    """
    times = [[seconds(job, 3, clock) for job in jobs] for _ in range(rounds)]
    return [float(column) for column in np.median(times, axis=0)]


def table(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian features, a linear response."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, p))
    return x, x[:, 0] + 0.5 * rng.standard_normal(n)


def statsmodels_seconds(x: np.ndarray, y: np.ndarray) -> float:
    """Non-private SIR of statsmodels."""
    from statsmodels.regression.dimred import SlicedInverseReg

    return seconds(lambda: SlicedInverseReg(y, x).fit(slice_n=len(x) // 10), runs=2)


SLICED = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sliced import SlicedInverseRegression
x, y = np.load(sys.argv[1]), np.load(sys.argv[2])
times = []
for _ in range(2):
    start = time.perf_counter()
    SlicedInverseRegression(n_slices=10, n_directions=1).fit(x, y)
    times.append(time.perf_counter() - start)
print(min(times))
"""


def environment(home: Path, *wanted: str) -> Path:
    """The Python of an environment with some packages, made when it is first asked for."""
    if not home.exists():
        venv.create(home, with_pip=True)
        subprocess.run([home / "bin/python", "-m", "pip", "install", "-q", *wanted], check=True)
    return home / "bin/python"


def sliced_seconds(x: np.ndarray, y: np.ndarray, folder: Path) -> float:
    """Non-private SIR of `sliced` 0.7.0, in an environment of its own: it needs numpy < 1.24."""
    wanted = ("sliced==0.7.0", "numpy<1.24", "scipy<1.12", "scikit-learn<1.3", "six")
    python = environment(folder / "sliced-venv", *wanted)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    command = [python, "-c", SLICED, folder / "x.npy", folder / "y.npy"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory_rows(folder: Path) -> list[tuple[object, ...]]:
    """Fit in memory: time against one ``X.T @ X`` plus one ``X @ W``, and against non-private peers."""
    rows: list[tuple[object, ...]] = []
    for n, p in SHAPES:
        x, y = table(n, p)
        w = np.random.default_rng(1).standard_normal((p, p))
        products, given, found = side_by_side(
            lambda x=x, w=w: (x.T @ x, x @ w),
            lambda x=x, y=y: PrivateSIR(bounds=Bounds(-5, 5), n_directions=1).fit(x, y),
            lambda x=x, y=y: PrivateSIR(n_directions=1).fit(x, y),
        )
        peers = statsmodels_seconds(x, y), sliced_seconds(x, y, folder)
        rows.append(
            (
                f"{n:,} x {p}",
                f"{products:.3f} s",
                f"{given:.2f} s ({given / products:.1f} x)",
                f"{found:.2f} s ({found / products:.1f} x)",
                *(f"{peer:.2f} s ({given / peer:.2f} x)" for peer in peers),
            )
        )
    return rows


def write_parquet(path: Path, n: int, p: int, group: int = 100_000) -> None:
    """A table written one row group after the other, so that the writer's memory does not grow either."""
    names = [f"x{j}" for j in range(p)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, group):
            rng = np.random.default_rng(start)
            x = rng.standard_normal((min(group, n - start), p))
            columns = [pa.array(x[:, j]) for j in range(p)]
            writer.write_table(pa.table([*columns, pa.array(x[:, 0] + rng.standard_normal(len(x)))], schema=schema))


def decode_and_products(path: Path, p: int) -> None:
    """Read every row group and take the two products, on as many threads as the fit uses."""
    from concurrent.futures import ThreadPoolExecutor

    source = scan(path, response="y")
    w = np.eye(p)

    def lane(parts: Sequence[object]) -> None:
        for part in parts:
            for records in source.read(part):
                _ = records.x.T @ records.x, records.x @ w

    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        list(pool.map(lane, source.split(source.parts(), 2)))


def parquet_rows(folder: Path) -> list[tuple[object, ...]]:
    """Fit from a file: time per pass against decoding plus products, and peak memory as rows grow tenfold."""
    rows: list[tuple[object, ...]] = []
    for n in (300_000, 3_000_000):
        path = folder / f"{n}.parquet"
        write_parquet(path, n, 20)
        floor = seconds(lambda path=path: decode_and_products(path, 20), runs=2)
        model = PrivateSIR(bounds=Bounds(-5, 5), n_directions=1)
        fit = seconds(lambda path=path, model=model: model.fit(scan(path, response="y")), runs=2)
        passes = len(model.ledger_) + 1  # and the check of the domain
        rows.append(
            (f"{n:,} x 20", f"{floor:.2f} s", passes, f"{fit:.2f} s", f"{fit / passes / floor:.2f} x", peak(path))
        )
    return rows


def peak(path: Path) -> str:
    """Peak memory of a fresh process that fits from the file."""
    code = (
        "import sys, resource; from sfumato import *;"
        "PrivateSIR(bounds=Bounds(-5, 5), n_directions=1).fit(scan(sys.argv[1], response='y'));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True)
    return f"{done.stdout.strip()} MiB"


IMPORT = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
exec(sys.argv[1])
print(time.perf_counter() - wall, time.process_time() - cpu, "pandas" in sys.modules)
"""
NEEDED, OURS = "import sklearn.base", "from sfumato import PrivateSIR"


def import_rows(python: Path, replications: int) -> list[tuple[object, ...]]:
    """Fresh processes in turn: what scikit-learn's base class takes by itself, and the estimator with it."""
    quiet = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    found: dict[str, list[tuple[float, float]]] = {NEEDED: [], OURS: []}
    pandas = ""
    for _ in range(replications + 1):
        for line, times in found.items():
            command = [python, "-c", IMPORT, line]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=quiet, cwd=python.parent)
            wall, cpu, pandas = done.stdout.split()
            times.append((float(wall), float(cpu)))
    needed, ours = (np.median(times[1:], axis=0) for times in found.values())  # the first run compiles
    label = "with pandas" if pandas == "True" else "pip install sfumato"
    return [(label, *(f"{a:.2f} s" for a in (*needed, *ours)), f"{ours[1] / needed[1]:.2f} x")]


def imports(replications: int) -> None:
    """How long the import takes in an environment of nothing else, and in one where scikit-learn finds pandas."""
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(here, folder / "sfumato", ignore=shutil.ignore_patterns(".*", "results", "tests"))
        plain = environment(folder / "plain", str(folder / "sfumato"))
        rows = import_rows(plain, replications)
        full = environment(folder / "full", str(folder / "sfumato"), "pandas")
        rows += import_rows(full, replications)
    write(
        "speed-import",
        f"python -m benchmarks speed-import --replications {replications}",
        "Import\nMedian over fresh processes, in turn, of `import sklearn.base` and of `from sfumato import "
        "PrivateSIR`, which needs it; the ratio is of CPU seconds. scikit-learn imports pandas where it is installed.",
        ("environment", "sklearn.base, wall", "CPU", "PrivateSIR, wall", "CPU", "ratio"),
        rows,
    )


def main(replications: int) -> None:
    """All speed figures; `replications` does not apply."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(
            "speed-memory",
            "python -m benchmarks speed",
            "Fit in memory\n'Products' is one X.T @ X plus one X @ W "
            "on the same array; in brackets the ratio to it, and for the peers (non-private SIR, 10 slices) the ratio "
            "of our fit with bounds given to theirs.",
            ("table", "products", "sfumato, bounds given", "sfumato, bounds=None", "statsmodels", "sliced 0.7.0"),
            memory_rows(folder),
        )
        write(
            "speed-parquet",
            "python -m benchmarks speed",
            "Fit from Parquet\n'Floor' is decoding the file once and taking the two products on each chunk, two "
            "threads; the ratio is fit time / passes / floor. Peak memory is that of a fresh process.",
            ("table", "floor", "passes", "fit", "ratio per pass", "peak memory"),
            parquet_rows(folder),
        )
    noise = seconds(lambda: rounded_gaussian(SecureNoise(), 2**29, 500_000))
    write(
        "speed-noise",
        "python -m benchmarks speed",
        "Noise\nexact rounded Gaussian from the operating system's entropy.",
        ("values", "time"),
        [("500,000", f"{noise:.3f} s")],
    )
