"""Every study: what it asks, what it writes, how it is run. ``python -m benchmarks`` and ``make bench`` read this."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

FLOWER = ".venv-flower/bin/python"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One study: `writes` names files under benchmarks/results, and pages of the documentation by their path."""

    purpose: str
    writes: tuple[str, ...]
    run: Callable[[int], None]


def call(module: str, function: str = "main") -> Callable[[int], None]:
    """Run a function of a study with the number of replications; the study is imported when it is run."""

    def run(replications: int) -> None:
        getattr(import_module(f"benchmarks.{module}"), function)(replications)

    return run


def start(module: str, *arguments: str, python: str = sys.executable) -> Callable[[int], None]:
    """Run a study that counts in other units than replications, in a process of its own."""

    def run(replications: int) -> None:
        subprocess.run([python, "-m", f"benchmarks.{module}", *arguments], check=True)

    return run


BENCHMARKS = {
    "accuracy": Benchmark(
        "Table 1 of Xia, Zhang and Cai: private against non-private SIR at the same total budget",
        ("table1-epsilon-1.md", "table1-epsilon-0.25.md"),
        call("accuracy"),
    ),
    "audit": Benchmark(
        "what an attacker can prove about every release, device and whole fit",
        ("audit.json", "docs/explanation/audit.md"),
        start("audit"),
    ),
    "budgets": Benchmark(
        "some rows of that table at many budgets", ("table1-budgets.md",), call("accuracy", "budgets")
    ),
    "eased-scores": Benchmark(
        "what scores make of values beyond the box of a fit", ("eased-scores.md",), start("eased")
    ),
    "few-records": Benchmark(
        "its models with a few thousand records at many budgets",
        ("table1-few-records.md",),
        call("accuracy", "few_records"),
    ),
    "censored-sir": Benchmark(
        "times that are cut short: events and double slicing beside SIR that does not know",
        ("censored-sir.md",),
        call("responses", "censored"),
    ),
    "cli": Benchmark("what the command line adds to the time of the library", ("cli.md",), start("cli")),
    "dimension": Benchmark("how often n_directions='auto' is right", ("dimension.md",), call("dimension")),
    "elimination": Benchmark(
        "what leaving out features that do not show is worth, with privacy and without",
        ("elimination.md",),
        call("accuracy", "elimination"),
    ),
    "federated": Benchmark(
        "what trust is worth over sites, and which schedule a federated descent takes",
        ("federated-schedule.md", "federated-shaped.md", "federated-trust.md"),
        call("federated"),
    ),
    "flows": Benchmark(
        "Rayleigh flow beside one release solved exactly; three ways to sparse components",
        ("flows.md", "sparse-pca.md"),
        call("flows"),
    ),
    "forecast": Benchmark(
        "the predicted loss against the measured mean: SIR", ("forecast.md", "forecast.svg"), call("forecast")
    ),
    "forecast-family": Benchmark(
        "the predicted loss against the measured mean: the other estimators, and sites",
        ("forecast-family.md", "forecast-sites.md", "forecast-cells.md"),
        call("forecast_family"),
    ),
    "forward": Benchmark(
        "gradients in cells and steps of least average variance beside SIR, Hessian directions and DR",
        ("forward.md",),
        call("forward"),
    ),
    "fuzz": Benchmark(
        "hostile input for every entry point", ("fuzz.json", "fuzz.md"), start("fuzz", "--cases", "10000", "--keep")
    ),
    "gallery": Benchmark(
        "three built-in data sets: what a model keeps when it sees private directions",
        ("gallery.json", "docs/gallery"),
        call("gallery"),
    ),
    "gep": Benchmark(
        "components, pairs, discriminants and second-order reduction beside their plain peers",
        ("gep.md", "gep-cca.md", "gep-lda.md", "gep-pca.md", "gep-second-order.md"),
        call("gep"),
    ),
    "forecast-grid": Benchmark(
        "the predicted loss against the measured mean where fits fail, too",
        ("forecast-grid.md",),
        start("forecast_grid"),
    ),
    "honest-again": Benchmark(
        "whether what is called reliable comes out again", ("honest-again.md",), start("honest", "again")
    ),
    "honest-causes": Benchmark(
        "why less is kept on private directions: one cause taken away at a time", ("honest-causes.md",), start("causes")
    ),
    "honest-causes-wide": Benchmark(
        "the same on tables of sixty features", ("honest-causes-wide.md",), start("causes", "--wide")
    ),
    "honest-coverage": Benchmark(
        "whether stated errors cover the true ones", ("honest-coverage.md",), start("honest", "coverage")
    ),
    "honest-directions": Benchmark(
        "which directions are called reliable, and whether they come out again",
        ("honest-directions.md",),
        start("unseen", "--directions"),
    ),
    "honest-family": Benchmark(
        "whether what the other estimators say about their fits is true", ("honest-family.md",), start("honest_family")
    ),
    "honest-level": Benchmark(
        "how often a fit finds what is not there", ("honest-level.md",), start("honest", "level")
    ),
    "honest-limit": Benchmark(
        "how far a fit without noise is from plain SIR", ("honest-limit.md",), start("honest", "limit")
    ),
    "honest-needs": Benchmark(
        "whether a weak fit becomes reliable with what its verdict asks for",
        ("honest-needs.md",),
        start("honest", "needs"),
    ),
    "honest-power": Benchmark("how often a fit finds what is there", ("honest-power.md",), start("honest", "power")),
    "honest-unseen": Benchmark(
        "whether all that is so on tables that nobody had looked at before", ("honest-unseen.md",), start("unseen")
    ),
    "honest-unseen-kept": Benchmark(
        "what models keep on tables that nobody had looked at before",
        ("honest-unseen-kept.md",),
        start("unseen", "--kept"),
    ),
    "initial-noise": Benchmark(
        "what noise the printed DP-Ini columns show", ("initial-noise.md",), call("initial_noise")
    ),
    "kill-ledger": Benchmark(
        "kill -9 in the middle of fits that share one ledger, and races for the rest of a cap",
        ("kill_ledger.md",),
        start("kill_ledger", "--out", "benchmarks/results/kill_ledger.md"),
    ),
    "kill-federation": Benchmark(
        "kill -9 of each party of a real federation at random moments",
        ("kill-federation.md",),
        start("kill_federation", "--out", "benchmarks/results/kill-federation.md"),
    ),
    "label": Benchmark(
        "labels randomised by their owners: SIR and sparse regression",
        ("label-classes.md", "label-iht.md", "label-iht.svg", "label-lasso.md", "label-sir.md", "label-waves.md"),
        call("label"),
    ),
    "limits": Benchmark(
        "where the flagship stands between the bounds and the papers' methods", ("limits.md",), call("limits")
    ),
    "location": Benchmark("what unknown bounds cost: the models", ("location.md",), call("location", "models")),
    "location-scales": Benchmark(
        "what unknown bounds cost: scales", ("location-scales.md",), call("location", "scales")
    ),
    "location-tables": Benchmark(
        "what unknown bounds cost: awkward tables", ("location-tables.md",), call("location", "tables")
    ),
    "long-ledger": Benchmark(
        "time and memory to open a ledger of a hundred thousand lines",
        ("long_ledger.md",),
        start("long_ledger", "--out", "benchmarks/results/long_ledger.md"),
    ),
    "model-three": Benchmark(
        "how model III of He, Zhang and Chen was drawn", ("fsir-model-three.md",), start("model_three")
    ),
    "multi-sir": Benchmark(
        "several responses: one fit of all beside one of each, and beside canonical correlations",
        ("multi-sir.md",),
        call("responses", "several"),
    ),
    "peers-budget": Benchmark(
        "other private ways to a direction at the same budget and bounds",
        ("peers-budget.md", "peers-budget-pca.md", "peers-budget-real.md"),
        call("peers_budget"),
    ),
    "normal-scores": Benchmark(
        "what models keep on private directions of normal scores", ("normal-scores.md",), call("normal_scores")
    ),
    "peers": Benchmark(
        "the same samples through other people's software and ours", ("peers.json", "docs/peers.md"), call("peers")
    ),
    "persons": Benchmark(
        "what protecting persons costs, and what an attack on a whole person finds",
        ("persons.md", "persons-audit.md"),
        call("persons"),
    ),
    "phd": Benchmark(
        "curvature: principal Hessian directions beside SAVE and directional regression",
        ("phd.md",),
        call("phd"),
    ),
    "real": Benchmark("what a boosted-tree model keeps on real data", ("real.md",), call("real")),
    "replay": Benchmark("replay of every private fit on hostile neighbours", ("replay.md",), start("replay")),
    "scale-features": Benchmark("time against features", ("scale-features.md",), call("scale", "features")),
    "scale-rows": Benchmark("time and memory against rows", ("scale-rows.md",), call("scale", "rows")),
    "scale-workers": Benchmark(
        "time and bytes sent against workers of a cluster", ("scale-workers.md",), call("scale", "workers")
    ),
    "scale-vast": Benchmark("two hundred million rows in a few gigabytes", ("scale-vast.md",), call("scale", "vast")),
    "masks": Benchmark(
        "whether pairwise masks with signed keys can carry our sums, and what attacks on them yield",
        ("secagg-masks.md",),
        start("masks", python=FLOWER),
    ),
    "secagg": Benchmark("whether Flower's SecAgg+ can carry our sums", ("secagg.md",), start("secagg", python=FLOWER)),
    "sparse": Benchmark(
        "Table 2 of Xia, Zhang and Cai: the sparse flagship beside the oracle", ("sparse.md",), call("sparse")
    ),
    "sparse-blocks": Benchmark(
        "what taking off whole effects is worth where features come in blocks",
        ("sparse-blocks.md",),
        call("sparse", "blocks"),
    ),
    "sparse-designs": Benchmark(
        "two to ten features that matter among thousands, in correlated designs",
        ("sparse-designs.md",),
        call("sparse", "designs"),
    ),
    "sparse-pca-relations": Benchmark(
        "sparse components of small tables under both relations",
        ("sparse-pca-relations.md",),
        call("flows", "relations"),
    ),
    "sparse-speed": Benchmark(
        "the sparse flagship at p = 10,000 against one pass of sign scores", ("sparse-speed.md",), start("sparse_speed")
    ),
    "sparse-sites": Benchmark(
        "which part of a sparse fit over sites loses, one release after another without noise",
        ("sparse-sites.md",),
        call("sparse_sites"),
    ),
    "speed": Benchmark(
        "speed and memory as ratios in one run",
        ("speed-memory.md", "speed-noise.md", "speed-parquet.md"),
        call("speed"),
    ),
    "speed-import": Benchmark("what importing the flagship takes", ("speed-import.md",), call("speed", "imports")),
    "timing": Benchmark("whether the time of a fit tells anything about the records", ("timing.md",), start("timing")),
}
