"""Whether what a fit says about itself is true on tables that nobody had looked at before.

    python -m benchmarks.unseen --replications 8 --judged 3 --data .../statsmodels/datasets

With ``--directions`` it is which directions are called reliable, and whether they come out again, on these tables and
on those of `benchmarks.honest`.

A table is a population; a fit sees a fresh sample of it. Fits that are done are kept in the file that ``--store``
names. Any warning but the two about accuracy and rehearsals ends the study.
"""

import argparse
import time
import warnings
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import honest
from benchmarks.honest import ROWS, SEEDS, bounds_of, fits_of, scores_of, shares_of
from benchmarks.location import plain_directions, scores
from benchmarks.store import Store
from benchmarks.study import RESULTS, write
from benchmarks.unseen_tables import BUNDLED, CLASSES, MADE, SHIPPED, Table, unseen
from sfumato import PrivateSIR
from sfumato.errors import AccuracyWarning, PrivacyWarning
from sfumato.forecast.assessment import ALIKE
from sfumato.steps.dimension import LEVEL

SIZES = (10_000, 1_000)
FIRST_SEED = 500
"""Of shuffled responses."""
KEPT = 8_000
"""Records that models learn from."""
HALF = (
    "stay",
    "charges",
    "laboratory",
    "diabetes",
    "wine",
    "randhie",
    "star98",
    "M3",
    "california_housing",
    "kc_house",
)
HALF += ("winequality_white", "near copies", "zero-inflated", "heavy tails")
"""Tables on which the part of pairs that a reliable direction has to pass was chosen; the others were held out."""
OTHERS = ("M1", "M3", "flights", "california_housing", "ccpp", "kc_house", "compactiv", "winequality_white")
"""Tables of `benchmarks.honest`, beside its awkward ones."""


@cache
def table_of(name: str, data: Path, real: Path | None = None) -> Table:
    """The whole table."""
    return unseen(name, data) if real is None or name in (*MADE, *BUNDLED, *SHIPPED) else honest.table_of(name, real)


def fit(
    name: str,
    n: int,
    how: str,
    data: Path,
    seed: int,
    shuffled: bool = False,
    k: int | str = "",
    real: Path | None = None,
) -> PrivateSIR:
    """A fit on a fresh sample, y shuffled or as it is."""
    x, y = table_of(name, data, real)
    rows = np.random.default_rng([seed, n]).integers(0, len(x), n)
    labels = np.random.default_rng([seed, 1]).permutation(y[rows]) if shuffled else y[rows]
    classes = list(range(CLASSES[name])) if name in CLASSES else None
    k = k or ("auto" if shuffled else 1 if CLASSES.get(name) == 2 else 2)
    sir = PrivateSIR(1.0, 1e-6, k, bounds_of(x, how), classes=classes, random_state=seed)
    return sir.fit(x[rows], labels)


def told(name: str, n: int, how: str, data: Path, judged: bool, seed: int) -> dict[str, object]:
    """Loadings and scores, and of a fit that is judged what it says of itself."""
    start = time.process_time()
    sir = fit(name, n, how, data, seed)
    seen = {"l": sir.loadings_.tolist(), "s": scores_of(sir, table_of(name, data)[0])}
    found = seen | {"unseen": list(map(int, sir.unseen_features_))}
    if judged:
        found |= {"e": sir.loadings_errors_.tolist(), "level": sir.verdict_.level, "time": time.process_time() - start}
    return found


def null(name: str, n: int, how: str, data: Path, seed: int) -> list[float]:
    """p-value where y is shuffled, and whether the fit is called reliable."""
    sir = fit(name, n, how, data, seed, shuffled=True)
    p_value = float(sir.choice_.p_values[0])
    return [p_value, float(p_value <= LEVEL and sir.verdict_.level == "reliable")]


def summary(runs: list[dict[str, object]], nulls: np.ndarray) -> tuple[str, ...]:
    """A row of the table of results."""
    shown = np.array([run["s"] for run in runs]).transpose(1, 0, 2)
    alike = shown @ shown.transpose(0, 2, 1) / shown.shape[2]
    middle = [each[np.abs(each).sum(axis=1).argmax()] for each in alike]
    turned = np.array([run["l"] for run in runs]) * np.where(np.array(middle).T < 0, -1.0, 1.0)[..., None]
    judged = [i for i, run in enumerate(runs) if "e" in run]
    errors = np.array([runs[i]["e"] for i in judged])
    within = np.abs(turned[:, None] - turned.mean(axis=0)) <= 2.0 * errors
    others = ~np.eye(len(runs), dtype=bool)
    pairs = np.array([np.abs(alike[:, i]).min(axis=0)[others[i]] for i in judged if runs[i]["level"] == "reliable"])
    levels = [runs[i]["level"] for i in judged]
    return (
        f"{int((nulls[:, 0] <= LEVEL).sum())}, {int(nulls[:, 1].sum())}",
        *shares_of(within.reshape(-1, *turned.shape[1:])),
        " ".join(f"{np.median(np.abs(each)[others]):.2f}" for each in alike),
        " / ".join(str(levels.count(level)) for level in ("noise", "weak", "reliable")),
        f"{int((pairs < ALIKE).sum())} of {pairs.size}" if pairs.size else "-",
        f"{np.mean([runs[i]['time'] for i in judged]):.1f}",
        f"{np.mean([len(run['unseen']) for run in runs]):.1f}",
    )


