"""``make bench``: every study in turn, results under benchmarks/results.

``python -m benchmarks accuracy`` runs one of them; ``--replications 10`` makes a quick look.
"""

import argparse

from benchmarks import (
    accuracy,
    dimension,
    federated,
    flows,
    forecast,
    forecast_family,
    gallery,
    gep,
    initial_noise,
    label,
    limits,
    location,
    peers,
    persons,
    real,
    scale,
    sparse,
    speed,
)

STUDIES = {
    "accuracy": accuracy.main,
    "dimension": dimension.main,
    "federated": federated.main,
    "gallery": gallery.main,
    "flows": flows.main,
    "forecast": forecast.main,
    "forecast-family": forecast_family.main,
    "gep": gep.main,
    "initial-noise": initial_noise.main,
    "label": label.main,
    "limits": limits.main,
    "location": location.models,
    "location-tables": lambda replications: location.tables(max(2, replications // 10)),
    "location-scales": location.scales,
    "peers": peers.main,
    "persons": persons.main,
    "real": real.main,
    "scale": scale.main,
    "sparse": sparse.main,
    "speed": speed.main,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []], default=list(STUDIES))
    parser.add_argument("--replications", type=int, default=100)
    options = parser.parse_args()
    for name in options.studies:
        STUDIES[name](options.replications)


if __name__ == "__main__":
    main()
