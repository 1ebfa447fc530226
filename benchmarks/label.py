"""Labels randomised by their owners: SIR on M1 to M3, and sparse regression in the setting of Wang, Smith and Xu."""

import math

import numpy as np

from benchmarks.study import RESULTS, mean, replicate, write
from sfumato import SIR, LabelPrivateIHT, LabelPrivateSIR, subspace_distance
from sfumato.local import Answers, NumberRandomiser
from sfumato.simulate import xia

SETTINGS = (
    ("M1", 20_000, 15, 1.0),
    ("M1", 20_000, 15, 3.0),
    ("M2", 20_000, 15, 1.0),
    ("M2", 20_000, 15, 3.0),
    ("M3", 30_000, 10, 3.0),
)
BASE = {"n": 8_000, "p": 200, "s": 4, "epsilon": 0.5}
SWEEPS = {"n": (4_000, 8_000, 16_000, 32_000), "p": (50, 200, 800), "s": (2, 4, 8), "epsilon": (0.25, 0.5, 1.0)}
RANGE, NOISE = 2.0, 1.0


def directions(model: str, n: int, p: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distances: refined, plain SIR on randomised labels, SIR on true labels. The pilot finds the slices."""
    sample = xia(model, n=n, p=p, random_state=seed)
    k = len(sample.directions)
    fits = (LabelPrivateSIR(epsilon, k), LabelPrivateSIR(epsilon, k, refine=False), SIR(k, 20))
    return tuple(subspace_distance(fit.fit(sample.x, sample.y).directions_, sample.directions) for fit in fits)


def problem(n: int, p: int, s: int, epsilon: float, strength: float, seed: int) -> tuple[np.ndarray, ...]:
    """x uniform on +-1; s coefficients of `strength` times the size at which they are hardest to tell from noise."""
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], (n, p))
    std = NumberRandomiser(-RANGE, RANGE, epsilon).noise_std
    size = strength * std * math.sqrt(2 * math.log(p / s) / n)
    theta = np.zeros(p)
    theta[rng.choice(p, s, replace=False)] = min(size, 1 / math.sqrt(s)) * rng.choice([-1.0, 1.0], s)
    return x, x @ theta + rng.uniform(-NOISE, NOISE, n), theta


def errors(n: int, p: int, s: int, epsilon: float, strength: float, seed: int) -> tuple[float, ...]:
    """Squared error of IHT (s given) on ours, on the paper's noise; of IHT (s found) and the lasso on ours."""
    from sklearn.linear_model import LassoCV

    x, y, theta = problem(n, p, s, epsilon, strength, seed)
    answers = NumberRandomiser(-RANGE, RANGE, epsilon).randomize(y)
    gaussian = NumberRandomiser(-RANGE, RANGE, epsilon, 1e-6, "gaussian")
    printed = math.sqrt(32 * math.log(1.25 / 1e-6)) * (RANGE / 2) / epsilon
    paper = Answers(y + printed * np.random.default_rng(seed + 1).standard_normal(n), gaussian)
    found = [
        LabelPrivateIHT(n_active=s, radius=1.0).fit(x, answers).coef_,
        LabelPrivateIHT(n_active=s, radius=1.0).fit(x, paper).coef_,
        LabelPrivateIHT(radius=1.0).fit(x, answers).coef_,
    ]
    if strength != 1.0:
        found.append(LassoCV(cv=5, alphas=30, max_iter=2000).fit(x, answers.values).coef_)
    return tuple(float(((coefficients - theta) ** 2).sum()) for coefficients in found)


def _rate(n: int, p: int, s: int, epsilon: float) -> float:
    """The order of the minimax squared error, s log(p/s) / (n eps^2)."""
    return s * math.log(p / s) / (n * epsilon**2)


def plot(curves: dict[str, list[tuple[float, float]]]) -> None:
    """Error against the theorem's rate, a line for each sweep; parallel to the dotted line is the theorem."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4))
    for name, points in curves.items():
        rate, error = zip(*sorted(points), strict=True)
        ax.loglog(rate, error, marker="o", label=f"sweep of {name}")
    ends = np.array(ax.get_xlim())
    middle = np.median([error / rate for points in curves.values() for rate, error in points])
    ax.loglog(ends, middle * ends, color="0.5", linestyle=":", label="slope 1")
    ax.set_xlabel("s log(p/s) / (n eps^2)")
    ax.set_ylabel("mean squared error")
    ax.legend(frameon=False)
    figure.savefig(RESULTS / "label-iht.svg", bbox_inches="tight")


def main(replications: int) -> None:
    """Both studies."""
    rows = []
    for setting in SETTINGS:
        out = replicate(directions, replications, *setting)
        rows.append((*setting, *(mean(column) for column in out.T)))
    write(
        "label-sir",
        f"python -m benchmarks label --replications {replications}",
        "Label-private SIR, mean distance\n"
        "x public, slices found from a pilot of 10 %, k given; pure epsilon per person.",
        ("model", "n", "p", "epsilon", "LabelPrivateSIR", "without refining", "SIR on true labels"),
        rows,
    )
    few = max(4, replications // 4)
    rows, curves = [], {}
    for name, values in SWEEPS.items():
        points = []
        for value in values:
            setting = {**BASE, name: value}
            ours, paper, auto = replicate(errors, few, *setting.values(), 1.0).mean(axis=0)
            points.append((_rate(**setting), ours))
            rows.append(
                (name, value, f"{ours:.4f}", f"{ours / _rate(**setting):.2f}", f"{paper:.4f}", f"{auto:.4f}", "")
            )
        curves[name] = points
        slope = np.polyfit(*np.log(np.array(points)).T, 1)[0]
        rows.append((name, "slope", f"{slope:.2f}", "", "", "", ""))
    plot(curves)
    for strength in (0.5, 2.0, 4.0):
        ours, paper, auto, lasso = replicate(errors, few, *BASE.values(), strength).mean(axis=0)
        rows.append(("signal", f"x {strength:g}", f"{ours:.4f}", "", f"{paper:.4f}", f"{auto:.4f}", f"{lasso:.4f}"))
    write(
        "label-iht",
        f"python -m benchmarks label --replications {replications}",
        "Label-private sparse regression, mean squared error\n"
        f"x uniform on +-1, |noise| <= 1, y clipped to +-2, base {BASE}; coefficients at the size hardest to tell from "
        "noise (signal x 1). 'slope': of log error against log of s log(p/s) / (n eps^2) along the sweep; "
        "1 is the theorem.",
        ("sweep", "value", "IHT, s given", "error / rate", "paper's noise", "IHT, s found", "lasso (CV)"),
        rows,
    )
