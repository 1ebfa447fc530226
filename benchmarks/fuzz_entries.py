"""Hostile input by entry point: each function makes one case from a generator and hands it in."""

import contextlib
import io
import json

import numpy as np

import sfumato
from benchmarks.fuzz_files import ONE, PRIVATE, pick, replaced, spoiled
from sfumato import Bounds, Budget, Ledger, PrivateSIR, SfumatoError
from sfumato.model import load_model
from sfumato.privacy.accounting import total_rho
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.ledger.admin import repair, show
from sfumato.privacy.plan import Line, Plan
from sfumato.report.build import build_document
from sfumato.report.html import render
from sfumato.sources.files import open_source

ODD = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1e308, -1.7e308, 2.0**53, 1e-12, np.pi, np.nan, np.inf, -np.inf]
WORDS = ["", "a", "NaN", "inf", "1e999", "\x00", "é" * 40, "=1+1", '"', ",", "\ud800", "1_000", "١٢"]
THINGS = [None, True, -1, 0, 1, 2, 7.5, 1e308, 10**30, np.nan, np.inf, -1e-320, "auto", "x", "", b"b", [], {}, (1, 2)]
LOCAL = ("LabelPrivateSIR", "LabelPrivateIHT", "LocalSIR")
COMMANDS = ("fit", "explain", "bounds", "transform", "report", "ledger", "local", "datasets", "audit", "reproduce")


def odd_numbers(rng, shape, dirty):
    pool = np.array(ODD if dirty else ODD[:11])
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-300, 300)
    return np.where(rng.random(shape) < 0.3, rng.choice(pool, shape), values)


def odd_table(rng):
    n, p = int(rng.choice([0, 1, 2, 3, 17, 100])), int(rng.choice([0, 1, 2, 5, 40]))
    kind = rng.integers(9)
    with np.errstate(all="ignore"):
        x = odd_numbers(rng, (n, p), dirty=kind == 0)
        if kind == 1:
            return x.astype(rng.choice(["f4", "f2", "i1", "u8", "?", "c16", "g"]))
        if kind == 2:
            return np.where(rng.random((n, p)) < 0.1, rng.choice(WORDS), x.astype(object))
        if kind == 3:
            return [*x.tolist(), [1.0] * int(rng.integers(4))]
        if kind == 4:
            return np.repeat(x[:, :1], p, axis=1)  # duplicate columns, p > n
        if kind == 5:
            return [x.ravel(), None, {}, "text", 7, [], [[]], [[[1]]]][int(rng.integers(8))]
    return x


def odd_response(rng, x):
    n = len(x) if hasattr(x, "__len__") else 3
    kind = rng.integers(9)
    if kind == 0:
        return np.zeros(n)
    if kind == 1:
        return rng.choice(np.array(WORDS, dtype=object), n)
    if kind == 2:
        return np.arange(n).astype(str)
    if kind == 3:
        return odd_numbers(rng, max(n - 1, 0), dirty=True)
    if kind == 4:
        return rng.choice(np.array([None, True, 3, 2.5, "a", b"b", 10**400], dtype=object), n)
    if kind == 5:
        return odd_numbers(rng, (n, 2), dirty=False)
    return odd_numbers(rng, n, dirty=kind == 6)


def arrays(rng, folder):
    """X and y of any shape, type and value into the `fit` of any private estimator; refused ones must cost nothing."""
    x = odd_table(rng)
    y = odd_response(rng, x)
    name = pick(rng, (*PRIVATE, "PrivateCCA", "PrivateSIR", "PrivateSIR"))
    ledger = Ledger(Budget.approximate(100, 1e-6), "replace", rehearsal=True)
    bounds = {} if rng.random() < 0.5 else {"bounds": Bounds(-1, 1)}
    estimator = getattr(sfumato, name)(**bounds, ledger=ledger, random_state=1)
    try:
        fitted = estimator.fit(x, y)
    except SfumatoError:
        assert len(ledger) == 0, "refused after a release"
        raise
    assert np.isfinite(fitted.directions_).all(), "a direction is not finite"


def parameters(rng, folder):
    """Any estimator with one to three parameters that are anything at all, fitted to a good table."""
    kind = getattr(sfumato, pick(rng, (*PRIVATE, *LOCAL)))
    names = [name for name in kind().get_params() if name not in ("ledger", "random_state")]
    changed = {pick(rng, names): pick(rng, THINGS) for _ in range(int(rng.integers(1, 4)))}
    x = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    kind(**{"random_state": 1} | changed).fit(x, x[:, 0])


