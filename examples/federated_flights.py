"""Sixteen airlines explain arrival delays together; no airline shows a flight to another, or to the server.

The data of section 6.2 of He, Zhang and Chen (2023). Run: ``python examples/federated_flights.py report.html``.
"""

import sys

import numpy as np

from sfumato import SIR, Bounds, PrivateSIR, principal_angles
from sfumato.datasets import load_flights
from sfumato.federated import simulate

FEATURES = ["month", "day", "dep_delay", "arr_time", "sched_arr_time", "air_time", "distance"]
# Known without looking at the flights: the calendar, the clock, the map; delays beyond five hours are clipped.
BOUNDS = Bounds([1, 1, -60, 0, 0, 0, 0], [12, 31, 300, 2400, 2400, 700, 5000])


def main() -> None:
    table = load_flights()
    x = np.column_stack([table.column(name).to_numpy().astype(float) for name in FEATURES])
    y, carrier = table.column("arr_delay").to_numpy().astype(float), np.asarray(table.column("carrier").to_pylist())
    sites = {name: (x[carrier == name], y[carrier == name]) for name in sorted(set(carrier.tolist()))}
    estimator = PrivateSIR(epsilon=1.0, delta=1e-6, n_directions=1, bounds=BOUNDS, picture=True)
    for trust in ("sites", "secure-aggregation"):
        fitted = simulate(estimator, sites, trust)
        print(f"trust={trust!r}: {len(sites)} airlines, each spends epsilon {fitted.ledger_.total():.3g}")
        for name, weight in zip(FEATURES, fitted.directions_[0] * BOUNDS.upper, strict=True):
            print(f"  {name:15s} {weight:+8.3f}")
        plain = SIR(n_directions=1).fit(x, y).directions_
        print(
            f"  correlation with non-private SIR: {abs(np.corrcoef(x @ plain[0], x @ fitted.directions_[0])[0, 1]):.3f}"
        )
        print(f"  largest angle to it: {np.degrees(principal_angles(fitted.directions_, plain).max()):.1f} degrees")
        for name, found in fitted.disagreeing_.items():
            print(f"  {name} differs from the other airlines in {found.about}")
    if len(sys.argv) > 1:
        fitted.report(sys.argv[1])


if __name__ == "__main__":
    main()
