"""Hostile input for every entry point; writes benchmarks/results/fuzz.md.

    python benchmarks/fuzz.py --cases 10000

A case is accepted, or refused with a `SfumatoError` in one line; anything else (another exception, more than 20 s) is
a finding, printed with its number so that it can be repeated: `--only arrays --first 1234 --cases 1`.
"""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from sfumato import Bounds, Budget, Ledger, PrivateSIR, SfumatoError
from sfumato.files import open_source
from sfumato.model import load_model, save_model
from sfumato.privacy.ledger import Entry
from sfumato.privacy.ledger_admin import repair, show
from sfumato.privacy.ledger_file import FileLedger
from sfumato.privacy.plan import Line, Plan

OUT = Path(__file__).parent / "results" / "fuzz.md"
ODD = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1e308, -1.7e308, 2.0**53, 1e-12, np.pi, np.nan, np.inf, -np.inf]
WORDS = ["", "a", "NaN", "inf", "1e999", "\x00", "é" * 40, "=1+1", '"', ",", "\ud800", "1_000", "١٢"]
CAP = Budget.zcdp(1e9)
ONE = Plan((Line("a", "a", 1.0, ""), Line("b", "b", 1.0, ""))).calibrate(Budget.zcdp(0.1))


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
    kind = rng.integers(8)
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
    return odd_numbers(rng, n, dirty=kind == 5)


def arrays(rng, folder):
    """X and y of any shape, type and value into `PrivateSIR.fit`; refused ones must cost nothing."""
    x = odd_table(rng)
    y = odd_response(rng, x)
    ledger = Ledger(Budget.approximate(100, 1e-6), "replace", rehearsal=True)
    bounds = rng.choice([None, Bounds(-1, 1)])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = PrivateSIR(bounds=bounds, ledger=ledger, random_state=1).fit(x, y)
    except SfumatoError:
        assert len(ledger) == 0, "refused after a release"
        raise
    assert np.isfinite(fitted.directions_).all(), "a direction is not finite"


def mutated(rng, raw):
    """Bytes changed, cut, repeated or inserted."""
    data = bytearray(raw)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(0, len(data) + 1))
        match int(rng.integers(5)):
            case 0 if data:
                data[min(at, len(data) - 1)] = int(rng.integers(256))
            case 1:
                del data[at : at + int(rng.integers(1, 200))]
            case 2:
                data[at:at] = rng.bytes(int(rng.integers(1, 20)))
            case 3:
                data[at:at] = data[: int(rng.integers(1, 300))]
            case 4:
                data[at:at] = rng.choice(["NaN", "1e999", "{", "}", "[", '"', "\n", "-", "null", "9" * 400]).encode()
    return bytes(data)


def seeds(folder):
    """One good file of each kind."""
    rng = np.random.default_rng(0)
    columns = {name: rng.standard_normal(30) for name in "abc"} | {"y": rng.standard_normal(30)}
    table = pa.table(columns | {"t": ["x", "y", "z"] * 10})
    pq.write_table(table, folder / "seed.parquet")
    feather.write_feather(table, folder / "seed.feather")
    lines = [",".join(table.column_names)] + [",".join(map(str, row.values())) for row in table.to_pylist()]
    (folder / "seed.csv").write_text("\n".join(lines))
    ledger = FileLedger(folder / "seed.jsonl", CAP)
    ledger.reserve(ONE)
    for event in ONE.events:
        ledger.record(Entry("p", "q", event, 1.0, 2.0, 0.5, "replace"))
    x = rng.uniform(-1, 1, (50, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sir = PrivateSIR(bounds=Bounds(-1, 1), picture=True, random_state=0).fit(x, x[:, 0])
    save_model(sir, folder / "seed.json")


def spoiled(rng, folder, suffix):
    path = folder / f"case{suffix}"
    path.write_bytes(mutated(rng, (folder / f"seed{suffix}").read_bytes()))
    return path


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
    before = ledger.rho
    try:
        ledger.reserve(ONE)
    except SfumatoError:
        repair(path, "fuzz", lost=Budget.zcdp(0.01))
        FileLedger(path).reserve(ONE)
    assert FileLedger(path).rho >= min(before, 1e9) * (1 - 1e-9) or before == np.inf, "counts less than before"
    FileLedger(path).verify()


def models(rng, folder):
    """A spoiled model file, loaded and used."""
    load_model(spoiled(rng, folder, ".json")).transform(np.zeros((1, 3)))


def structures(rng, folder):
    """A model file with one value replaced by another kind of value."""
    data = json.loads((folder / "seed.json").read_text())
    place = data
    for _ in range(int(rng.integers(1, 6))):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = keys[int(rng.integers(len(keys)))]
        if not isinstance(place[key], (dict, list)) or rng.random() < 0.3:
            odd = [None, True, -1, 1e308, "x", [], {}, [[1.0]], 10**30, ["a"], {"__class__": "os.system"}]
            place[key] = odd[int(rng.integers(len(odd)))]
            break
        place = place[key]
    (folder / "case.json").write_text(json.dumps(data))
    load_model(folder / "case.json").transform(np.zeros((1, 3)))


ENTRIES = {
    "arrays": arrays,
    "csv": tables(".csv"),
    "parquet": tables(".parquet"),
    "feather": tables(".feather"),
    "ledgers": ledgers,
    "model bytes": models,
    "model structure": structures,
}


def attempt(entry, number, folder):
    """What became of a case: accepted, refused, or what was found."""
    rng = np.random.default_rng([number, sum(entry.encode())])
    signal.alarm(20)
    try:
        ENTRIES[entry](rng, folder)
        return "accepted"
    except SfumatoError as error:
        return "refused" if "\n" not in str(error) else "FOUND a message of several lines"
    except TimeoutError:
        return "FOUND more than 20 s"
    except Exception as error:
        return f"FOUND {type(error).__name__}: {str(error)[:80]!r}"
    finally:
        signal.alarm(0)


def overdue(number, frame):
    raise TimeoutError


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", choices=list(ENTRIES))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, overdue)
    os.environ["OMP_NUM_THREADS"] = "1"
    lines = ["| entry point | cases | accepted | refused | found | s |", "|---|---|---|---|---|---|"]
    found = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seeds(folder)
        for entry in [given.only] if given.only else ENTRIES:
            began, tally = time.monotonic(), Counter()
            for number in range(given.first, given.first + given.cases):
                outcome = attempt(entry, number, folder)
                tally[outcome.split()[0]] += 1
                if outcome.startswith("FOUND"):
                    found[f"{entry} {outcome}"] += 1
                    if found[f"{entry} {outcome}"] == 1:
                        print(entry, number, outcome, file=sys.stderr, flush=True)
            cells = (given.cases, tally["accepted"], tally["refused"], tally["FOUND"])
            lines.append(f"| {entry} | {' | '.join(map(str, cells))} | {time.monotonic() - began:.0f} |")
            print(lines[-1], flush=True)
    notes = [f"* {count} x {what}" for what, count in found.items()] or ["No uncaught exception, no hang."]
    head = f"`python {' '.join(sys.argv)}`, Python {platform.python_version()}."
    if given.out is not None:
        given.out.write_text("\n".join(["# Hostile input", "", head, "", *lines, "", *notes, ""]))


if __name__ == "__main__":
    main()
