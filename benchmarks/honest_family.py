"""Whether what the other estimators say about their fits is true: false findings, errors, verdicts.

    python -m benchmarks.honest_family --replications 24 --data data

A fit sees a fresh sample of a population, with replacement. Cells that are done are kept in the file that ``--store``
names.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.honest import bounds_of, fits_of, shares_of, some_judged, table_of, within_errors
from benchmarks.store import Store
from benchmarks.study import RESULTS, write
from sfumato import Bounds, PrivateCCA, PrivateDR, PrivateLDA, PrivatePCA, PrivatePHD, PrivateSAVE

N, MOST = 10_000, 40_000
HUGE = 1e4
Table = tuple[np.ndarray, np.ndarray]


def synthetic() -> dict[str, np.ndarray]:
    """Correlated features, some of them skewed, and a response with a trend and a curvature."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(MOST, 6)) + 0.5 * rng.normal(size=(MOST, 1))
    x[:, 4:] = np.exp(0.4 * x[:, 4:])
    y = x[:, 0] + 0.7 * x[:, 1] ** 2 + 0.5 * rng.normal(size=MOST)
    return {"x": x, "y": y}


def awkward() -> dict[str, np.ndarray]:
    """Features as tables have them: mostly zeros, rare events, long tails, far from zero, few values.

    The response is mostly zero, too, and depends on a direction evenly.
    """
    rng = np.random.default_rng(1)
    x = np.column_stack(
        [
            rng.lognormal(0.0, 1.5, MOST) * (rng.random(MOST) < 0.2),
            rng.random(MOST) < 0.01,
            rng.exponential(1.0, MOST) ** 2,
            rng.normal(1e3, 1.0, MOST),
            rng.integers(0, 3, MOST),
            rng.standard_t(3, MOST),
            rng.poisson(0.05, MOST),
        ]
    ).astype(float)
    strength = np.abs(x[:, 3] - 1e3 + 0.5 * (x[:, 4] - 1.0))
    y = rng.exponential(1.0, MOST) * strength * (rng.random(MOST) < 0.6)
    return {"x": x, "y": y}


def real(data: Path) -> dict[str, np.ndarray]:
    """Houses of California."""
    x, y = table_of("california_housing", data)
    return {"x": x, "y": y}


def _classes(y: np.ndarray) -> np.ndarray:
    return np.digitize(y, np.quantile(y, [0.5, 0.8]))


KINDS: dict[str, Callable[..., object]] = {
    "SAVE": lambda **k: PrivateSAVE(n_directions=1, **k),
    "DR": lambda **k: PrivateDR(n_directions=1, **k),
    "PHD": lambda **k: PrivatePHD(n_directions=1, **k),
    "LDA": lambda **k: PrivateLDA(n_directions=1, classes=[0, 1, 2], **k),
    "PCA": lambda **k: PrivatePCA(n_directions=1, **k),
    "CCA": lambda **k: PrivateCCA(n_directions=1, **k),
}


def fitted(kind: str, table: dict[str, np.ndarray], rows: np.ndarray, seed: int, shuffled: bool = False, **budget):
    """The estimator of that kind on some rows; of CCA the second table is the last two features and y."""
    x, y = table["x"], table["y"]
    half = (np.abs(x - x.mean(axis=0)) / x.std(axis=0)).max()
    if kind == "PCA":
        x = (x - x.mean(axis=0)) / x.std(axis=0)  # public numbers of the study
        known = {"bounds": Bounds(-half, half)}
    elif kind == "CCA":
        second = np.column_stack([x[:, -2:], y])
        x = x[:, :-2]
        known = {"bounds": bounds_of(x, "wide"), "y_bounds": bounds_of(second, "wide")}
    else:
        known = {"bounds": bounds_of(x, "wide")}
    x = x[rows]
    told = {"LDA": _classes(y), "CCA": second if kind == "CCA" else None, "PCA": None}.get(kind, y)
    told = None if told is None else told[rows]
    rng = np.random.default_rng([seed, 7])
    if shuffled and kind == "PCA":  # of records that have no component
        x = rng.normal(size=x.shape)
    elif shuffled:
        told = rng.permutation(told)
    return KINDS[kind](**known, **(budget or {"epsilon": 1.0, "delta": 1e-6}), random_state=seed).fit(x, told)


def level(kind: str, table: dict[str, np.ndarray], n: int, seed: int) -> list[float]:
    """p-value and whether it is called reliable, where there is nothing to find."""
    rows = np.random.default_rng([seed, n]).integers(0, len(table["x"]), n)
    fit = fitted(kind, table, rows, seed, shuffled=True)
    return [float(fit._assessment.tested.p_values[0]), float(fit.verdict_.level == "reliable")]


