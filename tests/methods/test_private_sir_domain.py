"""Data inside the domain never raise and never warn: an error on one neighbour only would be a leak."""

import warnings

import numpy as np
import pytest

from sfumato import Bounds, PrivacyWarning, PrivateSIR

RNG = np.random.default_rng(0)


def table(n=20, p=3):
    return RNG.normal(size=(n, p)), RNG.normal(size=n)


def with_column(value, n=20):
    x, y = table(n)
    x[:, 1] = value
    return x, y


EDGES = {
    "constant column": with_column(4.0),
    "column of zeros": with_column(0.0),
    "column of denormals": with_column(5e-324),
    "column of 1e308": with_column(1e308),
    "column of -1e308": with_column(-1e308),
    "columns of mixed signs of 1e308": (np.where(RNG.random((20, 3)) < 0.5, 1.7e308, -1.7e308), RNG.normal(size=20)),
    "denormals everywhere": (np.full((20, 3), 5e-324) * RNG.integers(0, 9, (20, 3)), np.full(20, 5e-324)),
    "all features constant": (np.full((20, 3), 7.25), RNG.normal(size=20)),
    "constant response": (table()[0], np.full(20, 3.0)),
    "response of zeros": (table()[0], np.zeros(20)),
    "response of 1e308": (table()[0], np.where(RNG.random(20) < 0.5, 1.7e308, -1.7e308)),
    "one class": (table()[0], np.full(20, "only")),
    "one class of numbers": (table()[0], np.full(20, True)),
    "a class of one record": (table()[0], np.array(["rare", *["usual"] * 19])),
    "every record a class of its own": (table()[0], np.array([f"name {i}" for i in range(20)])),
    "two values": (table()[0], np.repeat([0.0, 1.0], 10)),
    "duplicates": tuple(np.repeat(part, 5, axis=0) for part in table(4)),
    "all records identical": (np.full((20, 3), 1.5), np.full(20, 2.5)),
    "one record": table(1),
    "one record of text": (table(1)[0], np.array(["a"])),
    "two records": table(2),
    "one feature": table(20, 1),
    "more features than records": table(4, 12),
    "one record, many features": table(1, 12),
    "one record, one feature": table(1, 1),
    "integers": (RNG.integers(-5, 5, (20, 3)), RNG.integers(0, 3, 20)),
    "outliers": (np.where(RNG.random((20, 3)) < 0.1, 1e200, 0.5), RNG.normal(size=20)),
    "a collinear feature": (lambda x: (np.column_stack([x, x[:, 0]]), x[:, 0]))(table()[0]),
}


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("bounds", ["search", Bounds(-1.0, 1.0)], ids=["found", "given"])
@pytest.mark.parametrize("method", ["descent", "one-shot"])
@pytest.mark.parametrize("name", EDGES)
def test_nothing_is_raised_or_warned(name, method, bounds, seed):
    x, y = EDGES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        sir = PrivateSIR(method=method, bounds=bounds, random_state=seed, picture=True).fit(x, y)
    assert sir.directions_.shape[1] == x.shape[1]
    assert np.allclose(np.linalg.norm(sir.directions_, axis=1), 1.0, atol=1e-8)
    for released in (sir.eigenvalues_, sir.mean_, sir.scale_, sir.standard_errors_, sir.picture_.counts):
        assert np.isfinite(released).all()


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("name", ["one record", "all records identical", "column of 1e308", "one class"])
def test_budget_and_relation_do_not_matter_to_that(name, epsilon, relation):
    x, y = EDGES[name]
    sir = PrivateSIR(epsilon, bounds="search", relation=relation, n_directions=1, random_state=1).fit(x, y)
    assert np.isfinite(sir.directions_).all()


@pytest.mark.parametrize("seed", range(6))
def test_declared_classes_that_never_occur_are_fine(seed):
    x, _ = table()
    for classes in (["a", "b", "c"], ["never"]):
        sir = PrivateSIR(classes=classes, bounds="search", n_directions=3, random_state=seed).fit(x, np.full(20, "a"))
        assert sir.directions_.shape == (3, 3)
