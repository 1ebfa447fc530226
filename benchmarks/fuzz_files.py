"""Good files of every kind, and the ways in which they are spoiled."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

import sfumato
from sfumato import Bounds, Budget
from sfumato.model import save_model
from sfumato.privacy.ledger import Entry, FileLedger
from sfumato.privacy.plan import Line, Plan

CAP = Budget.zcdp(1e9)
ONE = Plan((Line("a", "a", 1.0, ""), Line("b", "b", 1.0, ""))).calibrate(Budget.zcdp(0.1))
PRIVATE = ("PrivateSIR", "PrivateSparseSIR", "PrivateSAVE", "PrivateDR", "PrivatePCA", "PrivateSparsePCA", "PrivateLDA")


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


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


def replaced(rng, data):
    """JSON data with one value replaced by another kind of value."""
    place = data
    for _ in range(int(rng.integers(1, 7))):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = pick(rng, keys)
        if not isinstance(place[key], (dict, list)) or rng.random() < 0.3:
            place[key] = pick(
                rng, [None, True, -1, 1e308, "x", [], {}, [[1.0]], 10**30, ["a"], {"__class__": "os.system"}, 0, 3]
            )
            break
        place = place[key]
    return data


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
        for name in (*PRIVATE, "PrivateCCA"):
            estimator = getattr(sfumato, name)(bounds=Bounds(-1, 1), random_state=0)
            if "picture" in estimator.get_params():
                estimator.set_params(picture=True)
            if name == "PrivateCCA":
                estimator.set_params(y_bounds=Bounds(-1, 1))
            y = {"PrivateLDA": x[:, 0] > 0, "PrivateCCA": x[:, 1:]}.get(name, x[:, 0])
            save_model(estimator.fit(x, y), folder / f"seed-{name}.json")
    (folder / "seed.json").write_bytes((folder / "seed-PrivateSIR.json").read_bytes())


def spoiled(rng, folder, suffix, seed="seed"):
    path = folder / f"case{suffix}"
    path.write_bytes(mutated(rng, (folder / f"{seed}{suffix}").read_bytes()))
    return path