def covered(
    kind: str, table: dict[str, np.ndarray], n: int, limit: np.ndarray, judged: bool, seed: int
) -> dict[str, object]:
    """The direction on a fresh sample, turned to the side of the limit; if judged its errors and the verdict, too."""
    rows = np.random.default_rng([seed, n]).integers(0, len(table["x"]), n)
    fit = fitted(kind, table, rows, seed)
    found = _turned(fit.directions_[0], limit)
    return found | {"e": fit.standard_errors_[0].tolist(), "level": fit.verdict_.level} if judged else found


def noisy(
    kind: str, table: dict[str, np.ndarray], n: int, limit: np.ndarray, judged: bool, seed: int
) -> dict[str, object]:
    """The direction on one and the same sample; if judged what privacy noise alone adds to it."""
    rows = np.random.default_rng([0, n]).integers(0, len(table["x"]), n)
    fit = fitted(kind, table, rows, seed)
    found = _turned(fit.directions_[0], limit)
    return found | {"e": fit.privacy_errors_[0].tolist()} if judged else found


def _turned(direction: np.ndarray, limit: np.ndarray) -> dict[str, object]:
    return {"d": (direction * (-1.0 if direction @ limit < 0 else 1.0)).tolist()}


def _false(store: Store, name: str, kind: str, table: dict[str, np.ndarray], seeds: range) -> list[str]:
    """Per cent of fits that announce a direction where there is none, and that call it reliable, by n."""
    cells = []
    for n in (1_000, 10_000):
        runs = fits_of(store, f"level/{name}/{kind}/{n}", partial(level, kind, table, n), seeds)
        p_values, reliable = np.array(runs).T
        cells.append(f"{100 * (p_values <= 0.01).mean():.0f}, {100 * reliable.mean():.0f}")
    return cells


def _covers(store: Store, name: str, kind: str, table: dict[str, np.ndarray], options: argparse.Namespace) -> list[str]:
    """Coverage about the mean and about the fit without noise; of the noise alone; verdicts."""
    limit = fitted(kind, table, np.arange(len(table["x"])), 0, rho=HUGE).directions_[0]
    runs, same = (
        some_judged(store, f"{part}/{name}/{kind}/{N}", partial(job, kind, table, N, limit), options)
        for part, job in (("coverage", covered), ("noisy", noisy))
    )
    cells = []
    for made, centre in ((runs, None), (runs, limit), (same, None)):
        value, error = np.array([[run["d"]] for run in made]), np.array([[run["e"]] for run in made if "e" in run])
        about = value.mean(axis=0) if centre is None else np.array([centre])
        cells.append(shares_of(within_errors(value, error, about))[0])
    told = [run["level"] for run in runs if "e" in run]
    return [*cells, " / ".join(str(told.count(one)) for one in ("noise", "weak", "reliable"))]


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=24)
    parser.add_argument("--judged", type=int, default=8, help="Fits that are asked for errors and a verdict.")
    parser.add_argument("--data", type=Path, default=Path("data"), help="Folder with the real tables.")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--store", type=Path, default=RESULTS.parents[1] / "build" / "honest-family.json")
    options = parser.parse_args()
    store, seeds = Store(options.store, np.inf), range(options.replications)
    tables = {"synthetic": synthetic(), "awkward": awkward()}
    if (options.data / "california_housing.csv").exists():
        tables["california_housing"] = real(options.data)
    rows = []
    with threadpool_limits(1):
        for name, kind in product(tables, options.kinds):
            covers = _covers(store, name, kind, tables[name], options)
            print(kind, name, *covers, flush=True)
            rows.append((kind, name, *_false(store, name, kind, tables[name], seeds), *covers))
            print(rows[-1], flush=True)
    write(
        "honest-family",
        f"python -m benchmarks.honest_family --replications {options.replications} --judged {options.judged}",
        "What the other estimators say about their fits\n"
        "epsilon = 1, delta = 1e-6, one direction, generous bounds. Nothing to find (y or the second table shuffled; "
        f"PCA: features that are independent and alike), {options.replications} fits a cell: per cent that announce "
        f"a direction, and that call it reliable. Then, n = 10,000 and y as it is, {options.replications} fits on "
        f"fresh samples, of which {options.judged} are asked for their errors: part of the entries of `directions_`, "
        "of all fits, within two `standard_errors_`, of each that was asked, of the mean over all fits (worst "
        "feature), and of the fit without noise on the whole table; of fits on one and the same sample, within two "
        "`privacy_errors_` of their mean; verdicts (noise / weak / reliable).",
        ("estimator", "table", "nothing, n = 1,000", "n = 10,000", "mean", "limit", "noise alone", "verdicts"),
        rows,
    )


if __name__ == "__main__":
    main()