def kept(name: str, n: int, how: str, data: Path, seed: int) -> list[float]:
    """Held-out R^2 of trees and of a linear model on two directions and on those of plain SIR; correlation of the first
    scores with plain ones.
    """
    x, y = table_of(name, data)
    rows = np.random.default_rng(5).permutation(len(x))
    train, test = rows[: min(n, 3 * len(x) // 4)], rows[-min(8_000, len(x) // 4) :]
    plain = (x - x.mean(axis=0)) @ plain_directions(x[train], y[train]).T
    sir = PrivateSIR(1.0, 1e-6, 2, bounds_of(x, how), random_state=seed).fit(x[train], y[train])
    found = sir.transform(x)
    each = (scores(s[train], y[train], s[test], y[test]) for s in (found, plain))
    return [*np.concatenate(list(each)).tolist(), float(abs(np.corrcoef(found[test, 0], plain[test, 0])[0, 1]))]


def kept_study(store: Store, options: argparse.Namespace) -> None:
    """What models keep on two private directions."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the plain methods
        for (name, n), how in product([*((t, KEPT) for t in options.tables), ("death", 30_000)], ("tight", "found")):
            runs = np.array(fits_of(store, f"kept/{name}/{n}/{how}", partial(kept, name, n, how, options.data), SEEDS))
            trees, linear = (" ".join(f"{value:.3f}" for value in runs[:, j]) for j in (0, 1))
            alike = " ".join(f"{value:.2f}" for value in runs[:, 4])
            rows.append((name, f"{n:,}", how, f"{runs[0, 2]:.3f}", trees, f"{runs[0, 3]:.3f}", linear, alike))
            print(*rows[-1], sep=" | ", flush=True)
    write(
        "honest-unseen-kept",
        f"python -m benchmarks.unseen --kept --tables {' '.join(options.tables)} --data .../statsmodels/datasets",
        "What is kept on tables that no other study has seen\n"
        f"epsilon = 1, delta = 1e-6, two directions, y as a number, {len(SEEDS)} seeds: held-out R^2 of boosted trees "
        "and of a linear model on two directions of plain SIR, and on private ones; correlation of the first scores "
        "with those of plain SIR. fair has 4,774 records to fit.",
        ("table", "n", "bounds", "trees, plain", "private", "linear, plain", "private", "scores"),
        rows,
    )


def judged_directions(name: str, n: int, how: str, o: argparse.Namespace, judged: bool, seed: int) -> dict[str, object]:
    """Scores and, of a fit that is judged, the level of each direction."""
    k = 1 if CLASSES.get(name) == 2 or name in honest.ONE else 2
    sir = fit(name, n, how, o.data, seed, k=k, real=o.real)
    found = {"s": scores_of(sir, table_of(name, o.data, o.real)[0], 2 * ROWS)}
    return found | {"levels": list(sir.verdict_.levels)} if judged else found


def judged_null(name: str, n: int, how: str, o: argparse.Namespace, seed: int) -> list[str]:
    """The levels where y is shuffled."""
    k = 1 if CLASSES.get(name) == 2 or name in honest.ONE else 2
    return list(fit(name, n, how, o.data, seed, shuffled=True, k=k, real=o.real).verdict_.levels)


def again(runs: list[dict[str, object]], j: int) -> tuple[int, int, np.ndarray]:
    """Of direction j: fits that were judged, those that call it reliable, and its correlations with those of others."""
    have = [run for run in runs if len(run["s"]) > j]
    judged = [run for run in have if "levels" in run]
    sure = [run for run in judged if run["levels"][j] == "reliable"]
    pairs = [
        abs(np.mean(np.array(run["s"][j]) * np.array(other["s"][j])))
        for run in sure
        for other in have
        if other is not run
    ]
    return len(judged), len(sure), np.array(pairs)


def directions_study(store: Store, o: argparse.Namespace) -> None:
    """Which directions are called reliable, and whether they come out again."""
    rows, fits, nulls = [], {}, {}
    names = [*o.tables, *OTHERS, *honest.RELATED]
    for n, name, how in product(o.sizes, names, ("tight", "found")):
        key = f"directions/{name}/{n}/{how}"
        fits[name, n, how] = [
            store.get(f"{key}/{s}", judged_directions, name, n, how, o, s < o.judged, s)
            for s in (*range(o.judged), *range(10, 10 + o.replications - o.judged))
        ]
        seeds = range(FIRST_SEED, FIRST_SEED + o.nulls)
        nulls[name, n, how] = [store.get(f"null/{key}/{s}", judged_null, name, n, how, o, s) for s in seeds]
    halves = {"chosen on": [t for t in names if t in HALF], "held out": [t for t in names if t not in HALF]}
    for n, (label, some) in product(o.sizes, [*((t, [t]) for t in names), *halves.items(), ("all", names)]):
        cells = [product(some, ("tight", "found")) for _ in range(2)]
        told = [[again(fits[t, n, how], j) for t, how in cells[j]] for j in range(2)]
        line = []
        for each in told:
            judged, sure = (sum(part[i] for part in each) for i in (0, 1))
            pairs = np.concatenate([part[2] for part in each])
            line += [f"{sure} of {judged}" if judged else "-"]
            line += [f"{int((pairs < ALIKE).sum())} of {len(pairs)}" if len(pairs) else "-"]
        shuffled = [levels for t, how in product(some, ("tight", "found")) for levels in nulls[t, n, how]]
        line.append(f"{sum('reliable' in levels for levels in shuffled)} of {len(shuffled)}")
        rows.append((label, f"{n:,}", *line))
    sizes, tables = " ".join(map(str, o.sizes)), " ".join(o.tables)
    asked = f"--replications {o.replications} --judged {o.judged} --nulls {o.nulls} --sizes {sizes} --tables {tables}"
    write(
        "honest-directions",
        f"python -m benchmarks.unseen --directions {asked} --data .../statsmodels/datasets --real data",
        "Directions that are called reliable\n"
        f'epsilon = 1, delta = 1e-6, `method="auto"`, bounds given and found together. Of each of two directions (one '
        f"of two classes, of M1 and of costs): how many of {2 * o.judged} fits call it reliable; of their pairs with "
        f"the {o.replications - 1} other fits to as many records, those whose scores along it are correlated by less "
        "than 0.9; of fits to a shuffled y, those that call a direction reliable. Then all tables on which the rule "
        "was chosen, and all that were held out.",
        ("table", "n", "first", "below 0.9", "second", "below 0.9", "nothing"),
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=8)
    parser.add_argument("--judged", type=int, default=3, help="Fits that are asked for errors and a verdict.")
    parser.add_argument("--nulls", type=int, default=6, help="Fits to a shuffled response.")
    parser.add_argument("--data", type=Path, default=Path("data"), help="statsmodels/datasets.")
    parser.add_argument("--tables", nargs="*", default=[*MADE, *BUNDLED, *SHIPPED])
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--real", type=Path, default=Path("data"), help="Folder with the tables of other studies.")
    parser.add_argument("--kept", action="store_true", help="What models keep, instead of what fits say.")
    parser.add_argument("--directions", action="store_true", help="Which directions are reliable, on all tables.")
    parser.add_argument("--store", type=Path, default=RESULTS.parents[1] / "build" / "unseen.json")
    o = parser.parse_args()
    warnings.simplefilter("error")
    for expected in (AccuracyWarning, PrivacyWarning):
        warnings.simplefilter("ignore", expected)
    store, rows = Store(o.store, np.inf), []
    with threadpool_limits(1):
        if o.kept or o.directions:
            (kept_study if o.kept else directions_study)(store, o)
            return
        for n, name, how in product(o.sizes, o.tables, ("tight", "found")):
            key = f"{name}/{n}/{how}"
            runs = [store.get(f"{key}/{s}", told, name, n, how, o.data, s < o.judged, s) for s in range(o.replications)]
            seeds = range(FIRST_SEED, FIRST_SEED + o.nulls)
            nulls = np.array(fits_of(store, f"null/{key}", partial(null, name, n, how, o.data), seeds))
            rows.append((name, f"{n:,}", how, *summary(runs, nulls)))
            print(*rows[-1], sep=" | ", flush=True)
    sizes, tables = " ".join(map(str, o.sizes)), " ".join(o.tables)
    asked = f"--replications {o.replications} --judged {o.judged} --nulls {o.nulls} --sizes {sizes} --tables {tables}"
    write(
        "honest-unseen",
        f"python -m benchmarks.unseen {asked} --data .../statsmodels/datasets",
        "Tables that no other study has seen\n"
        f'epsilon = 1, delta = 1e-6, `method="auto"`. Of {o.nulls} fits to a shuffled y: how many announce a '
        f"direction, and call it reliable. Of {o.replications} fits on fresh samples, of which {o.judged} are "
        "asked for their errors: part of the `loadings_`, of all fits, within two `loadings_errors_` of their mean, "
        "first and second direction (worst feature); median correlation of scores from fit to fit; verdicts (noise / "
        "weak / reliable); pairs of a reliable fit with others whose scores are correlated by less than 0.9; seconds "
        "of processor time for a fit with all that it says; how many features were named as not seen. No fit raised "
        "or warned.",
        ("table", "n", "bounds", "nothing", "first", "second", "again", "verdicts", "below 0.9", "s", "unseen"),
        rows,
    )


if __name__ == "__main__":
    main()
