"""Audit every release and whole fits, with the controls that must be caught; writes benchmarks/results/audit.md.

    python benchmarks/audit.py --runs 10000 --fits 1000 --bodyfat /path/to/bodyfat.csv

Results are kept in audit.json as they come, and a second call continues where the first ended (--fresh starts anew).
The body-fat data (252 men, 13 measurements; R package faraway, `fat`) are used for the tracing attack if given.
"""

import argparse
import csv
import json
import platform
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import norm

from sfumato import Budget
from sfumato.audit import AuditResult, audit, gaussian_check
from sfumato.audit.cases import queries, release_of, selection_of, selections, worst_pair, worst_selection_pair
from sfumato.audit.controls import controls
from sfumato.audit.fits import likelihood, published, realised, sir_task, witnessed, worst_fit_pair
from sfumato.audit.one_run import one_run, sir_canaries
from sfumato.audit.table import RELATIONS, markdown
from sfumato.audit.tracing import private_direction, raw_direction, roc_svg, trace
from sfumato.privacy.noise import SeededNoise

RESULTS = Path(__file__).parent / "results"
DELTA = 1e-6
SURE = 1 - 0.01 / 60  # 60 sharp checks: 99 % for all together
MEASURES = (
    "age",
    "weight",
    "height",
    "neck",
    "chest",
    "abdom",
    "hip",
    "thigh",
    "knee",
    "ankle",
    "biceps",
    "forearm",
    "wrist",
)


class Kept:
    """Results by name, saved after each."""

    def __init__(self, path, fresh):
        self.path = path
        self.values = json.loads(path.read_text()) if path.exists() and not fresh else {}

    def result(self, name, compute):
        if name not in self.values:
            began = time.monotonic()
            self.values[name] = asdict(compute()) | {"name": name}
            self.path.write_text(json.dumps(self.values, indent=1))
            print(f"{time.monotonic() - began:7.1f} s  {name}", file=sys.stderr)
        return AuditResult(**self.values[name])

    def value(self, name, compute):
        if name not in self.values:
            self.values[name] = compute()
            self.path.write_text(json.dumps(self.values, indent=1))
        return self.values[name]


def releases(kept, runs):
    """One Gaussian release of every kind; at epsilon = 1 four times the runs, as mu is small."""
    rows, lines = [], ["| release | claimed mu | mu from the noise's spread >= | tightness | Gaussian (p) |"]
    lines.append("|---|---|---|---|---|")
    for epsilon, count in ((1.0, 4 * runs), (3.0, runs)):
        mu = Budget.approximate(epsilon, DELTA).mu()
        for title, query in queries().items():
            for relation in RELATIONS:
                name = f"{title}, {relation}, epsilon = {epsilon:g}"
                pair, mechanism = worst_pair(query, relation), release_of(query, relation, mu)
                args = (mechanism, pair.d, pair.d_prime)
                rows.append(kept.result(name, partial(audit, *args, mu, count)))
                seed = int(1000 * epsilon) + len(rows)
                check = kept.value(
                    f"spread: {name}", lambda a=args, s=seed: asdict(gaussian_check(*a, 6_000, SURE, seed=s))
                )
                lower = check["mu_lower"]
                lines.append(f"| {name} | {mu:.4f} | {lower:.4f} | {lower / mu:.3f} | {check['p_value']:.3f} |")
    return rows, "\n".join(lines)


def picks(kept, runs):
    """One pick by the exponential mechanism, of every query that is answered so."""
    rows = []
    for name, query in selections().items():
        for relation in RELATIONS:
            pair = worst_selection_pair(query, relation)
            args = (selection_of(query, relation, 1.0), pair.d, pair.d_prime, (1.0, 0.0), runs)
            rows.append(kept.result(f"pick by {name}, {relation}, epsilon = 1", partial(audit, *args)))
    return rows


def fits(kept, count):
    rows, lines = [], ["| fit | claimed mu | mu on the course of 50 fits: mean | largest |", "|---|---|---|---|"]
    for epsilon in (1.0, 3.0):
        budget = Budget.approximate(epsilon, DELTA)
        for method in ("descent", "one-shot"):
            for relation in RELATIONS:
                task = sir_task(3, 40 if relation == "replace" else None, method)
                d, d_prime = worst_fit_pair(task, budget, relation, seed=1)
                courses = [witnessed(task, budget, relation, d, SeededNoise(s)) for s in range(50)]
                moved = [realised(course, d, d_prime) for course in courses]
                means = f"{np.mean(moved):.4f} | {max(moved):.4f}"
                lines.append(f"| {method}, {relation}, epsilon = {epsilon:g} | {budget.mu():.4f} | {means} |")
                whole = likelihood(task, budget, relation, d, d_prime)
                shown = published(task, budget, relation)
                for what, mechanism in (("all releases", whole), ("what is published", shown)):
                    name = f"PrivateSIR {method}, {what}, {relation}, epsilon = {epsilon:g}"
                    rows.append(kept.result(name, partial(audit, mechanism, d, d_prime, budget.mu(), count)))
    return rows, "\n".join(lines)