def plans(rng, folder):
    """Budgets and plans of any numbers: calibrated, totalled, explained."""
    numbers = [*THINGS[1:12], *ODD, *[1e-6, 0.01, 0.5, 3.0] * 12]
    budget = Budget.zcdp(pick(rng, numbers)) if rng.random() < 0.3 else Budget(pick(rng, numbers), pick(rng, numbers))
    kinds = ("gaussian", "selection")  # what estimators plan
    lines = [
        Line(str(i), "odd", pick(rng, numbers), "1 / 1", pick(rng, kinds), int(rng.integers(1, 5)))
        for i in range(int(rng.integers(0, 5)))
    ]
    plan = Plan(tuple(lines)).calibrate(budget)
    ledger = Ledger(budget, "replace")
    ledger.reserve(plan)
    estimator = PrivateSIR(pick(rng, numbers), pick(rng, numbers), rho=pick(rng, [None, *numbers]))
    str(estimator.explain(pick(rng, [0, 1, 10, 1000, 10**12]), pick(rng, [0, 1, 3, 10**6])))


def tables(suffix):
    def case(rng, folder):
        source = open_source([spoiled(rng, folder, suffix)], "y", None if rng.random() < 0.5 else ["a", "b"])
        source.check()
        for part in source.parts():
            for records in source.read(part):
                assert records.is_finite(), "not finite after the check"

    case.__doc__ = f"A spoiled {suffix} file, opened, checked and read."
    return case


def ledgers(rng, folder):
    """A spoiled ledger: shown, reserved from, repaired; it never counts less than its sound beginning."""
    path = spoiled(rng, folder, ".jsonl")
    ledger = FileLedger(path)
    show(ledger, entries=True)
    before = total_rho(ledger._account.events)
    try:
        ledger.reserve(ONE)
    except SfumatoError:
        repair(path, "fuzz", lost=Budget.zcdp(0.01))
        FileLedger(path).reserve(ONE)
    assert FileLedger(path).rho >= min(before, 1e9) * (1 - 1e-9), "counts less than before"
    FileLedger(path).verify()


def models(rng, folder):
    """A spoiled model file of any estimator, loaded and used."""
    seed = f"seed-{pick(rng, (*PRIVATE, 'PrivateCCA'))}"
    load_model(spoiled(rng, folder, ".json", seed)).transform(np.zeros((1, 3)))


def structures(rng, folder):
    """A model file of any estimator with one value replaced by another kind of value, loaded, used and reported."""
    name = pick(rng, (*PRIVATE, "PrivateCCA"))
    data = replaced(rng, json.loads((folder / f"seed-{name}.json").read_text()))
    (folder / "case.json").write_text(json.dumps(data))
    model = load_model(folder / "case.json")
    model.transform(np.zeros((1, 3)))
    render(build_document(model, forecasts=False))


def commands(rng, folder):
    """A command line of odd words, files and options: an exit code of the list, no traceback, one line of error."""
    from sfumato.cli.app import app

    files = [str(folder / f"seed.{kind}") for kind in ("csv", "parquet", "jsonl", "json")]
    options = ["--response", "-y", "--epsilon", "--delta", "--out", "--features", "--bounds", "--n", "--p", "--help"]
    options += ["--estimator", "--estimator", "--second", "--max-features", "--slices", "--classes"]
    words = [*files, *options, *WORDS[1:5], "y", "a,b", "1", "-1", "nan", "show", "create", "randomize", "fit", "list"]
    words += ["pca", "cca", "lda", "sparse-pca", "dr", "c*"]
    line = [pick(rng, COMMANDS), *(pick(rng, words) for _ in range(int(rng.integers(0, 6))))]
    if line[0] in ("audit", "reproduce"):
        line = [line[0], "--bad" if rng.random() < 0.5 else pick(rng, words), "--nothing"]  # never the long real thing
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder / "work"), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(line)
        except SystemExit as end:
            code = end.code or 0
    assert code in (0, 2, 3), f"exit code {code}: {err.getvalue()[:80]}"
    assert "Traceback" not in err.getvalue() and "please report" not in err.getvalue(), err.getvalue()[:80]
    if code:
        raise SfumatoError(" ".join(err.getvalue().split()))


ENTRIES = {
    "arrays": arrays,
    "parameters": parameters,
    "plans": plans,
    "csv": tables(".csv"),
    "parquet": tables(".parquet"),
    "feather": tables(".feather"),
    "ledgers": ledgers,
    "model bytes": models,
    "model structure": structures,
    "commands": commands,
}
