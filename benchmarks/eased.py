"""What scores are to make of values beyond the box of a fit: projections, roots, logarithms, or the ends of the box.

    python -m benchmarks.eased --data .../statsmodels/datasets --real data

The same fits, made on fresh samples of a table, are scored in four ways. What matters is what models keep, and
whether scores come out again. Numbers that are done are kept in the file that ``--store`` names.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from benchmarks import honest
from benchmarks.honest import bounds_of
from benchmarks.location import plain_directions
from benchmarks.store import Store
from benchmarks.study import RESULTS, write
from benchmarks.unseen_tables import BUNDLED, MADE, SHIPPED, unseen
from sfumato import PrivateSIR

REAL = ("compactiv", "kc_house", "flights", "california_housing", "ccpp", "winequality_white")
TABLES = (*REAL, *honest.RELATED, *MADE, *(name for name in BUNDLED if name != "digits"), *SHIPPED)
MOST, TESTED = 10_000, 5_000
SEEDS, TREES = 8, 3
"""Fits, and those on whose scores trees learn, too."""
ROOT, LOG, LINEAR, CUT = "root", "logarithm", "as it is", "end of the box"
WAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    LINEAR: lambda far: far,
    ROOT: lambda far: 2.0 * (np.sqrt(1.0 + far) - 1.0),
    LOG: np.log1p,
    CUT: np.zeros_like,
}
"""What a distance beyond the box, in half widths, counts as."""


def scored(fit: PrivateSIR, x: np.ndarray, way: str) -> np.ndarray:
    """Scores of records, values beyond the box taken in that way; those of features that were not seen are cut."""
    x, box = fit.bounds_.cut(x, fit.unseen_), fit.box_
    near, half = np.clip(x, box.lower, box.upper), (box.upper - box.lower) / 2.0
    far = np.abs(x - near) / half
    return (near + np.sign(x - near) * half * WAYS[way](far) - fit.mean_) @ fit.directions_.T


def kept(name: str, how: str, o: argparse.Namespace) -> dict[str, list[list[float]]]:
    """For each way and fit: linear R^2 less that on plain SIR, R^2 of trees over it, correlations with later fits."""
    x, y = unseen(name, o.data) if name in (*MADE, *BUNDLED, *SHIPPED) else honest.table_of(name, o.real)
    rows = np.random.default_rng(1).permutation(len(x))
    test, train = rows[: min(TESTED, len(x) // 4)], rows[len(x) // 4 :]

    def fitted(model: LinearRegression | HistGradientBoostingRegressor, score: Callable[[np.ndarray], np.ndarray]):
        some = train[:MOST]
        return model.fit(score(x[some]), y[some]).score(score(x[test]), y[test])

    plain = plain_directions(x[train[:MOST]], y[train[:MOST]]).T
    line, trees = LinearRegression(), HistGradientBoostingRegressor(random_state=0)
    linear, forest = (fitted(model, lambda z: z @ plain) for model in (line, trees))
    fits = []
    for seed in range(SEEDS):
        drawn = np.random.default_rng([seed, 7]).choice(train, min(len(train), MOST))
        fits.append(PrivateSIR(1.0, 1e-6, 2, bounds_of(x, how), random_state=seed).fit(x[drawn], y[drawn]))
    found = {}
    for way in WAYS:
        each = [partial(scored, fit, way=way) for fit in fits]
        alike = np.abs(np.corrcoef([score(x[test])[:, 0] for score in each]))[np.triu_indices(SEEDS, 1)]
        found[way] = [
            [fitted(line, score) - linear for score in each],
            [fitted(trees, score) / forest for score in each[:TREES]],
            alike.tolist(),
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"), help="statsmodels/datasets.")
    parser.add_argument("--real", type=Path, default=Path("data"), help="Folder with the real tables.")
    parser.add_argument("--store", type=Path, default=RESULTS.parents[1] / "build" / "eased.json")
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    store, rows = Store(o.store, np.inf), []
    with threadpool_limits(1):
        for name, how in product(TABLES, ("tight", "found")):
            found = store.get(f"{name}/{how}", kept, name, how, o)
            cells = (" ; ".join(f"{np.mean(part):.3f} ({np.min(part):.3f})" for part in found[way]) for way in WAYS)
            rows.append((name, how, *cells))
            print(*rows[-1], sep=" | ", flush=True)
    write(
        "eased-scores",
        "python -m benchmarks.eased --data .../statsmodels/datasets --real data",
        "What scores make of values beyond the box\n"
        f"epsilon = 1, delta = 1e-6, two directions, {SEEDS} fits on fresh samples of at most {MOST:,} records, true "
        "range as bounds or bounds found. A value beyond the box of the fit, d half widths, counts in scores as it is, "
        "by the root 2 (sqrt(1 + d) - 1) (what `transform` does), by the logarithm ln(1 + d), or as the end of the "
        "box. Of each: held-out R^2 of a linear model less that on two directions of plain SIR; R^2 of boosted trees "
        f"over that on plain SIR's ({TREES} fits); correlation of the first scores from fit to fit. Means, and the "
        "least in brackets.",
        ("table", "bounds", *WAYS),
        rows,
    )


if __name__ == "__main__":
    main()
