"""The gallery: three built-in data sets, with pictures and what a model keeps when it sees private directions.

    python -m benchmarks gallery

writes docs/images/gallery-*.svg and the measured part of docs/gallery/*.md, which is between two comments.
GALLERY_SECONDS=8 stops it after so much processor time; the next run goes on.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.real import score
from benchmarks.store import Store
from benchmarks.study import RESULTS, commit, mean
from sfumato import SIR, Bounds, PrivateSIR, datasets
from sfumato.methods.reporting import draw_picture
from sfumato.report.build import build_document

DOCS = Path(__file__).parents[1] / "docs"
EPSILONS = (0.5, 1.0, 2.0)
DELTA = 1e-6
MARKS = "<!-- measured: written by python -m benchmarks gallery -->", "<!-- end of what was measured -->"


@dataclass(frozen=True)
class Case:
    """A data set cut in two; `unit` is what the score is."""

    name: str
    features: tuple[str, ...]
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    unit: str

    @property
    def bounds(self) -> Bounds:
        """Known without the data: see sfumato.datasets."""
        domain = datasets.domain(self.name)
        return Bounds(*zip(*(domain[feature] for feature in self.features), strict=True))

    def estimator(self, epsilon: float, **options: Any) -> PrivateSIR:
        """The private fit; how many directions is found from the noise."""
        return PrivateSIR(epsilon=epsilon, delta=DELTA, bounds=self.bounds, **options)


def cases() -> list[Case]:
    """Flights and wines are cut at random, digits by writer: those of the test part wrote none of the others."""
    flights, wine, digits = datasets.load_flights(), datasets.load_wine(), datasets.load_pendigits()
    return [
        _case("flights", flights, "arr_delay", ("carrier",), _random(len(flights)), "R squared"),
        _case("wine", wine, "quality", (), _random(len(wine)), "R squared"),
        _case("pendigits", digits, "digit", ("test",), digits["test"].to_numpy(), "accuracy"),
    ]


def _random(n: int) -> np.ndarray:
    return np.random.default_rng(1).random(n) < 0.25


def _case(name: str, table: Any, response: str, left_out: Sequence[str], test: np.ndarray, unit: str) -> Case:
    features = tuple(column for column in table.column_names if column not in (response, *left_out))
    x = np.column_stack([table[column].to_numpy().astype(float) for column in features])
    y = table[response].to_numpy()
    y = y.astype(str) if unit == "accuracy" else y.astype(float)
    part = np.asarray(test, dtype=bool)
    return Case(name, features, x[~part], y[~part], x[part], y[part], unit)


def scores(case: Case, runs: int, known: Store) -> tuple[float, dict[int, float], dict[float, list[tuple[int, float]]]]:
    """Held-out scores on raw features, on k non-private directions, and on private ones: (k, score) by epsilon."""
    raw = known.get(f"{case.name} raw", score, case.x_train, case.y_train, case.x_test, case.y_test)
    private = {
        epsilon: [known.get(f"{case.name} {epsilon:g} {run}", _private, case, epsilon) for run in range(runs)]
        for epsilon in EPSILONS
    }
    counts = sorted({k for found in private.values() for k, _ in found})
    plain = {k: known.get(f"{case.name} plain {k}", _plain, case, k) for k in counts}
    return raw, plain, private


def _private(case: Case, epsilon: float) -> list[float]:
    fit = case.estimator(epsilon).fit(case.x_train, case.y_train)
    return [len(fit.directions_), _score(case, fit)]


def _score(case: Case, fit: Any) -> float:
    return score(fit.transform(case.x_train), case.y_train, fit.transform(case.x_test), case.y_test)


def _plain(case: Case, k: int) -> float:
    """SIR without privacy, on standardised features: with raw ones rounding, not privacy, would decide."""
    scaler = StandardScaler().fit(case.x_train)
    train, test = scaler.transform(case.x_train), scaler.transform(case.x_test)
    sir = SIR(n_directions=k, n_slices=20).fit(train, case.y_train)
    return score(sir.transform(train), case.y_train, sir.transform(test), case.y_test)


def picture(case: Case, fit: PrivateSIR, bars: Sequence[tuple[str, float, float]]) -> None:
    """Loadings of the first direction, the private heat map, and the scores."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams |= {
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    rows = build_document(fit, forecasts=False).loadings[::-1]
    values, errors = [row.values[0] for row in rows], [row.errors[0] for row in rows]
    left.barh(case.features[::-1], values, xerr=errors, color="#559aab", ecolor="#23262b", height=0.65)
    left.axvline(0, color="#696660", linewidth=0.8)
    left.set_title("first direction, per standard deviation")
    draw_picture(fit.picture_, middle)
    middle.set_title("private picture, epsilon 1 in all")
    names = [name for name, _, _ in bars][::-1]
    colours = ["#559aab" if "epsilon" in name else "#c3bdae" for name in names]
    spread = [error for _, _, error in bars][::-1]
    right.barh(names, [value for _, value, _ in bars][::-1], xerr=spread, color=colours, ecolor="#23262b", height=0.65)
    right.set_title(f"boosted trees, held-out {case.unit}")
    right.set_xlim(0, 1)
    figure.savefig(DOCS / "images" / f"gallery-{case.name}.svg", metadata={"Date": None})
    plt.close(figure)


