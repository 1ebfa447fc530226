"""Sixteen airlines explain arrival delays together; no airline shows a flight to another, or to the server.

The data of section 6.2 of He, Zhang and Chen (2023), 50,000 flights of them. Run
``python examples/federated_flights.py picture.svg``; without a name, or without matplotlib, only the text is written.
"""

import sys

import numpy as np

from sfumato import SIR, Bounds, PrivateSIR
from sfumato.datasets import load_flights
from sfumato.federated import simulate

FEATURES = ["month", "day", "dep_delay", "arr_time", "sched_arr_time", "air_time", "distance"]
# Known without looking at the flights: the calendar, the clock, the map; delays beyond five hours are clipped.
BOUNDS = Bounds([1, 1, -60, 0, 0, 0, 0], [12, 31, 300, 2400, 2400, 700, 5000])
TRUST = {"sites": "each airline adds all its noise", "secure-aggregation": "airlines add shares of noise"}


def main() -> None:
    table = load_flights()
    x = np.column_stack([table.column(name).to_numpy().astype(float) for name in FEATURES])
    y, carrier = table.column("arr_delay").to_numpy().astype(float), np.asarray(table.column("carrier").to_pylist())
    sites = {name: (x[carrier == name], y[carrier == name]) for name in sorted(set(carrier.tolist()))}
    estimator = PrivateSIR(epsilon=1.0, delta=1e-6, n_directions=1, bounds=BOUNDS, picture=True)
    plain = SIR(n_directions=1).fit(x, y).directions_[0]
    fits = {trust: simulate(estimator, sites, trust, least="auto") for trust in TRUST}
    for trust, fitted in fits.items():
        print(f"trust={trust!r}: {len(fitted.ledgers_)} airlines, each spends epsilon {fitted.ledger_.total():.3g}")
        index = x @ fitted.directions_[0]
        print(f"  correlation with the index of non-private SIR: {abs(np.corrcoef(x @ plain, index)[0, 1]):.3f}")
        for name, why in fitted.left_out_.items():
            print(f"  {name} {why}")
        for name, found in fitted.disagreeing_.items():
            print(f"  {name} differs from the other airlines in {found.about}")
    if len(sys.argv) > 1:
        draw(fits, plain, x.std(axis=0), sys.argv[1])


def draw(fits: dict[str, PrivateSIR], plain: np.ndarray, scale: np.ndarray, path: str) -> None:
    """Loadings in standard deviations of the features beside SIR without privacy, and the private picture."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    columns = {"SIR without privacy": plain} | {TRUST[trust]: fitted.directions_[0] for trust, fitted in fits.items()}
    for i, (label, direction) in enumerate(columns.items()):
        loading = direction * scale / np.linalg.norm(direction * scale)
        loading *= np.sign(loading[FEATURES.index("dep_delay")])
        left.barh(np.arange(len(FEATURES)) + 0.27 * (1 - i), loading, 0.25, label=label, color=f"C{i}")
    left.set_yticks(np.arange(len(FEATURES)), FEATURES)
    left.invert_yaxis()
    left.axvline(0, color="0.6", linewidth=0.8)
    left.set_xlabel("loading, features in standard deviations")
    left.legend(frameon=False, fontsize=8)
    fits["sites"].summary_plot(right)
    airlines = len(fits["sites"].ledgers_)
    right.set_title(f"Arrival delay against the index: private counts, {airlines} airlines", fontsize=9)
    figure.savefig(path)


if __name__ == "__main__":
    main()
