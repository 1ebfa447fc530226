"""What unknown bounds cost, on the models of Table 1 and on tables as they are.

``python -m benchmarks location``: the models; ``location-tables``: awkward tables, and real ones from ``--folder``;
``location-scales``: how often a scale is far off.
"""

import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from benchmarks.location_tables import KINDS, Table, awkward, real_tables
from benchmarks.store import Store
from benchmarks.study import RESULTS, mean, replicate, write
from sfumato import SIR, Bounds, PrivateSIR, subspace_distance
from sfumato.bounds import PartialBounds
from sfumato.privacy.asking import drive
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import SeededNoise
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.settings.central import Central
from sfumato.simulate import xia
from sfumato.sources import ArraySource
from sfumato.steps.location import Locating, Location, location_share

ROWS = (("M1", 20_000, 15), ("M1", 20_000, 30), ("M2", 20_000, 30), ("M3", 30_000, 15), ("M4", 30_000, 10))
TRAINING = 10_000


def losses(model: str, n: int, p: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distances: bounds given; found; found on features times 10^-3..10^6, shifted by 100 sd; y * 1e6 + 1e9.

    Directions found on rescaled features are taken back to the original units before they are compared.
    """
    sample = xia(model, n=n, p=p, random_state=seed)
    k, rng = len(sample.directions), np.random.default_rng([seed, 1])
    unit = 10.0 ** rng.uniform(-3, 6, p)
    moved = unit * (sample.x + 100 * 0.5 * rng.choice([-1, 1], p))
    shared = {"epsilon": epsilon, "delta": n**-1.1, "n_directions": k}
    given, found = ({**shared, "bounds": b} for b in (Bounds(-1.5, 1.5), None))
    fits = (
        PrivateSIR(**given).fit(sample.x, sample.y).directions_,
        PrivateSIR(**found).fit(sample.x, sample.y).directions_,
        PrivateSIR(**found).fit(moved, sample.y).directions_ * unit,
        PrivateSIR(**given).fit(sample.x, sample.y * 1e6 + 1e9).directions_,
    )
    return tuple(subspace_distance(directions, sample.directions) for directions in fits)


def scores(train: np.ndarray, y_train: np.ndarray, test: np.ndarray, y_test: np.ndarray) -> np.ndarray:
    """Held-out R^2 of boosted trees and of a linear model."""
    models = (HistGradientBoostingRegressor(random_state=0), LinearRegression())
    return np.array([model.fit(train, y_train).score(test, y_test) for model in models])


def plain_directions(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Two directions of SIR without privacy, in the units of x; constants and collinear columns do no harm."""
    scale = x.std(axis=0)
    scale = np.where(scale > 1e-9 * np.abs(x).max(axis=0), scale, np.inf)
    z = (x - x.mean(axis=0)) / scale
    root, size, rows = np.linalg.svd(z, full_matrices=False)
    keep = size > 1e-6 * size[0]
    whitened = root[:, keep] * np.sqrt(len(x))
    found = SIR(n_directions=2, n_slices=20).fit(whitened, y).directions_
    return np.asarray(found * np.sqrt(len(x)) / size[keep] @ rows[keep] / scale)


def ways(x: np.ndarray) -> dict[str, Bounds | None]:
    """Bounds not given; the true range; three times the true range."""
    low, high = x.min(axis=0), x.max(axis=0)
    width = np.maximum(high - low, 1e-6 * np.maximum(np.abs(low), 1.0))
    return {"none": None, "range": Bounds(low, low + width), "3 x range": Bounds(low - width, low + 2.0 * width)}


def keeping(table: Table, test_rows: int | float, runs: int) -> dict[str, list[list[float]]]:
    """For each way to say the bounds and each run: R^2 of trees over that on plain SIR's, linear R^2 less its R^2."""
    x, x_test, y, y_test = train_test_split(*table, test_size=test_rows, random_state=1)
    plain = plain_directions(x, y).T
    trees, linear = scores(x @ plain, y, x_test @ plain, y_test)
    found: dict[str, list[list[float]]] = {}
    for name, bounds in ways(x).items():
        for seed in range(runs):
            sir = PrivateSIR(epsilon=1.0, delta=1e-6, n_directions=2, bounds=bounds, random_state=seed)
            private = sir.fit(x, y)
            got = scores(private.transform(x), y, private.transform(x_test), y_test)
            found.setdefault(name, []).append([got[0] / trees, got[1] - linear])
    return found


def off_scale(kind: str, p: int, seed: int) -> tuple[int, int, int]:
    """Features seen, those whose half width is off by more than 32 from eight scales, and those not seen.

    The scale is the root mean square about the middle of the 99 % of records nearest to it, as heavy tails have none.
    """
    x, _ = awkward(kind, p, TRAINING, seed)
    budget, known = Budget.approximate(1.0, 1e-6), PartialBounds.nothing(p)
    location = Location(known, location_share(known, len(x), budget.mu()))
    plan = Plan((*Locating(location).lines, Line("rest", "rest", 1.0, "1"))).calibrate(budget)
    ledger = Ledger(budget, "replace", rehearsal=True)
    curator = Curator(Central(ArraySource(x, np.zeros(len(x)), Response())), plan, ledger, SeededNoise(seed))
    found = drive(Locating(location).run(p, len(x)), curator)
    distance = np.sort(np.abs(x - found.grid.centre), axis=0)[: int(0.99 * len(x))]
    ratio = found.grid.half_width / (8.0 * np.maximum(np.sqrt((distance**2).mean(axis=0)), 1e-300))
    seen = ~found.unseen
    return int(seen.sum()), int(((ratio[seen] > 32) | (ratio[seen] < 1 / 32)).sum()), int((~seen).sum())


def models(replications: int) -> None:
    """The models of Table 1."""
    rows = []
    for epsilon in (1.0, 0.25):
        for model, n, p in ROWS:
            out = replicate(losses, replications, model, n, p, epsilon)
            given, *others = (mean(out[:, j]) for j in range(4))
            errors = ((out[:, 1:] - out[:, :1]).std(axis=0, ddof=1) / np.sqrt(replications)) / given.mean
            ratios = (f"{o.mean / given.mean:.2f} ± {e:.2f}" for o, e in zip(others, errors, strict=True))
            rows.append((f"{epsilon:g}", model, n, p, given, *ratios))
    write(
        "location",
        f"python -m benchmarks location --replications {replications}",
        "What unknown bounds cost\n"
        "Total epsilon, delta = n^-1.1; ratios of mean distance to that with bounds given, on the same data (the error "
        "is that of the difference).",
        ("epsilon", "model", "n", "p", "bounds given", "bounds=None", "x 10^-3..10^6, moved 100 sd", "y x 1e6 + 1e9"),
        rows,
    )


def tables(replications: int) -> None:
    """Tables as they are: real ones if a folder is named, and awkward ones; a tenth of the replications.

    Tables that are done are kept under build, so that a study can be run in pieces.
    """
    runs = max(2, replications // 10)
    warnings.simplefilter("ignore")
    folder = os.environ.get("SFUMATO_DATA")
    found = real_tables(Path(folder)) if folder else {}
    shares: dict[str, float] = dict.fromkeys(found, 0.25)
    for kind in (*KINDS, "mixed"):
        for p in (12, 24, 60) if kind in ("mixed", "rare 0/1", "zero-inflated") else (24,):
            name = f"{kind}, synthetic, p = {p}"
            found[name], shares[name] = awkward(kind, p, TRAINING + 4_000, 1), 4_000
    rows, store = [], Store(RESULTS.parents[1] / "build" / "location-tables.json", np.inf)
    for name, table in found.items():
        kept = {way: np.array(k) for way, k in store.get(f"{name}/{runs}", keeping, table, shares[name], runs).items()}
        n = len(table[0]) - (4_000 if shares[name] > 1 else round(0.25 * len(table[0])))
        rows.append((name, n, table[0].shape[1], *(_kept(k) for k in kept.values())))
        print(rows[-1], flush=True)
    write(
        "location-tables",
        f"python -m benchmarks location-tables --replications {10 * runs} --folder ...",
        "What is kept on tables as they are\n"
        f"epsilon = 1, delta = 1e-6, two directions, {runs} runs: held-out R^2 of boosted trees over that on two "
        "directions of plain SIR (mean / least, and in how many runs at least 0.97), and the least R^2 of a linear "
        "model less that on plain SIR's.",
        ("table", "n", "p", *(f"bounds: {name}" for name in ways(np.zeros((2, 1))))),
        rows,
    )


def _kept(runs: np.ndarray) -> str:
    trees, linear = runs.T
    return f"{trees.mean():.3f} / {trees.min():.3f} ({(trees >= 0.97).sum()} of {len(trees)}) / {linear.min():+.3f}"


def scales(replications: int) -> None:
    """How often a scale is far off."""
    rows = []
    for kind in (*KINDS, "mixed"):
        seen, off, unseen = np.sum([off_scale(kind, 24, seed) for seed in range(replications)], axis=0)
        rows.append((kind, seen, off, unseen))
    total = np.sum([row[1:] for row in rows], axis=0)
    rows.append(("all", *total))
    write(
        "location-scales",
        f"python -m benchmarks location-scales --replications {replications}",
        "Scales that are far off\n"
        f"epsilon = 1, delta = 1e-6, n = {TRAINING:,}, p = 24: features with a visible spread, those whose unit "
        "is off by more than 32, and features whose spread was not seen (named to the user).",
        ("table", "features seen", "off by more than 32 x", "not seen"),
        rows,
    )
