"""The peers page: what others do, and the same samples through their software and ours.

    DIFFPRIVLIB_PYTHON=... SLICED_PYTHON=... python -m benchmarks peers

writes docs/peers.md from peers_template.md. diffprivlib needs scikit-learn < 1.9 and sliced needs numpy < 1.24, so each
has an interpreter of its own: `pip install diffprivlib 'scikit-learn<1.9' opendp` and
`pip install sliced six 'numpy<1.24' 'scikit-learn<1.4'`.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.store import Store
from benchmarks.study import RESULTS, Mean, commit, mean
from sfumato import SAVE, SIR, Bounds, PrivateSIR, subspace_distance
from sfumato.simulate import xia

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "peers.md"
SETTINGS = (("M1", 20_000, 15), ("M2", 20_000, 15), ("M3", 30_000, 10), ("M4", 30_000, 10))
DIRECTIONS = {"M1": 1, "M2": 1, "M3": 2, "M4": 2}
INTERPRETERS = {
    "diffprivlib-regression": "DIFFPRIVLIB_PYTHON",
    "sliced-sir": "SLICED_PYTHON",
    "statsmodels-sir": "",
}
Outcome = dict[str, tuple[list[float], list[float]]]
"""By peer: distances and seconds, one per sample; no entry if it gave no answer."""


def measure(model: str, n: int, p: int, replications: int) -> Outcome:
    """The same samples through every program; total epsilon 1 for the private ones."""
    k, found = DIRECTIONS[model], {}
    samples = [xia(model, n=n, p=p, random_state=seed) for seed in range(replications)]
    truth = [sample.directions for sample in samples]
    private = PrivateSIR(epsilon=1.0, delta=n**-1.1, n_directions=k, bounds=Bounds(-1.5, 1.5))
    found["sfumato"] = _ours(private, samples)
    found["sfumato-sir"] = _ours(SIR(n_directions=k, n_slices=20), samples)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, sample in enumerate(samples):
            reach = np.quantile(sample.y, [0.001, 0.999])  # a gift: nobody could know it
            np.savez(
                folder / f"{i:03}.npz", x=sample.x, y=sample.y, k=k, epsilon=1.0, lower=-1.5, upper=1.5, range=reach
            )
        for peer in ("diffprivlib-regression", "sliced-sir", "statsmodels-sir"):
            answer = run(peer, folder, 600)
            if answer is None or (k > 1 and peer.endswith("regression")):
                continue
            rows = [answer[key] for key in sorted(answer)]
            distances = [subspace_distance(_rows(row), b) for row, b in zip(rows, truth, strict=True)]
            found[peer] = distances, [float(row["seconds"]) for row in rows]
    return found


def _ours(estimator, samples) -> tuple[list[float], list[float]]:
    distances, seconds = [], []
    for sample in samples:
        began = time.process_time()
        fitted = estimator.fit(sample.x, sample.y)
        seconds.append(time.process_time() - began)
        distances.append(subspace_distance(fitted.directions_, sample.directions))
    return distances, seconds


def _rows(row: Mapping) -> np.ndarray:
    q, _ = np.linalg.qr(np.asarray(row["directions"]).T)
    return q.T


def run(peer: str, folder: Path, seconds: float) -> dict | None:
    """What a peer answers for the samples of a folder; None without an interpreter, or if it takes too long."""
    variable = INTERPRETERS[peer]
    python = os.environ.get(variable) if variable else sys.executable
    if python is None:
        return None
    script = Path(__file__).with_name("peers_run.py")
    try:
        subprocess.run([python, str(script), peer, str(folder)], check=True, timeout=seconds, stdin=subprocess.DEVNULL)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(peer, type(error).__name__)
        return None
    return dict(json.loads((folder / f"{peer}.json").read_text()))


def components() -> str:
    """The privacy libraries' principal components, as measured by benchmarks/peers_pca.py."""
    text = (RESULTS / "gep.md").read_text(encoding="utf-8").partition("## Peers")[2]
    return "\n".join(line for line in text.splitlines() if line.startswith("|"))


def agreement() -> str:
    """The largest difference of an eigenvalue from R's dr, over the calls in tests/golden."""
    golden = ROOT / "tests" / "golden"
    reference = json.loads((golden / "dr_reference.json").read_text())
    worst = 0.0
    for case, expected in reference.items():
        if case.endswith("raw4"):
            continue
        table = np.loadtxt(golden / f"{case.split('_')[0].replace('ais', 'athletes')}.csv", delimiter=",", skiprows=1)
        method = SIR if "_sir" in case else SAVE
        fitted = method(n_slices=expected["nslices"]).fit(table[:, :-1], table[:, -1])
        gap = np.abs(fitted.eigenvalues_ - expected["evalues"][: len(fitted.eigenvalues_)]).max()
        worst = max(worst, float(gap))
    return f"{worst:.0e}"


def printed(model: str, n: int, p: int) -> str:
    """DP-SIR of Xia, Zhang and Cai, as printed."""
    with (ROOT / "src" / "sfumato" / "research" / "xia_tables.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if (row["table"], row["model"], row["n"], row["p"], row["method"]) == (
                "1",
                model,
                str(n),
                str(p),
                "DP-SIR",
            ):
                return f"{float(row['distance']):.3f}"
    return ""


def main(replications: int) -> None:
    """Every program on the same samples; what is stored is not measured again."""
    known = Store(RESULTS / "peers.json", float(os.environ.get("PEERS_SECONDS", "inf")))
    measured = {
        setting: known.get(" ".join(map(str, setting)), measure, *setting, replications) for setting in SETTINGS
    }
    PAGE.write_text(page(measured, replications), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


def page(measured: Mapping[tuple[str, int, int], Outcome], runs: int) -> str:
    """The whole page."""
    columns = ("sfumato", "diffprivlib-regression", "sfumato-sir", "sliced-sir", "statsmodels-sir")
    accuracy, speed = [], []
    for (model, size, p), found in measured.items():
        cells = [str(mean(found[name][0])) if name in found else "" for name in columns]
        accuracy.append(
            f"| {model} | {size:,} | {p} | {cells[0]} | {printed(model, size, p)} | {' | '.join(cells[1:])} |"
        )
        times = [_seconds(mean(found[name][1])) if name in found else "" for name in columns]
        speed.append(f"| {size:,} x {p} | {' | '.join(times)} |")
    template = Path(__file__).with_name("peers_template.md").read_text(encoding="utf-8")
    return template.format(
        accuracy="\n".join(accuracy),
        speed="\n".join(speed),
        pca=components(),
        agreement=agreement(),
        runs=runs,
        made=f"`DIFFPRIVLIB_PYTHON=... SLICED_PYTHON=... python -m benchmarks peers --replications {runs}`, {commit()}",
    )


def _seconds(value: Mean) -> str:
    return f"{value.mean:.3f}"
