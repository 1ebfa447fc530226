"""Study C.1 of Xia, Zhang and Cai: telling cancer from mass spectra, ROC curves along one private direction."""

import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve

from sfumato import Bounds, PrivateSparseSIR
from sfumato.errors import PrivacyWarning
from sfumato.papers.lasso_sir import lasso_sir
from sfumato.papers.study import Row, Study, Values
from sfumato.papers.supermarket import FORMAT, read
from sfumato.typing import FloatArray

PICKS = 10
_BOX = Bounds(-3.0, 3.0)
_AT = tuple(np.round(np.linspace(0.0, 1.0, 21), 2))


@cache
def labelled(path: str) -> tuple[FloatArray, FloatArray]:
    """Standardised spectra, and whether y is above its middle."""
    x, y = read(path)
    return x, (y > (y.min() + y.max()) / 2.0).astype(np.float64)


def cancer(path: str, epsilon: float, seed: int) -> Values:
    """Area under the ROC curve on the quarter held out, and the curve itself."""
    x, y = labelled(path)
    rng = np.random.default_rng(seed)
    test = rng.permutation(len(y)) < len(y) // 4
    measured: dict[str, float] = {}
    for name, direction in _directions(x[~test], y[~test], epsilon).items():
        index = x @ direction
        rule = LogisticRegression().fit(index[~test, None], y[~test])
        scores = rule.decision_function(index[test, None])
        measured[name] = float(roc_auc_score(y[test], scores))
        false, true, _ = roc_curve(y[test], scores)
        measured |= {f"{name}|{at:.2f}": float(np.interp(at, false, true)) for at in _AT}
    return measured


def _directions(x: FloatArray, y: FloatArray, epsilon: float) -> dict[str, FloatArray]:
    n = len(y)
    delta, classes = n**-1.1, [0.0, 1.0]
    paper: dict[str, Any] = {"calibration": "paper", "max_features": PICKS, "classes": classes}
    fits = {
        "DP-SIni paper": PrivateSparseSIR(epsilon, delta, 1, _BOX, "dp-sini", **paper),
        "DP-TRF paper": PrivateSparseSIR(epsilon, delta, 1, _BOX, "truncated-rayleigh-flow", **paper),
        "DP-SSIR paper": PrivateSparseSIR(epsilon, delta, 1, _BOX, "dp-ssir", **paper),
        "sfumato": PrivateSparseSIR(epsilon, delta, 1, _BOX, classes=classes),
    }
    found = {"Lasso-SIR": lasso_sir(x, y, 2)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return found | {name: fit.fit(x, y).directions_[0] for name, fit in fits.items()}


CANCER = Study(
    "xia-cancer",
    "DP-SIR, newest version, supplement C.1: cancer against mass spectra, area under the ROC curve",
    "The paper prints a picture of ROC curves only (--html draws it). It used 800 records whose labels a lasso had "
    "predicted; the committed run uses the 200 labelled records of arcene, a quarter of them held out. Spectra are "
    "standardised without privacy, as in the paper. 'paper' gives no guarantee; sfumato's epsilon is the total.",
    tuple(Row(f"epsilon = {epsilon:g}", (epsilon,), {}) for epsilon in (2.0, 20.0, 100.0)),
    cancer,
    data=FORMAT,
)
