"""Where the flagship stands between what no method can beat and the papers' methods, for 1e3 to 1e7 records.

The normal linear model with 15 features and R squared 0.5, epsilon = 1, delta = n^-1.1. Measured up to a million
records, forecast beyond; the picture goes to docs/images/limits.svg.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.study import mean, replicate, write
from sfumato import SIR, Bounds, PrivateSIR, limits, subspace_distance
from sfumato.research import DPSIR, DPIni

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "limits.svg"
P, SIGNAL, MEASURED = 15, 0.5, (1_000, 10_000, 100_000, 1_000_000)
NAMES = ("SIR, no privacy", "sfumato", "DP-SIR, tight noise", "DP-Ini, tight noise")
GAP = 0.48
"""Of the kernel of SIR with 20 slices at this signal; the rate takes it."""


def distances(n: int, seed: int) -> tuple[float, ...]:
    """Of every method on one draw."""
    rng = np.random.default_rng([seed, n])
    x = rng.standard_normal((n, P))
    y = x[:, 0] + rng.standard_normal(n)
    options = {"epsilon": 1.0, "delta": n**-1.1, "n_directions": 1, "bounds": Bounds(-4.0, 4.0)}
    fits = (SIR(n_directions=1, n_slices=20), PrivateSIR(**options), DPSIR(**options), DPIni(**options))
    return tuple(subspace_distance(fit.fit(x, y).directions_, np.eye(1, P)) for fit in fits)


def forecast(n: int) -> float:
    """What `explain` expects of the flagship."""
    return PrivateSIR(1.0, n**-1.1, 1, Bounds(-4.0, 4.0)).explain(n, P).forecast(SIGNAL).loss


def main(replications: int) -> None:
    """The table, then the picture."""
    few = max(3, replications // 4)
    found = {n: [mean(column) for column in replicate(distances, few, n).T] for n in MEASURED}
    rows = []
    for n in (*MEASURED, 10_000_000):
        least = limits.label_direction(n, P, np.inf, SIGNAL).root  # without privacy: Cramer and Rao
        rate = limits.sir(n, P, 1.0, n**-1.1, GAP).root
        rows.append((n, *found.get(n, [""] * len(NAMES)), f"{forecast(n):.4f}", f"{least:.4f}", f"{rate:.4f}"))
    write(
        "limits",
        f"python -m benchmarks limits --replications {replications}",
        "Between the limit and the papers' methods\n"
        f"Normal linear model, p = {P}, R squared {SIGNAL:g}, epsilon = 1, delta = n^-1.1, bounds (-4, 4); mean "
        f"distance ± standard error over {few} replications. 'Least' is the bound of Cramer and Rao on the root of the "
        "mean squared distance without privacy, with its constant; 'rate' is limits.sir, whose constant is not known.",
        ("n", *NAMES, "sfumato, forecast", "least", "rate"),
        rows,
    )
    draw({n: [one.mean for one in values] for n, values in found.items()})


def draw(found: dict[int, list[float]]) -> None:
    """Losses against the number of records, both logarithmic."""
    plt.rcParams["svg.fonttype"] = "none"
    figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    n = np.geomspace(1e3, 1e7, 17).round().astype(int)
    least = [limits.label_direction(size, P, np.inf, SIGNAL).root for size in n]
    axes.fill_between(n, 1e-4, least, color="#eee8da", label="no method, private or not")
    axes.plot(
        n,
        [limits.sir(size, P, 1.0, size**-1.1, GAP).root for size in n],
        ":",
        color="0.5",
        label="rate (constant unknown)",
    )
    axes.plot(n, [forecast(int(size)) for size in n], "-", color="#1f6f78", label="sfumato, forecast")
    for place, colour, marker in zip(
        range(4), ("black", "#1f6f78", "#b9553a", "#d9a521"), ("_", "o", "s", "^"), strict=True
    ):
        axes.plot(list(found), [values[place] for values in found.values()], marker, color=colour, label=NAMES[place])
    axes.set(xscale="log", yscale="log", xlabel="records", ylabel="mean distance to the truth", ylim=(5e-4, 2.0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(IMAGE)


if __name__ == "__main__":
    main(30)
