"""The predicted loss against the measured mean: components, canonical pairs, discriminants, and sites."""

from collections.abc import Callable, Sequence
from typing import Any

import sfumato as sf
from benchmarks.forecast_samples import (
    DELTA,
    at_sites,
    censored,
    classes,
    components,
    even,
    few_explain,
    few_vary,
    pairs,
    several,
)
from benchmarks.study import mean, replicate, write
from sfumato.federated.task import federated_task
from sfumato.forecast import forecast
from sfumato.privacy.budget import Budget
from sfumato.records import Response
from sfumato.settings.federated import SiteFacts

DRAWS, CELL_DRAWS = 24, 240
"""Of cells more: a fit of a few thousand records may miss a direction, one draw of which moves a mean of 24 by half."""
COMPONENTS = (
    (50_000, 20, 3, 1.0, 0.5),
    (50_000, 60, 3, 1.0, 0.2),
    (20_000, 10, 1, 1.0, 0.2),
    (20_000, 40, 2, 0.3, 0.5),
    (5_000, 10, 1, 0.3, 0.5),
    (2_000, 30, 1, 1.0, 0.5),
    (1_000, 5, 1, 1.0, 0.5),
    (500, 10, 1, 2.0, 0.3),
)
PAIRS = (
    (50_000, 10, 10, 2, 1.0, 0.25),
    (20_000, 10, 5, 1, 1.0, 0.5),
    (20_000, 20, 20, 1, 1.0, 0.5),
    (10_000, 5, 5, 1, 0.3, 0.8),
    (2_000, 4, 3, 1, 1.0, 0.5),
)
CLASSES = (
    (50_000, 20, 3, 1.0, 0.3),
    (20_000, 10, 2, 1.0, 0.5),
    (20_000, 10, 5, 0.3, 0.5),
    (5_000, 8, 2, 1.0, 0.8),
    (2_000, 5, 3, 1.0, 0.5),
)
FEW_EXPLAIN = (
    (20_000, 200, 1.0, 0.3),
    (4_000, 2_000, 1.0, 0.5),
    (2_000, 1_000, 1.0, 0.5),
    (1_500, 2_000, 1.0, 0.9),
    (1_000, 1_000, 1.0, 0.5),
)
FEW_VARY = (
    (20_000, 1_000, 1.0, 0.3),
    (10_000, 200, 0.5, 0.4),
    (5_000, 1_000, 1.0, 0.5),
    (2_000, 100, 1.0, 0.8),
    (2_000, 1_000, 1.0, 0.5),
)
SQUARES = (
    ("SAVE", 50_000, 30, 1.0, 0.8),
    ("SAVE", 20_000, 10, 0.5, 0.3),
    ("SAVE", 5_000, 5, 1.0, 0.8),
    ("DR", 50_000, 10, 1.0, 0.5),
    ("DR", 20_000, 20, 1.0, 0.8),
    ("DR", 3_000, 5, 2.0, 0.5),
)
SEVERAL = (
    (50_000, 20, 2, 2, 1.0, 0.5),
    (20_000, 10, 2, 1, 0.5, 0.3),
    (20_000, 10, 3, 3, 1.0, 0.5),
    (5_000, 10, 2, 2, 1.0, 0.5),
    (5_000, 5, 3, 1, 0.5, 0.5),
    (2_000, 5, 2, 1, 1.0, 0.5),
)
CENSORED = (
    ("events", 50_000, 20, 1.0, 0.5),
    ("events", 20_000, 10, 0.5, 0.3),
    ("events", 5_000, 10, 1.0, 0.5),
    ("events", 2_000, 5, 1.0, 0.5),
    ("double-slicing", 20_000, 10, 0.5, 0.3),
    ("double-slicing", 5_000, 10, 1.0, 0.5),
)
SITES = (
    (10, 2_000, 10, 1.0, "sites"),
    (10, 300, 5, 1.0, "sites"),
    (30, 300, 8, 1.0, "sites"),
    (5, 400, 5, 0.5, "sites"),
    (5, 400, 5, 0.5, "secure-aggregation"),
    (20, 100, 5, 1.0, "secure-aggregation"),
)


def foreseen_at_sites(clients: int, n: int, p: int, epsilon: float, trust: str) -> tuple[list[float], str]:
    """Predicted losses of both methods, and the one that ``method="auto"`` takes."""
    noises = clients if trust == "sites" else clients / (clients - 1)
    facts = {str(i): SiteFacts(p, n, Response()) for i in range(clients)}
    estimator = sf.PrivateSIR(epsilon, DELTA, 1, sf.Bounds(-3, 3))
    task = federated_task(estimator, facts, "replace", noises)
    prospect, budget = task.prospect(), Budget.approximate(epsilon, DELTA)
    options = {"noises": noises, "draws": DRAWS}
    seen = [forecast(fit, budget, clients * n, prospect.population, **options).loss for _, fit in prospect.fits]
    return seen, task.method


