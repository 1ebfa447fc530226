"""Labels randomised by their owners: SIR on M1 to M3, and sparse regression in the setting of Wang, Smith and Xu."""

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.study import RESULTS, Mean, mean, replicate, write
from sfumato import SIR, LabelPrivateIHT, LabelPrivateSIR, subspace_distance
from sfumato.local import Answers, NumberRandomiser
from sfumato.simulate import he, xia

SETTING = ("model", "n", "p", "epsilon")
SETTINGS = (
    ("M1", 20_000, 15, 1.0),
    ("M1", 20_000, 15, 3.0),
    ("M2", 20_000, 15, 1.0),
    ("M2", 20_000, 15, 3.0),
    ("M3", 30_000, 10, 3.0),
)
NUMBERS_OF_WAVES = (4, 6)
WAVES = tuple((model, 20_000, 15, epsilon) for model in ("M1", "M2") for epsilon in (0.5, 1.0, 3.0))
BASE = {"n": 4_000, "p": 200, "s": 4, "epsilon": 0.5}
SWEEPS = {
    "n": (2_000, 4_000, 8_000),
    "p": (50, 100, 200, 400),
    "s": (2, 4, 8, 16),
    "epsilon": (0.3, 0.5, 0.9),
}
RANGE, NOISE = 2.0, 1.0
HARDEST = 0.75
"""Coefficients of this part of what stands out of the noise are lost and replaced by noise: the error is largest."""
BESIDE = {**BASE, "n": 8_000}
STRENGTHS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


def directions(model: str, n: int, p: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distances: refined, plain SIR on randomised labels, SIR on true labels. The pilot finds the slices."""
    sample = xia(model, n=n, p=p, random_state=seed)
    k = len(sample.directions)
    fits = (LabelPrivateSIR(epsilon, k), LabelPrivateSIR(epsilon, k, refine=False), SIR(k, 20))
    return tuple(subspace_distance(fit.fit(sample.x, sample.y).directions_, sample.directions) for fit in fits)


def in_waves(model: str, n: int, p: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distances: one question to all, four waves, six waves, SIR on true labels."""
    sample = xia(model, n=n, p=p, random_state=seed)
    asked = (None, *NUMBERS_OF_WAVES)
    fits = (*(LabelPrivateSIR(epsilon, 1, waves=waves) for waves in asked), SIR(1, 20))
    return tuple(subspace_distance(fit.fit(sample.x, sample.y).directions_, sample.directions) for fit in fits)


def problem(n: int, p: int, s: int, epsilon: float, strength: float, seed: int) -> tuple[np.ndarray, ...]:
    """x uniform on +-1; s coefficients of `strength` times the size at which they stand out of the noise."""
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], (n, p))
    std = NumberRandomiser(-RANGE, RANGE, epsilon).noise_std
    size = strength * std * math.sqrt(2 * math.log(p / s) / n)
    theta = np.zeros(p)
    theta[rng.choice(p, s, replace=False)] = min(size, 1 / math.sqrt(s)) * rng.choice([-1.0, 1.0], s)
    return x, x @ theta + rng.uniform(-NOISE, NOISE, n), theta


