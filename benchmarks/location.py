"""What unknown bounds cost: bounds given, bounds found, features in wild units, response in wild units."""

import numpy as np

from benchmarks.study import TABLE_1, mean, replicate, write
from sfumato import Bounds, PrivateSIR, subspace_distance
from sfumato.simulate import xia

ROWS = tuple(TABLE_1[i] for i in (0, 1, 4, 5, 8, 9))


def losses(model: str, n: int, p: int, seed: int) -> tuple[float, ...]:
    """Distances: bounds given; found; found on features times 10^-3..10^6, shifted by 100 sd; y * 1e6 + 1e9.

    Directions found on rescaled features are taken back to the original units before they are compared.
    """
    sample = xia(model, n=n, p=p, random_state=seed)
    k, rng = len(sample.directions), np.random.default_rng([seed, 1])
    unit = 10.0 ** rng.uniform(-3, 6, p)
    moved = unit * (sample.x + 100 * 0.5 * rng.choice([-1, 1], p))
    given, found = ({"delta": n**-1.1, "n_directions": k, "bounds": b} for b in (Bounds(-1.5, 1.5), None))
    fits = (
        PrivateSIR(**given).fit(sample.x, sample.y).directions_,
        PrivateSIR(**found).fit(sample.x, sample.y).directions_,
        PrivateSIR(**found).fit(moved, sample.y).directions_ * unit,
        PrivateSIR(**given).fit(sample.x, sample.y * 1e6 + 1e9).directions_,
    )
    return tuple(subspace_distance(directions, sample.directions) for directions in fits)


def main(replications: int) -> None:
    """Total epsilon = 1."""
    rows = []
    for model, n, p in ROWS:
        out = replicate(losses, replications, model, n, p)
        given, *others = (mean(out[:, j]) for j in range(4))
        rows.append((model, n, p, given, *(f"{other.mean / given.mean:.2f}" for other in others)))
    write(
        "location",
        f"python -m benchmarks location --replications {replications}",
        "What unknown bounds cost\n"
        "total epsilon = 1, delta = n^-1.1; ratios of mean distance to that with bounds given, on the same data.",
        ("model", "n", "p", "bounds given", "bounds=None", "features x 10^-3..10^6, moved 100 sd", "y x 1e6 + 1e9"),
        rows,
    )
