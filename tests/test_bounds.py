"""Bounds: public boxes and the integer grid over them."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Bounds, InputError
from sfumato.bounds import PartialBounds

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (1.0, 1.0),
        (2.0, 1.0),
        ([0.0, 5.0], [1.0, 5.0]),
        (float("nan"), 1.0),
        (0.0, float("inf")),
        (None, 1.0),
        ("low", "high"),
        (0.0, 1e200),
        ([0.0, 1.0], [2.0, 3.0, 4.0]),
        ([[0.0]], 1.0),
        ([], []),
        (np.array([1j]), 2.0),
        ([[1.0], [1.0, 2.0]], 3.0),
    ],
)
def test_impossible_bounds_are_refused_in_one_sentence(lower, upper):
    with pytest.raises(InputError, match=r"^bounds: .*\.$") as error:
        Bounds(lower, upper)
    assert "\n" not in str(error.value)


def test_a_wrong_number_of_bounds_is_refused_and_counted():
    with pytest.raises(InputError, match=r"lower has 2 values but x has 3 features"):
        Bounds([0.0, 0.0], 1.0).grid(3)
    with pytest.raises(InputError, match=r"upper has 2 values but x has 1 features"):
        Bounds(0.0, [1.0, 1.0]).grid(1)


def test_bounds_are_values():
    assert Bounds(-1, 1) == Bounds(-1.0, 1.0) != Bounds(-1, 2) and hash(Bounds(-1, 1)) == hash(Bounds(-1.0, 1.0))
    assert Bounds(0, [1, 2]) != "bounds"
    assert pickle.loads(pickle.dumps(Bounds([0, 1], [2, 3]))) == Bounds([0, 1], [2, 3])
    assert eval(repr(Bounds([0, 1], [2, 3]))) == Bounds([0, 1], [2, 3])
    given_array = np.array([1.0, 2.0])
    bounds = Bounds(0.0, given_array)
    given_array[0] = -5.0
    assert bounds.upper.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        bounds.upper[0] = 7.0


@given(st.lists(FINITE, min_size=1, max_size=5), st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
@settings(max_examples=200, deadline=None)
def test_every_finite_record_falls_on_the_grid_inside_the_box(row, lower, width):
    grid = Bounds(lower, lower + width).grid(len(row))
    integers = grid.integers(np.array([row]))
    assert (integers == np.rint(integers)).all() and (np.abs(integers) <= 2**grid.bits).all()


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 10.0), (-10.0, 10.0), (-3.0, -1.0)])
def test_the_grid_reaches_from_bound_to_bound(lower, upper):
    grid = Bounds(lower, upper).grid(1)
    ends = grid.integers(np.array([[lower], [upper], [(lower + upper) / 2], [lower - 1e9], [upper + 1e9]]))
    assert ends.ravel().tolist() == [-(2**grid.bits), 2**grid.bits, 0, -(2**grid.bits), 2**grid.bits]
    inside = np.linspace(lower, upper, 101)[:, None]
    back = grid.integers(inside) / 2**grid.bits * grid.half_width + grid.centre
    assert np.abs(back - inside).max() <= grid.half_width[0] * 2.0**-grid.bits


def test_the_grid_is_monotone():
    x = np.sort(np.random.default_rng(0).normal(size=1000))[:, None]
    assert (np.diff(Bounds(-1, 1).grid(1).integers(x), axis=0) >= 0).all()


@given(st.lists(FINITE, min_size=2, max_size=20), st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
@settings(max_examples=200, deadline=None)
def test_eased_values_keep_their_order_and_those_inside_their_place(values, lower, width):
    x, box = np.sort(values)[:, None], Bounds(lower, lower + width)
    eased = box.eased(x)
    assert np.isfinite(eased).all() and (np.diff(eased, axis=0) >= 0).all()
    inside = (x >= box.lower) & (x <= box.upper)
    assert (eased[inside] == x[inside]).all()
    assert (np.abs(eased) <= np.maximum(np.abs(x), max(abs(lower), abs(lower + width)))).all()


def test_columns_of_a_second_table_are_eased_by_their_own_bounds():
    box, x = Bounds([0, 0, 0], [2, 2, 20]), np.full((1, 2), 26.0)
    assert np.allclose(box.eased(x, first=1), [[10.0, 20.0 + 20.0 * (np.sqrt(1.6) - 1.0)]])
    assert np.allclose(Bounds(0, 2).eased(x, first=1), 10.0)


def test_partial_bounds_that_say_the_same_are_equal_so_that_forecasts_are_remembered():
    known, again = (PartialBounds.of({"a": (0, 1), "b": range(4)}, 3, ["a", "b", "c"]) for _ in range(2))
    assert known == again
    assert hash(known) == hash(again)
    assert known != PartialBounds.of(Bounds(0, 1), 3)
    assert known != PartialBounds(known.lower, known.upper, ~known.settled)