def table(case: Case, raw: float, plain: dict[int, float], private: dict[float, list[tuple[int, float]]]) -> str:
    """Scores in Markdown, with the command."""
    lines = [
        f"| what the model sees | directions | held-out {case.unit} | of the non-private score |",
        "|---|---|---|---|",
        f"| all {len(case.features)} raw features | | {raw:.3f} | |",
        *(f"| {k} direction{'s' * (k > 1)} without privacy | {k} | {value:.3f} | 1 |" for k, value in plain.items()),
    ]
    for epsilon, found in private.items():
        kept = mean([value / plain[k] for k, value in found])
        counts = ", ".join(map(str, sorted({k for k, _ in found})))
        average = mean([value for _, value in found])
        lines.append(f"| private directions, epsilon = {epsilon:g} | {counts} | {average} | {kept} |")
    runs = len(next(iter(private.values())))
    lines += [
        "",
        f"Means over {runs} fits with fresh noise, ± their standard errors; boosted trees with default settings,",
    ]
    lines += [f"trained on {len(case.x_train):,} records and scored on {len(case.x_test):,} others. delta = {DELTA:g}."]
    return "\n".join([*lines, f"Command: `python -m benchmarks gallery`, {commit()}."])


def put(page: Path, text: str) -> None:
    """Replace what stands between the marks of a page."""
    old = page.read_text(encoding="utf-8")
    begin, end = map(re.escape, MARKS)
    new, found = re.subn(f"{begin}.*?{end}", lambda _: f"{MARKS[0]}\n{text}\n{MARKS[1]}", old, flags=re.S)
    assert found == 1, page
    page.write_text(new, encoding="utf-8")


def main(replications: int) -> None:
    """At least 6 fits of each kind."""
    runs = max(6, replications // 10)
    known = Store(RESULTS / "gallery.json", float(os.environ.get("GALLERY_SECONDS", "inf")))
    summary = [
        "| data | records | features | raw features | without privacy | private, epsilon = 1 |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases():
        raw, plain, private = scores(case, runs, known)
        put(DOCS / "gallery" / f"{case.name}.md", table(case, raw, plain, private))
        averages = {epsilon: mean([value for _, value in found]) for epsilon, found in private.items()}
        most = max(plain)
        bars = [("raw features", raw, 0.0), (f"{most} direction{'s' * (most > 1)}, no privacy", plain[most], 0.0)]
        bars += [(f"epsilon {epsilon:g}", one.mean, one.error) for epsilon, one in averages.items()]
        classes = [str(digit) for digit in range(10)] if case.unit == "accuracy" else None
        picture(case, case.estimator(1.0, picture=True, classes=classes).fit(case.x_train, case.y_train), bars)
        size = f"{len(case.x_train) + len(case.x_test):,} | {len(case.features)}"
        summary.append(f"| [{case.name}]({case.name}.md) | {size} | {raw:.3f} | {plain[most]:.3f} | {averages[1.0]} |")
    put(
        DOCS / "gallery" / "index.md",
        "\n".join([*summary, "", f"Command: `python -m benchmarks gallery`, {commit()}."]),
    )
