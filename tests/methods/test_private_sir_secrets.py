"""What a fitted estimator carries away: releases and public facts, no record and no randomness."""

import pickle
import struct

import numpy as np
import pytest

from sfumato import Bounds, PrivateSIR
from sfumato.settings.central import Central

MARK, WORD = 987654321.125, "SECRET-MARK"


@pytest.fixture(params=["numbers", "text"])
def marked(request):
    """Records among which one bears a mark no noise would hit."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    x[7, 1] = MARK
    if request.param == "numbers":
        y[7] = MARK
        return x, y
    return x, np.where(np.arange(60) == 7, WORD, np.where(y > 0, "a", "b"))


def traces():
    """The mark in every notation in which it could be written."""
    numbers = [struct.pack(order + "d", MARK) for order in "<>"] + [struct.pack(order + "f", MARK) for order in "<>"]
    return [*numbers, b"987654321", b"9.8765432", WORD.encode(), WORD.encode("utf-16-le"), WORD.encode("utf-32-le")]


def carries(blob):
    return [trace for trace in traces() if trace in blob]


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("method", ["descent", "one-shot"])
def test_nothing_that_leaves_contains_a_record(marked, method, seed, tmp_path):
    sir = PrivateSIR(method=method, bounds="search", random_state=seed, picture=True).fit(*marked)
    assert carries(pickle.dumps(marked)) and carries(repr(marked).encode())  # the search would find them
    report = sir.report(tmp_path / "report.html").read_bytes()
    texts = [repr(sir), str(sir), repr(sir.ledger_), repr(sir.ledger_.entries), sir.ledger_.guarantee, sir.choice_.why]
    for blob in (pickle.dumps(sir), report, *(text.encode() for text in texts)):
        assert not carries(blob)


@pytest.mark.parametrize("seed", [0, None])
def test_a_pickle_holds_no_randomness_and_works(marked, seed):
    sir = PrivateSIR(bounds="search", random_state=seed).fit(*marked)
    blob = pickle.dumps(sir)
    for name in (b"Philox", b"Noise", b"Generator", b"RandomState", b"Source", b"Records", b"Curator"):
        assert name not in blob
    again = pickle.loads(blob)
    assert np.array_equal(again.transform(marked[0]), sir.transform(marked[0]))
    assert again.ledger_.entries == sir.ledger_.entries


def numbers_in(value, seen):
    """All numbers reachable from a value."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, (float, int)):
        yield float(value)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        yield from value.ravel().tolist()
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from numbers_in(item, seen)
    elif isinstance(value, dict):
        yield from numbers_in(list(value.items()), seen)
    else:
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        held = [getattr(value, name, None) for name in slots] + list(getattr(value, "__dict__", {}).values())
        yield from numbers_in(held, seen)


@pytest.mark.parametrize("bounds", ["search", Bounds(-1, 1)])
def test_no_attribute_equals_a_value_of_the_only_record(bounds):
    x, y = np.random.default_rng(1).uniform(-1, 1, size=(1, 4)), np.array([0.318309886183790671])
    sir = PrivateSIR(bounds=bounds, picture=True, random_state=None).fit(x, y)
    found = np.array(list(numbers_in(vars(sir), {})))
    found = found[np.isfinite(found)]  # unknown bounds are nan
    assert len(found) > 100  # the walk reached the arrays
    for value in (*x[0], y[0]):
        assert np.abs(found - value).min() > 1e-12


@pytest.mark.parametrize("options", [{}, {"bounds": Bounds(-1, 1), "picture": True}, {"method": "one-shot"}])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_records_reach_the_result_through_the_sums_alone(monkeypatch, options, relation):
    """Replay: another data set that is given the first one's sums, and the same noise, has the same result."""
    rng = np.random.default_rng(2)
    kept, real = [], Central.sum
    first = rng.normal(size=(80, 3)), rng.normal(size=80)
    other = 100 * rng.normal(size=(80, 3)), 5 + rng.exponential(size=80)

    def keep(self, query):
        kept.append((query.describe, real(self, query)))
        return kept[-1][1]

    def replay(self, query):
        described, total = kept.pop(0)
        assert query.describe == described
        return total

    monkeypatch.setattr(Central, "sum", keep)
    a = PrivateSIR(**{"bounds": "search", "random_state": 4, "relation": relation, **options}).fit(*first)
    monkeypatch.setattr(Central, "sum", replay)
    b = PrivateSIR(**{"bounds": "search", "random_state": 4, "relation": relation, **options}).fit(*other)
    assert not kept
    numbers = [np.array(list(numbers_in({k: v for k, v in vars(sir).items() if k != "ledger_"}, {}))) for sir in (a, b)]
    assert np.array_equal(*numbers, equal_nan=True)
    assert [(e.query, e.event, e.noise_std) for e in a.ledger_] == [(e.query, e.event, e.noise_std) for e in b.ledger_]
