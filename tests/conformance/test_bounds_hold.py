"""No record outweighs the stated bounds, and the bounds are no larger than they must be."""

import importlib
import pkgutil
from contextlib import suppress
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from sfumato.sums import BoundedSum

FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-5, 5)
NUMBERS = st.lists(FLOATS, min_size=8, max_size=8)
RELATIONS = ("replace", "add-remove")


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def test_every_bounded_sum_of_the_package_is_in_the_registry(registered):
    for module in pkgutil.walk_packages(sfumato.__path__, "sfumato."):
        with suppress(ModuleNotFoundError):  # an optional extra that is not installed
            importlib.import_module(module.name)
    found = {
        f"{kind.__module__}.{kind.__qualname__}" for kind in subclasses(BoundedSum) if not kind.__abstractmethods__
    }
    instruments = {"sfumato.audit.releases.Repeated"}  # many releases at once, each with the bounds of one
    false_on_purpose = {name for name in found if name.startswith("sfumato.audit.controls.")}
    missing = {name for name in found if name.startswith("sfumato.")} - registered - instruments - false_on_purpose
    assert not missing, f"add {missing} to tests/conformance/conftest.py"


def check(case, a, b):
    query = case.query
    assert case.is_within(a, query.norm)
    assert case.is_within(a - b, query.diameter)
    try:
        l1 = [query.l1_sensitivity(relation) for relation in RELATIONS]
    except NotImplementedError:
        return
    assert np.abs(a - b).sum() <= l1[0] and np.abs(a).sum() <= l1[1]


def test_no_pair_of_records_outweighs_the_bounds(case):
    @given(NUMBERS, NUMBERS.map(lambda values: values[:3]), st.booleans())
    @settings(max_examples=60, deadline=None, database=None)
    def search(values, more, same):
        y = [abs(int(value)) % 5 if case.has_codes else value for value in (values[6], values[7])]
        a = case.of(values[:3], y[0])
        b = case.of(values[:3] if same else np.negative(values[:3]) if values[5] > 0 else more, y[1])
        check(case, a, b)

    search()


def climb(case, value, rng, rounds=400):
    """Hill climbing over pairs of records: perturb, replace by an extreme value, copy, reflect."""
    x = [case.records(rng, 1).x[0] for _ in range(2)]
    y = [case.records(rng, 1).y[0] for _ in range(2)]
    vectors = [case.of(x[i], y[i]) for i in range(2)]
    best = value(*vectors)
    for _ in range(rounds):
        i = int(rng.integers(2))
        new_x, new_y = x[i].copy(), y[i]
        match int(rng.integers(5)):
            case 0:
                new_x = np.clip(new_x, -1e9, 1e9) + rng.normal(size=case.p) * 10.0 ** rng.uniform(-3, 1)
            case 1:
                new_x[rng.integers(case.p)] = case.records(rng, 1).x[0, 0]
            case 2:
                new_y = case.records(rng, 1).y[0]
            case 3:
                new_x = rng.choice([-1.0, 1.0], case.p) * x[1 - i]
            case 4:
                new_x, new_y = x[1 - i], case.records(rng, 1).y[0]
        moved = case.of(new_x, new_y)
        candidate = value(moved, vectors[1 - i])
        if candidate >= best:
            best, x[i], y[i], vectors[i] = candidate, new_x, new_y, moved
    check(case, *vectors)
    return best


def test_the_search_comes_within_one_percent_of_the_bounds_and_never_passes_them(case, record_property):
    query, rng = case.query, np.random.default_rng(3)
    lengths = (lambda a, b: case.length(a), query.norm), (lambda a, b: case.length(a - b), query.diameter)
    for name, (value, bound) in zip(("norm", "diameter"), lengths, strict=True):
        ratio = 0.0
        for _ in range(8):
            ratio = max(ratio, climb(case, value, rng) / bound)
            if ratio >= 0.998:
                break
        record_property(name, ratio)
        assert 0.99 <= ratio <= 1 + 1e-12, f"{name}: {ratio}"


def test_no_record_moves_a_score_by_more_than_the_peak_or_two_apart_by_more_than_the_spread(case):
    """What a selection compares, on data sets of none to many records, most of them extreme or all alike."""
    query, rng = case.query, np.random.default_rng(5)
    for n in (0, 1, 2, 3, 10, 60):
        for repeat in (False, True) * 4:
            base = query.of(case.records(rng, n))
            base = base * 5 if repeat else base
            pair = case.records(rng, 2)
            a, b = (query.scores(base + case.of(pair.x[i], pair.y[i])) for i in range(2))
            without = query.scores(base)
            assert a.dtype == np.int64 and a.ndim == 1
            assert np.abs(a - without).max() <= query.peak("add-remove") * (1 + 1e-12)
            assert np.abs(a - b).max() <= query.peak("replace") * (1 + 1e-12)
            assert np.ptp(a - without) <= query.spread("add-remove") * (1 + 1e-12)
            assert np.ptp(a - b) <= query.spread("replace") * (1 + 1e-12)


def test_a_single_feature_stays_within_the_bounds_too(case):
    rng = np.random.default_rng(4)
    records, query = case.records(rng, 60, p=1), case.build(1)
    single = replace(case, p=1)
    vectors = [single.of(records.x[i], records.y[i]) for i in range(60)]
    for i in range(60):
        assert single.is_within(vectors[i], query.norm)
        assert single.is_within(vectors[i] - vectors[i - 1], query.diameter)


def test_the_relation_chooses_the_bound(case):
    query = case.query
    assert query.sensitivity("replace") == query.diameter
    assert query.sensitivity("add-remove") == query.norm
    assert query.norm <= query.diameter <= 2 * query.norm
