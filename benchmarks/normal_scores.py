"""What normal scores are worth: models on two private directions of features as they are, and of their scores."""

from pathlib import Path

import numpy as np

from benchmarks.location import plain_directions, scores
from benchmarks.study import mean, replicate, write
from benchmarks.unseen_tables import MADE, unseen
from sfumato import Bounds, PrivateNormalScores, PrivateSIR

N, TESTED = 8_000, 8_000
PART = 0.25
"""Of epsilon and delta, for the scores."""


def kept(name: str, seed: int) -> tuple[float, ...]:
    """Held-out R^2 of trees and a line on two directions: plain and private ones, of features and of scores."""
    x, y = unseen(name, Path())
    rows = np.random.default_rng(seed).permutation(len(x))
    train, test = rows[:N], rows[-TESTED:]
    ranks = PrivateNormalScores(PART, PART * 1e-6, "search").fit(x[train]).transform(x)
    found = (
        PrivateSIR(1.0, 1e-6, 2, "search").fit(x[train], y[train]).transform(x),
        PrivateSIR(1.0 - PART, (1.0 - PART) * 1e-6, 2, Bounds(-3.3, 3.3)).fit(ranks[train], y[train]).transform(ranks),
    )
    plain = (z @ plain_directions(z[train], y[train]).T for z in (x, ranks))
    shown = (*plain, *found)
    return tuple(value for s in shown for value in scores(s[train], y[train], s[test], y[test]))


def main(replications: int) -> None:
    """Every made table."""
    rows = []
    for name in MADE:
        values = [mean(column) for column in replicate(kept, replications, name).T]
        cells = [f"{values[j].mean:.3f}, {values[j + 1].mean:.3f} ± {values[j + 1].error:.3f}" for j in (0, 4, 2, 6)]
        rows.append((name, *cells))
    write(
        "normal-scores",
        f"python -m benchmarks normal-scores --replications {replications}",
        "Normal scores\nHeld-out R^2 of boosted trees and of a linear model (mean ± standard error) on two directions "
        f"of {N:,} records: of features as they are, and of `PrivateNormalScores`, which takes {PART:g} of epsilon "
        "= 1. Without privacy the scores are the same.",
        ("table", "plain SIR", "PrivateSIR, bounds found", "plain SIR of scores", "PrivateSIR of scores"),
        rows,
    )
