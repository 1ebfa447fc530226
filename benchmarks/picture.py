"""The README's picture, from the committed results: ``python -m benchmarks.picture``."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.study import RESULTS

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "accuracy.svg"


def rows() -> list[list[str]]:
    """Cells of Table 1 at total epsilon 1."""
    lines = (RESULTS / "table1-epsilon-1.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| M")]


def main() -> None:
    """One group of points for every row of the table, on a logarithmic axis."""
    table = rows()
    plt.rcParams["svg.fonttype"] = "none"  # words stay words, for readers and tests
    place = np.arange(len(table))
    plain, private = (np.array([float(row[j].split()[0]) for row in table]) for j in (3, 4))
    printed = np.array([float(row[7]) for row in table])
    figure, axes = plt.subplots(figsize=(10.5, 3.8), layout="constrained")
    low, high = (edge(np.array([plain, private, printed]), axis=0) for edge in (np.min, np.max))
    axes.vlines(place, low, high, color="#d8d2c4", linewidth=5, zorder=1)
    axes.plot(place, printed, "s", color="#b9553a", label="DP-SIR as printed, spends more than twice the epsilon")
    axes.plot(place, private, "o", color="#1f6f78", markersize=8, label="sfumato, total epsilon = 1")
    axes.plot(place, plain, "_", color="black", markersize=16, markeredgewidth=2, label="SIR without privacy")
    axes.set_yscale("log")
    axes.set_xticks(place, [f"{row[0]}\n{int(row[1]) // 1000}k x {row[2]}" for row in table], fontsize=8)
    axes.set_ylabel("mean distance to the truth")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.set_ylim(0.01, 3.0)
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGE)


if __name__ == "__main__":
    main()
