"""Tables that were not looked at while fits learned to judge themselves: hospital records, and what others ship.

Small real tables become populations by drawing rows and moving numbers of many values by a fifth of a deviation.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn import datasets

Table = tuple[np.ndarray, np.ndarray]
MOST = 40_000
JITTER, MANY = 0.2, 12
"""Part of a standard deviation by which numbers are moved, and values from which a column is taken for a number."""
SHIPPED = {"fair": "affairs", "randhie": "mdvis", "anes96": "vote", "star98": "passed"}
"""Tables of statsmodels, and what is to be explained."""


def jittered(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Table:
    """A population like a small table."""
    rows = rng.integers(0, len(x), MOST)
    many = np.array([len(np.unique(column)) > MANY for column in x.T])
    return x[rows] + many * x.std(axis=0) * JITTER * rng.normal(size=(MOST, x.shape[1])), y[rows].astype(float)


def _bundled(name: str, rng: np.random.Generator) -> Table:
    options = {"scaled": False} if name == "diabetes" else {}
    bunch = getattr(datasets, f"load_{name}")(**options)
    return jittered(bunch.data.astype(float), bunch.target, rng)


def patients(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """How ill (n,), and what is written down of each patient (n, 16)."""
    ill, old = rng.normal(size=MOST), rng.normal(size=MOST)
    age = np.clip(np.round(58 + 19 * old), 0, 110)
    visits = rng.negative_binomial(0.6, 0.6 / (0.6 + 1.5 * np.exp(0.6 * ill)))
    creatinine = np.maximum(np.exp(4.3 + 0.35 * ill + 0.2 * old + 0.4 * rng.normal(size=MOST)), 40.0)
    troponin = np.exp(-3.0 + 1.3 * ill + 1.5 * rng.normal(size=MOST))
    admitted = np.floor(rng.uniform(16_000, 20_000, MOST))
    bill = np.where(rng.random(MOST) < 0.05, np.exp(8.0 + 0.8 * ill + rng.normal(size=MOST)), 0.0)
    pressure = 128 + 6 * old + 5 * ill + 14 * rng.normal(size=MOST)
    codes = [rng.random(MOST) < part * np.exp(0.9 * ill - 0.4) for part in (0.002, 0.01, 0.03, 0.05)]
    x = [
        *(age, rng.random(MOST) < 0.48, visits, creatinine, np.where(troponin < 0.014, 0.007, troponin), admitted),
        *(bill, pressure, pressure + 2.0 * rng.normal(size=MOST), np.full(MOST, 3.0)),
        *(rng.permutation(MOST) + 4_000_000, 1e-6 * np.exp(0.5 * ill + rng.normal(size=MOST)), *codes),
    ]
    return 0.8 * ill + 0.6 * old, np.column_stack(x).astype(float)


def _stay(rng: np.random.Generator) -> Table:
    """Days in hospital, mostly few, some many; half of the patients go home at once."""
    need, x = patients(rng)
    return x, rng.negative_binomial(0.8, 0.8 / (0.8 + np.exp(0.9 * need))).astype(float)


def _death(rng: np.random.Generator) -> Table:
    """Three of a hundred die."""
    need, x = patients(rng)
    risk = 1.4 * need + rng.logistic(size=MOST)
    return x, (risk > np.quantile(risk, 0.97)).astype(float)


def _charges(rng: np.random.Generator) -> Table:
    """Costs with a tail that has hardly a mean, and no cost at all for three of ten."""
    need, x = patients(rng)
    cost = np.exp(6.0 + need) * (rng.pareto(1.3, MOST) + 0.2)
    return x, np.where(rng.random(MOST) < 0.3, 0.0, cost)


def _codes(rng: np.random.Generator) -> Table:
    """Thirty diagnoses, each of a few in a thousand to one in twenty, and an age; some diagnoses make days longer."""
    part = np.exp(rng.uniform(np.log(0.002), np.log(0.05), 30))
    has = rng.random((MOST, 30)) < part * np.exp(0.5 * rng.normal(size=(MOST, 1)))
    age = np.clip(rng.normal(55, 20, MOST), 0, 105)
    days = np.exp(0.02 * (age - 55) + has @ np.where(np.arange(30) % 3 == 0, 1.2, 0.0) + 0.5 * rng.normal(size=MOST))
    return np.column_stack([age, has]), np.ceil(days)


def _laboratory(rng: np.random.Generator) -> Table:
    """Log-normal values of a common cause, with detection limits and units from 1e-6 to 1e9 and a two-sided outcome."""
    u = rng.normal(size=(MOST, 10)) + 0.7 * rng.normal(size=(MOST, 1))
    x = np.exp(np.linspace(0.3, 1.4, 10) * u)
    low = np.quantile(x, [0.0, 0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.0, 0.3, 0.0], axis=0)[np.arange(10), np.arange(10)]
    y = u[:, 0] + u[:, 3] - u[:, 7] + 0.5 * (u[:, 1] + u[:, 2]) ** 2 / 2.0 + rng.normal(size=MOST)
    return np.where(x < low, low / 2.0, x) * 10.0 ** np.linspace(-6, 9, 10), y


def _ledger(rng: np.random.Generator) -> Table:
    """Money that is mostly zero, with rare negative corrections; dates; counts in the thousands; years."""
    u = rng.normal(size=(MOST, 9)) + 0.5 * rng.normal(size=(MOST, 1))
    paid = np.where(u[:, 0] > 1.6, np.round(np.exp(7 + u[:, 0]), 2), 0.0)
    refund = np.where(rng.random(MOST) < 0.004, -np.exp(6 + u[:, 1]), 0.0)
    x = [
        *(paid, refund, 1_600_000_000 + 1e7 * u[:, 2], np.round(1970 + 15 * u[:, 3]), rng.poisson(np.exp(7 + u[:, 4]))),
        *(rng.poisson(np.exp(-2 + u[:, 5])), u[:, 6] > 2.5, np.round(u[:, 7], 0), np.tanh(3 * u[:, 8])),
    ]
    return np.column_stack(x).astype(float), u[:, [2, 4, 7]].sum(axis=1) + (paid > 0) + 0.7 * rng.normal(size=MOST)


MADE: dict[str, Callable[[np.random.Generator], Table]] = {
    "stay": _stay,
    "death": _death,
    "charges": _charges,
    "codes": _codes,
    "laboratory": _laboratory,
    "ledger": _ledger,
}
BUNDLED = ("diabetes", "breast_cancer", "wine", "digits")
CLASSES = {"death": 2, "breast_cancer": 2, "wine": 3, "digits": 10, "anes96": 2}
"""Tables whose response is a class, and of how many."""


def unseen(name: str, folder: Path) -> Table:
    """A table by its name; those of statsmodels are in its folder `datasets`."""
    rng = np.random.default_rng(0)
    if name in MADE:
        return MADE[name](rng)
    if name in BUNDLED:
        return _bundled(name, rng)
    import pandas as pd

    text = {"sep": "\t", "quotechar": "'"} if name == "anes96" else {}
    frame = pd.read_csv(folder / name / f"{name}.csv", **text).dropna()
    if name == "star98":
        frame["passed"] = frame.pop("PR50M") / frame.pop("MATHTOT")
    y = frame.pop(SHIPPED[name]).to_numpy(float)
    x = frame.to_numpy(float)
    return (x, y) if len(x) > 5_000 else jittered(x, y, rng)