def rows_of(
    kind: str,
    cases: Sequence[tuple[Any, ...]],
    job: Callable[..., Any],
    made: Callable[..., Any],
    replications: int,
    draws: int = DRAWS,
) -> list[tuple[Any, ...]]:
    """A row for each case and method: measured, predicted, their ratio, and the choice of ``method="auto"``."""
    rows = []
    for case in cases:
        measured = replicate(job, replications, *case).T
        explanation = made(*case)
        population, budget = explanation.prospect.explaining(case[-1]), explanation.budget
        for column, (name, fit) in zip(measured, explanation.prospect.fits, strict=True):
            seen, truth = forecast(fit, budget, explanation.n_samples, population, draws=draws), mean(column)
            ratio = f"{seen.loss / truth.mean:.2f}"
            advised = "yes" if name == explanation.recommended else ""
            cells = (f"{seen.loss:.4f}", ratio, f"{seen.plain:.4f}", advised)
            rows.append((kind, ", ".join(map(str, case)), name, truth, *cells))
    return rows


def _laws(replications: int) -> None:
    box, wide = sf.Bounds(-1, 1), sf.Bounds(-8, 8)
    rows = rows_of(
        "components: n, p, k, epsilon, signal",
        COMPONENTS,
        components,
        lambda n, p, k, epsilon, _: sf.PrivatePCA(k, epsilon, DELTA, box).explain(n, p),
        replications,
    )
    rows += rows_of(
        "pairs: n, p, q, k, epsilon, signal",
        PAIRS,
        pairs,
        lambda n, p, q, k, epsilon, _: sf.PrivateCCA(k, epsilon, DELTA, box, box).explain(n, p, q),
        replications,
    )
    rows += rows_of(
        "classes: n, p, classes, epsilon, signal",
        CLASSES,
        classes,
        lambda n, p, h, epsilon, _: sf.PrivateLDA(epsilon, DELTA, 1, wide, list(range(h))).explain(n, p),
        replications,
    )
    rows += rows_of(
        "sparse SIR: n, p, epsilon, signal",
        FEW_EXPLAIN,
        few_explain,
        lambda n, p, epsilon, _: sf.PrivateSparseSIR(epsilon, DELTA, 1, box).explain(n, p),
        replications,
    )
    rows += rows_of(
        "sparse component: n, p, epsilon, signal",
        FEW_VARY,
        few_vary,
        lambda n, p, epsilon, _: sf.PrivateSparsePCA(1, epsilon, DELTA, box).explain(n, p),
        replications,
    )
    kinds = {"SAVE": sf.PrivateSAVE, "DR": sf.PrivateDR}
    rows += rows_of(
        "squares: method, n, p, epsilon, signal",
        SQUARES,
        even,
        lambda name, n, p, epsilon, _: kinds[name](epsilon, DELTA, 1, wide).explain(n, p),
        replications,
    )
    _write("forecast-family", "components, canonical pairs, discriminants, sparse fits, squares", rows, replications)


def _cells(replications: int) -> None:
    box = sf.Bounds(-5, 5)
    rows = rows_of(
        "several responses: n, p, q, k, epsilon, signal",
        SEVERAL,
        several,
        lambda n, p, q, k, epsilon, _: sf.PrivateMultiSIR(epsilon, DELTA, k, box).explain(n, p, q),
        replications,
        CELL_DRAWS,
    )
    rows += rows_of(
        "censored times: method, n, p, epsilon, signal",
        CENSORED,
        censored,
        lambda method, n, p, epsilon, _: sf.PrivateCensoredSIR(epsilon, DELTA, 1, box, method=method).explain(n, p),
        replications,
        CELL_DRAWS,
    )
    _write("forecast-cells", "several responses, censored times", rows, replications)


def _write(name: str, what: str, rows: list[tuple[Any, ...]], replications: int) -> None:
    close = sum(abs(float(row[5]) - 1) <= 0.25 for row in rows)
    write(
        name,
        f"python -m benchmarks forecast-family --replications {replications}",
        f"Predicted against measured loss: {what}\n"
        f"Distance to the true directions, delta = 1e-6, bounds given; measured over {replications} fits (mean ± "
        f"standard error), predicted from the noise of the plan and the law alone. Within 25 %: {close} of {len(rows)}."
        " 'Advised' is the method of least expected loss.",
        ("kind", "setting", "method", "measured", "predicted", "ratio", "predicted without privacy", "advised"),
        rows,
    )


def _sites(replications: int) -> None:
    rows, ratios = [], []
    for case in SITES:
        measured = [mean(column) for column in replicate(at_sites, replications, *case).T]
        seen, chosen = foreseen_at_sites(*case)
        ratios += [guess / truth.mean for guess, truth in zip(seen, measured, strict=True)]
        rows.append((*case, measured[0], f"{seen[0]:.3f}", measured[1], f"{seen[1]:.3f}", chosen))
    close = sum(abs(ratio - 1) <= 0.25 for ratio in ratios)
    write(
        "forecast-sites",
        f"python -m benchmarks forecast-family --replications {replications}",
        "Predicted against measured loss over sites\n"
        "PrivateSIR, signal 50 %, delta = 1e-6, the schedule of the federation and the noise its sites add; measured "
        f"over {replications} federations (mean ± standard error). Within 25 %: {close} of {len(ratios)}. 'Auto' is "
        'what `method="auto"` takes, from public numbers alone.',
        ("sites", "n each", "p", "epsilon", "trust", "descent", "predicted", "one-shot", "predicted", "auto"),
        rows,
    )


def main(replications: int) -> None:
    """Every kind of forecast that is not of a central PrivateSIR (that one: ``forecast``)."""
    _sites(replications)
    _laws(replications)
    _cells(replications)