def one_runs(kept):
    task = sir_task(30, 200 + 600)
    rows = []
    for spent, claimed in ((8.0, 8.0), (20.0, 20.0), (60.0, 60.0), (60.0, 1.0)):
        canaries = sir_canaries(task, Budget.approximate(spent, DELTA), n_base=200, canaries=600)
        label = "honest" if spent == claimed else f"CONTROL, spends {spent:g}"
        name = f"one fit, 600 canaries, claimed epsilon = {claimed:g} ({label})"
        rows.append(kept.result(name, partial(one_run, canaries.scores, 600, (claimed, DELTA), guesses=120)))
    return rows


def tracing(path):
    """Areas under the curves, and the picture."""
    if path is None:
        rng = np.random.default_rng(0)
        x = rng.standard_normal((252, 13))
        y, source = x[:, 0] + rng.standard_normal(252), "synthetic data (252 x 13)"
    else:
        rows = list(csv.DictReader(path.open()))
        x = np.array([[float(row[name]) for name in MEASURES] for row in rows])
        y, source = np.array([float(row["siri"]) for row in rows]), "the body-fat data (252 men, 13 measurements)"
    lines = [
        f"On {source}:",
        "",
        "| attack | raw direction | private, epsilon = 1, delta = 1e-5 | most any attack can reach |",
        "|---|---|---|---|",
    ]
    budget = Budget.approximate(1.0, 1e-5)
    most = float(norm.cdf(budget.mu() / np.sqrt(2)))  # of a test of N(0, 1) against N(mu, 1)
    for attack in ("paper", "reference"):
        private = private_direction(budget, SeededNoise(1))
        curves = trace(x, y, {"raw": raw_direction, "private": private}, attack=attack, splits=400)
        lines.append(f"| {attack} | area {curves[0].area:.3f} | area {curves[1].area:.3f} | area {most:.3f} |")
    (RESULTS / "tracing.svg").write_text(roc_svg(curves))
    return "\n".join([*lines, "", "![ROC of the tracing attack](tracing.svg)"])


def page(kept, given):
    rows, spreads = releases(kept, given.runs)
    picked = picks(kept, given.runs)
    (whole, moved), single = fits(kept, given.fits), one_runs(kept)
    broken = [
        kept.result(f"CONTROL {c.name}", partial(audit, c.mechanism, c.d, c.d_prime, c.claimed, 5_000))
        for c in controls()
    ]
    honest = [*rows, *picked, *whole, *single[:-1]]
    return "\n".join(
        [
            "# Audit",
            "",
            f"`python {' '.join(sys.argv)}`, Python {platform.python_version()}.",
            f"Confidence 99 %; epsilon at delta = {DELTA:g}.",
            "",
            f"{sum(r.passed for r in honest)} of {len(honest)} claims hold; "
            f"{sum(not r.passed for r in [*broken, single[-1]])} of {len(broken) + 1} controls caught; "
            f"least tightness of a single release {min(r.tightness for r in rows):.2f}.",
            "",
            "## Single releases, as a black box",
            markdown(rows, DELTA),
            "",
            "## Single releases, noise known to be additive and Gaussian (6,000 runs)",
            "The difference between the neighbours is exact (equal noise on both); only the spread is estimated. "
            "The lower bounds hold with 99 % confidence for the whole table.",
            "",
            spreads,
            "",
            "## Selections (epsilon, delta = 0)",
            markdown(picked, DELTA),
            "",
            "## Whole fits",
            "All releases: the log-likelihood ratio of the two data sets given every answer of the fit.",
            "",
            markdown(whole, DELTA),
            "",
            "What the neighbours differ by along the course of a fit, over its noise (exact, no statistics involved):",
            "",
            moved,
            "",
            "## One fit with canaries",
            markdown(single, DELTA),
            "",
            "## Controls: broken mechanisms that must be caught",
            markdown(broken, DELTA),
            "",
            "## Tracing attack (FSIR paper, example 1)",
            tracing(given.bodyfat),
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--fits", type=int, default=1_000)
    parser.add_argument("--bodyfat", type=Path)
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    kept = Kept(RESULTS / "audit.json", given.fresh)
    (RESULTS / "audit.md").write_text(page(kept, given))


if __name__ == "__main__":
    main()
