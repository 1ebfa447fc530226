"""The forecast against the measured loss on normal records, bounds given and found, failing cells included.

python -m benchmarks.forecast_grid --replications 10
"""

import argparse
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.store import Store
from benchmarks.study import RESULTS, write
from sfumato import Bounds, PrivateSIR, subspace_distance
from sfumato.forecast import IndexResponse, forecast

GRID = ((300, 4), (1000, 4), (1000, 20), (3000, 10), (3000, 57), (10_000, 4), (10_000, 30), (30_000, 57), (100_000, 30))
SIGNAL = 0.5
WAYS = {"given": Bounds(-3.0, 3.0), "found": "search"}


def measured(n: int, p: int, how: str, replications: int) -> list[float]:
    """Distances to the true direction."""
    losses = []
    for seed in range(replications):
        rng = np.random.default_rng([seed, n, p])
        x = rng.normal(size=(n, p))
        y = np.sqrt(SIGNAL) * x[:, 0] + np.sqrt(1.0 - SIGNAL) * rng.normal(size=n)
        sir = PrivateSIR(1.0, 1e-6, 1, WAYS[how], "descent", random_state=seed).fit(x, y)
        losses.append(subspace_distance(sir.directions_, np.eye(1, p)))
    return losses


def foreseen(n: int, p: int, how: str, draws: int) -> float:
    """The loss to expect, from public numbers alone."""
    explanation = PrivateSIR(1.0, 1e-6, 1, WAYS[how], "descent").explain(n, p)
    population = IndexResponse(p, signal=SIGNAL)
    return forecast(explanation.fit, explanation.budget, n, population, draws=draws).loss


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--store", type=Path, default=RESULTS / "forecast-grid.json")
    parser.add_argument("--seconds", type=float, default=np.inf)
    options = parser.parse_args()
    store, rows, close = Store(options.store, options.seconds), [], []
    with threadpool_limits(1):
        for (n, p), how in product(GRID, WAYS):
            key, job = f"{n}/{p}/{how}/{options.replications}", (n, p, how, options.replications)
            losses, expected = store.get(key, lambda job=job: (measured(*job), foreseen(*job)))
            mean, error = float(np.mean(losses)), float(np.std(losses, ddof=1) / np.sqrt(len(losses)))
            close.append(abs(expected / mean - 1.0) <= 0.3)
            rows.append((n, p, how, f"{mean:.3f} ± {error:.3f}", f"{expected:.3f}", f"{expected / mean:.2f}"))
    write(
        "forecast-grid",
        f"python -m benchmarks.forecast_grid --replications {options.replications}",
        "Forecast and measured loss, failing cells included\n"
        f"Independent normal features, one direction that explains half of y, descent, epsilon = 1, delta = 1e-6; "
        f"{options.replications} fits and as many draws. Within 30 %: {sum(close)} of {len(close)} cells. "
        "A direction drawn at random is at sqrt(2 - 2/p).",
        ("n", "p", "bounds", "measured", "forecast", "ratio"),
        rows,
    )


if __name__ == "__main__":
    main()
