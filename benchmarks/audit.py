"""Audit every release, device and whole fit, with the controls that must be caught; writes docs/explanation/audit.md.

    python benchmarks/audit.py --runs 10000 --fits 1000 --bodyfat /path/to/bodyfat.csv

Results are kept in audit.json as they come, and a second call continues where the first ended (--fresh starts anew);
`--only fits` computes one part and writes no page. The body-fat data (252 men, 13 measurements; R package faraway,
`fat`) are used for the tracing attack if given.
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

from sfumato import Bounds, Budget, PrivateSIR
from sfumato.audit import AuditResult, audit, gaussian_check
from sfumato.audit.blackbox import markdown
from sfumato.audit.controls import controls
from sfumato.audit.fits import FitAudit, audit_fit, cases, published_fits
from sfumato.audit.one_run import one_run, sir_canaries
from sfumato.audit.releases import (
    RELATIONS,
    OneRelease,
    devices,
    queries,
    selection_of,
    selections,
    worst_pair,
    worst_selection_pair,
)
from sfumato.audit.tracing import private_direction, raw_direction, roc_svg, trace
from sfumato.privacy.noise import SeededNoise
from sfumato.research.sums import example_queries

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[1] / "docs"
DELTA = 1e-6
QUERIES = queries() | example_queries()
SURE = 1 - 0.01 / 80  # up to 80 sharp checks: 99 % for all together
SIZES = ("neck", "chest", "abdom", "hip", "thigh", "knee", "ankle", "biceps", "forearm", "wrist")
MEASURES = ("age", "weight", "height", *SIZES)


class Kept:
    """Results by name, saved after each."""

    def __init__(self, path, fresh):
        self.path = path
        self.values = json.loads(path.read_text()) if path.exists() and not fresh else {}

    def value(self, name, compute, runs=0):
        """What is kept, or computed if nothing is, or only fewer runs of a fit."""
        kept = self.values.get(name)
        if kept is None or (runs and kept.get("whole", kept)["runs"] < runs):
            began = time.monotonic()
            self.values[name] = compute()
            self.save()
            print(f"{time.monotonic() - began:7.1f} s  {name}", file=sys.stderr, flush=True)
        return self.values[name]

    def save(self):
        draft = self.path.with_suffix(".part")
        draft.write_text(json.dumps(self.values, indent=1))
        draft.replace(self.path)

    def result(self, name, compute, runs=0):
        return AuditResult(**self.value(name, lambda: asdict(compute()) | {"name": name}, runs))


def releases(kept, given):
    """One Gaussian release of every kind; at epsilon = 1 four times the runs, as mu is small."""
    rows, lines = [], ["| release | claimed mu | mu from the noise's spread >= | tightness | Gaussian (p) |"]
    lines.append("|---|---|---|---|---|")
    for epsilon, count in ((3.0, given.runs), (1.0, 4 * given.runs)):
        mu = Budget.approximate(epsilon, DELTA).mu()
        for title, query in QUERIES.items():
            for relation in RELATIONS:
                name = f"{title}, {relation}, epsilon = {epsilon:g}"
                pair, mechanism = worst_pair(query, relation), OneRelease(query, relation, mu)
                args = (mechanism, pair.d, pair.d_prime)
                rows.append(kept.result(name, partial(audit, *args, mu, count)))
                seed = int(1000 * epsilon) + len(rows)
                check = kept.value(
                    f"spread: {name}", lambda a=args, s=seed: asdict(gaussian_check(*a, 6_000, SURE, seed=s))
                )
                lower = check["mu_lower"]
                lines.append(f"| {name} | {mu:.4f} | {lower:.4f} | {lower / mu:.3f} | {check['p_value']:.3f} |")
    return rows, "\n".join(lines)


def picks(kept, given):
    """One pick by the exponential mechanism, of every query that is answered so."""
    rows = []
    for name, query in selections(QUERIES).items():
        for relation in RELATIONS:
            pair = worst_selection_pair(query, relation)
            args = (selection_of(query, relation, 1.0), pair.d, pair.d_prime, (1.0, 0.0), given.runs)
            rows.append(kept.result(f"pick by {name}, {relation}, epsilon = 1", partial(audit, *args)))
    return rows


def answers(kept, given):
    """One person's answer, from every kind of device."""
    rows = []
    for epsilon in (1.0, 3.0):
        for name, device in devices(epsilon, DELTA).items():
            runs = 4 * given.runs if epsilon == 1.0 and device.gaussian else given.runs
            args = (device.mechanism, device.d, device.d_prime, device.claimed, runs)
            rows.append(kept.result(f"device: {name}, epsilon = {epsilon:g}", partial(audit, *args)))
    return rows


def plan_of_fits():
    """Name and case of every fit, under both relations; at epsilon = 1 too where a person looks first."""
    usual = ("PrivateSIR descent", "PrivateSIR one-shot")
    return [
        (f"{title}, {relation}, epsilon = {epsilon:g}", case)
        for relation in RELATIONS
        for epsilon in (3.0, 1.0)
        for title, case in cases(epsilon, DELTA, relation).items()
        if epsilon == 3.0 or title in usual
    ]