def slope_errors(n: int, p: int, s: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Squared error of IHT with s given, where it is largest."""
    x, y, theta = problem(n, p, s, epsilon, HARDEST, seed)
    found = LabelPrivateIHT(n_active=s).fit(x, NumberRandomiser(-RANGE, RANGE, epsilon).randomize(y))
    return (float(((found.coef_ - theta) ** 2).sum()),)


def errors(n: int, p: int, s: int, epsilon: float, strength: float, seed: int) -> tuple[float, ...]:
    """Squared errors: IHT (s given), the same with the paper's noise, IHT (s found), lasso, nothing."""
    from sklearn.linear_model import LassoCV

    x, y, theta = problem(n, p, s, epsilon, strength, seed)
    answers = NumberRandomiser(-RANGE, RANGE, epsilon).randomize(y)
    gaussian = NumberRandomiser(-RANGE, RANGE, epsilon, 1e-6, "gaussian")
    printed = math.sqrt(32 * math.log(1.25 / 1e-6)) * (RANGE / 2) / epsilon
    paper = Answers(y + printed * np.random.default_rng(seed + 1).standard_normal(n), gaussian)
    found = (
        LabelPrivateIHT(n_active=s, radius=1.0).fit(x, answers).coef_,
        LabelPrivateIHT(n_active=s, radius=1.0).fit(x, paper).coef_,
        LabelPrivateIHT(radius=1.0).fit(x, answers).coef_,
        LassoCV(cv=5, alphas=30, max_iter=2000).fit(x, answers.values).coef_,
        np.zeros(p),
    )
    return tuple(float(((coefficients - theta) ** 2).sum()) for coefficients in found)


def _rate(n: int, p: int, s: int, epsilon: float) -> float:
    """The order of the minimax squared error, s log(p/s) / (n eps^2)."""
    return s * math.log(p / s) / (n * epsilon**2)


def _slope(points: list[tuple[float, float, float]]) -> Mean:
    """Of log error against log rate by least squares, with the standard error that those of the points give it."""
    rate, error, doubt = np.array(points).T
    x = np.log(rate) - np.log(rate).mean()
    return Mean(float(x @ np.log(error) / (x @ x)), float(np.sqrt(((x * doubt / error) ** 2).sum()) / (x @ x)))


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


def mean_distances(
    of: Callable[..., tuple[float, ...]], settings: Sequence[tuple[object, ...]], replications: int
) -> list[tuple[object, ...]]:
    """A row for each setting: itself, then the mean of each distance."""
    return [(*setting, *(mean(column) for column in replicate(of, replications, *setting).T)) for setting in settings]


def sir(replications: int) -> None:
    """Label-private SIR."""
    write(
        "label-sir",
        f"python -m benchmarks.label sir --replications {replications}",
        "Label-private SIR, mean distance\n"
        "x public, slices found from a pilot of 10 %, k given; pure epsilon per person.",
        (*SETTING, "LabelPrivateSIR", "without refining", "SIR on true labels"),
        mean_distances(directions, SETTINGS, replications),
    )


def waves(replications: int) -> None:
    """Label-private SIR in waves."""
    write(
        "label-waves",
        f"python -m benchmarks.label waves --replications {replications}",
        "Label-private SIR in waves, mean distance\n"
        "x public, nothing known about y, k = 1 given; pure epsilon per person, who answers once in every column. "
        "Half of the waves, a tenth of the people, find where y lies.",
        (*SETTING, "one question to all", "4 waves", "6 waves", "SIR on true labels"),
        mean_distances(in_waves, WAVES, replications),
    )


def two_classes(n: int, p: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distances on model I of He, Zhang and Chen, whose response has two classes: declared; SIR on true labels."""
    sample = he("I", n=n, p=p, random_state=seed)
    fits = (LabelPrivateSIR(epsilon, 1, classes=[0, 1]), SIR(1, 2))
    return tuple(subspace_distance(fit.fit(sample.x, sample.y).directions_, sample.directions) for fit in fits)


def classes(replications: int) -> None:
    """Label-private SIR of a response with two classes."""
    rows = []
    for epsilon in (0.5, 1.0, 2.0):
        private, plain = (mean(column) for column in replicate(two_classes, replications, 5_000, 10, epsilon).T)
        rows.append(("I", 5_000, 10, epsilon, private, plain))
    write(
        "label-classes",
        f"python -m benchmarks.label classes --replications {replications}",
        "Label-private SIR of two declared classes, mean distance\n"
        "Model I of He, Zhang and Chen (logistic without noise), k given; pure epsilon per person. There is no third "
        "answer: what was not declared is told as the last class.",
        ("model", "n", "p", "epsilon", "LabelPrivateSIR", "SIR on true labels"),
        rows,
    )


def slopes(replications: int) -> None:
    """How the error of IHT grows, one number at a time."""
    rows, curves, found = [], {}, []
    for name, values in SWEEPS.items():
        points = []
        for value in values:
            setting = {**BASE, name: value}
            count = replications * (3 if name == "p" else 1)  # log(p/s) hardly varies: a slope needs more
            error = mean(replicate(slope_errors, count, *setting.values())[:, 0])
            points.append((_rate(**setting), error.mean, error.error))
            rows.append((name, value, error, f"{error.mean / _rate(**setting):.1f}"))
        curves[name] = [(rate, error) for rate, error, _ in points]
        found.append(f"{name} {_slope(points)}")
    plot(curves)
    write(
        "label-iht",
        f"python -m benchmarks.label slopes --replications {replications}",
        "Label-private sparse regression: how the error grows\n"
        f"x uniform on +-1, |noise| <= {NOISE:g}, y clipped to +-{RANGE:g}, one number varied at a time around {BASE}; "
        f"s given. Coefficients of {HARDEST:g} times the size at which they stand out of the noise: there the squared "
        "error is largest, and the worst case is what the theorem is about (of larger coefficients more are found, the "
        "more the larger p, and the error grows more slowly than the rate). Slopes of log error against the log of "
        f"s log(p/s) / (n eps^2), 1 being the theorem: **{', '.join(found)}** ([picture](label-iht.svg)).",
        ("varied", "value", "squared error", "error / rate"),
        rows,
    )


def lasso(replications: int) -> None:
    """IHT beside the lasso and the paper's noise, by the size of the coefficients."""
    rows = []
    for strength in STRENGTHS:
        out = replicate(errors, replications, *BESIDE.values(), strength)
        rows.append((f"{strength:g}", *(mean(column) for column in out.T)))
    write(
        "label-lasso",
        f"python -m benchmarks.label lasso --replications {replications}",
        "Label-private sparse regression: against the lasso and the paper's noise, mean squared error\n"
        f"Setting {BESIDE}; coefficients by their size, 1 is where they stand out of the noise of the labels. IHT and "
        "the lasso of scikit-learn (cross-validated) on the same randomised labels, pure epsilon; the paper's noise is "
        "Gaussian by its own formula at delta = 1e-6, on half the range as printed, with s given. "
        "'Nothing' is the error of a zero estimate.",
        ("coefficients", "IHT, s given", "with the paper's noise", "IHT, s found", "lasso (CV)", "nothing"),
        rows,
    )


STUDIES = {"sir": sir, "waves": waves, "classes": classes, "slopes": slopes, "lasso": lasso}


def main(replications: int) -> None:
    """All of them."""
    for study in STUDIES.values():
        study(replications)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=list(STUDIES))
    parser.add_argument("--replications", type=int, default=100)
    given = parser.parse_args()
    STUDIES[given.study](given.replications)