def fits(kept, given):
    """Every estimator end to end: all its releases, and what it shows."""
    rows, lines = [], ["| fit | claimed mu | mu on the course of 20 fits: mean | largest |", "|---|---|---|---|"]
    for name, case in plan_of_fits():
        found = kept.value(name, lambda c=case, n=name: asdict(audit_fit(c, given.fits, name=n)), given.fits)
        one = FitAudit(AuditResult(**found["whole"]), AuditResult(**found["shown"]), tuple(found["moved"]))
        rows += [one.whole, one.shown]
        mu = f"{one.whole.claimed:.4f}" if one.whole.delta is None else ""
        lines.append(f"| {name} | {mu} | {np.mean(one.moved):.4f} | {max(one.moved):.4f} |")
    for name, case in published_fits(3.0, DELTA).items():
        args = (case.mechanism, case.d, case.d_prime, case.claimed, given.fits)
        rows.append(kept.result(f"{name}, epsilon = 3, what is published", partial(audit, *args), given.fits))
    return rows, "\n".join(lines)


def one_runs(kept, given):
    rows = []
    for spent, claimed in ((8.0, 8.0), (20.0, 20.0), (60.0, 60.0), (60.0, 1.0)):
        sir = PrivateSIR(epsilon=spent, delta=DELTA, n_directions=1, bounds=Bounds(-1, 1), method="descent")
        canaries = sir_canaries(sir, 30, n_base=200, canaries=600)
        label = "honest" if spent == claimed else f"CONTROL, spends {spent:g}"
        name = f"one fit, 600 canaries, claimed epsilon = {claimed:g} ({label})"
        rows.append(kept.result(name, partial(one_run, canaries.scores, 600, (claimed, DELTA), guesses=120)))
    return rows


def broken(kept, given):
    return [
        kept.result(f"CONTROL {c.name}", partial(audit, c.mechanism, c.d, c.d_prime, c.claimed, 5_000))
        for c in controls()
    ]


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
    (DOCS / "images" / "tracing.svg").write_text(roc_svg(curves))
    return "\n".join([*lines, "", "![ROC of the tracing attack](../images/tracing.svg)"])


def page(kept, given):
    rows, spreads = releases(kept, given)
    picked, told, (whole, moved) = picks(kept, given), answers(kept, given), fits(kept, given)
    single, caught = one_runs(kept, given), broken(kept, given)
    honest, false = [*rows, *picked, *told, *whole, *single[:-1]], [*caught, single[-1]]
    command = f"python benchmarks/audit.py --runs {given.runs} --fits {given.fits} --bodyfat fat.csv"
    parts = [
        "An attacker who knows all records but one watches a mechanism run many times on two data sets that differ in "
        "that record, guesses which was used, and so proves a *lower* bound on the privacy parameter. A bound above "
        "the claim would refute it; a bound near it (tightness near 1) says how little could be missing unnoticed. "
        "An audit never proves a claim: the proofs are in [privacy](privacy.md) and in the docstrings.",
        f"`{command}`, Python {platform.python_version()}. Confidence 99 % each; epsilon at delta = {DELTA:g}. "
        "`sfumato audit releases` repeats a part of it in a minute.",
        f"**{sum(r.passed for r in honest)} of {len(honest)} claims hold; {sum(not r.passed for r in false)} of "
        f"{len(false)} controls caught; least tightness of a single Gaussian release "
        f"{min(r.tightness for r in rows):.2f}.**",
        "## Single releases, as a black box",
        markdown(rows, DELTA),
        "## Single releases, noise known to be additive and Gaussian (6,000 runs)",
        "The difference between the neighbours is exact (equal noise on both); only the spread is estimated. "
        "The lower bounds hold with 99 % confidence for the whole table.",
        spreads,
        "## Selections (epsilon, delta = 0)",
        markdown(picked, DELTA),
        "## Answers from devices",
        markdown(told, DELTA),
        "## Whole fits, every estimator",
        "All releases: the log-likelihood ratio of the two data sets given every answer of the fit, the most powerful "
        "statistic there is. What is published: every number among the fitted attributes. Few runs prove less than "
        f"the many of a single release, but {given.fits:,} show gross errors.",
        markdown(whole, DELTA),
        "What the neighbours differ by along the course of a fit, over its noise (exact, no statistics involved; a fit "
        "with selections has no mu to compare with, their part is that of equal zCDP cost):",
        moved,
        "## One fit with canaries",
        markdown(single, DELTA),
        "## Controls: broken mechanisms that must be caught",
        markdown(caught, DELTA),
        "## Tracing attack (FSIR paper, example 1)",
        tracing(given.bodyfat),
    ]
    return "# Audit\n\n" + "\n\n".join(parts) + "\n"


PARTS = {
    "releases": releases,
    "picks": picks,
    "answers": answers,
    "fits": fits,
    "one": one_runs,
    "controls": broken,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--fits", type=int, default=1_000)
    parser.add_argument("--bodyfat", type=Path)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    kept = Kept(RESULTS / (f"audit-{given.only}.json" if given.only else "audit.json"), given.fresh)
    if given.only:
        PARTS[given.only](kept, given)
    else:
        for name in PARTS:  # what was computed part by part
            path = RESULTS / f"audit-{name}.json"
            kept.values |= json.loads(path.read_text()) if path.exists() else {}
        kept.save()
        (DOCS / "explanation" / "audit.md").write_text(page(kept, given))


if __name__ == "__main__":
    main()
