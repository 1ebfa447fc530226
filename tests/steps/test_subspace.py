"""The distance between subspaces is a metric on spans, exact to the last digits near zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.steps.subspace import principal_angles, subspace_distance

# Two orthonormalisations and two products of p <= 12 terms: a few hundred roundings of 1.1e-16 at most.
ROUNDING = 1e-13


def _pair(seed, k_a, k_b, p):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k_a, p)), rng.standard_normal((k_b, p))


def _projection(rows):
    return np.linalg.pinv(rows) @ rows


shapes = st.tuples(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4), st.integers(4, 12))


@given(shapes)
@settings(max_examples=60, deadline=None)
def test_the_distance_is_the_frobenius_norm_of_the_difference_of_projections(shape):
    a, b = _pair(*shape)
    direct = np.linalg.norm(_projection(a) - _projection(b))
    # pinv loses the condition number of a random k x p matrix: rarely above 1e3 here.
    assert subspace_distance(a, b) == pytest.approx(direct, abs=1e-10)


@given(shapes)
@settings(max_examples=60, deadline=None)
def test_the_distance_is_symmetric_and_zero_to_itself(shape):
    a, b = _pair(*shape)
    assert subspace_distance(a, b) == pytest.approx(subspace_distance(b, a), abs=ROUNDING)
    assert subspace_distance(a, a[::-1]) < ROUNDING


@given(shapes)
@settings(max_examples=60, deadline=None)
def test_the_distance_does_not_depend_on_the_basis(shape):
    a, b = _pair(*shape)
    rng = np.random.default_rng(shape[0] + 1)
    mixing = np.linalg.qr(rng.standard_normal((len(a), len(a))))[0] * rng.uniform(0.5, 2.0, len(a))
    # The bases of both calls are exact up to the condition of a; 1e-10 leaves room for 1e5.
    assert subspace_distance(mixing @ a, b) == pytest.approx(subspace_distance(a, b), abs=1e-10)


def test_the_triangle_inequality_holds():
    rng = np.random.default_rng(3)
    for _ in range(50):
        a, b, c = (rng.standard_normal((rng.integers(1, 4), 6)) for _ in range(3))
        assert subspace_distance(a, c) <= subspace_distance(a, b) + subspace_distance(b, c) + ROUNDING


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-9, 1e-12])
def test_a_tiny_rotation_is_measured_to_its_last_digits(angle):
    a = np.eye(5)[:2]
    b = a.copy()
    b[1] = [0, np.cos(angle), np.sin(angle), 0, 0]
    assert subspace_distance(a, b) == pytest.approx(np.sqrt(2) * np.sin(angle), rel=1e-9, abs=1e-15)
    assert principal_angles(a, b) == pytest.approx([0, angle], rel=1e-9, abs=1e-15)


def test_orthogonal_and_nested_spans_reach_the_stated_limits():
    eye = np.eye(6)
    assert subspace_distance(eye[:2], eye[2:5]) == pytest.approx(np.sqrt(5), abs=ROUNDING)
    assert subspace_distance(eye[:1], eye[:4]) == pytest.approx(np.sqrt(3), abs=ROUNDING)
    assert principal_angles(eye[:2], eye[2:5]) == pytest.approx([np.pi / 2] * 2, abs=ROUNDING)


def test_the_distance_is_the_sine_formula_for_equal_dimensions():
    a, b = _pair(5, 3, 3, 9)
    sines = np.sin(principal_angles(a, b))
    assert subspace_distance(a, b) == pytest.approx(np.sqrt(2) * np.linalg.norm(sines), abs=ROUNDING)


def test_angles_come_smallest_first_and_as_many_as_the_smaller_span():
    a, b = _pair(6, 2, 4, 7)
    angles = principal_angles(a, b)
    assert angles.shape == (2,)
    assert (np.diff(angles) >= 0).all()


def test_a_vector_is_one_direction_and_scale_and_sign_do_not_matter():
    v = np.array([1.0, -2.0, 0.5])
    assert subspace_distance(v, -1e-200 * v[None]) < ROUNDING


def test_dependent_and_zero_rows_add_nothing_but_short_rows_count():
    a = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    padded = np.array([[1.0, 0, 0, 0], [1, 1e-3, 0, 0], [2, 5, 0, 0], [0, 0, 0, 0]])
    assert subspace_distance(a, padded) < ROUNDING * 1e3  # the condition number of rows 1 and 2
    assert subspace_distance(a, a * [[1.0], [1e-30]]) < ROUNDING


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (np.ones(3), np.ones(4), "same number of features, got 3 and 4"),
        ([1.0, np.nan], np.ones(2), "A has missing or infinite"),
        (np.ones(2), [np.inf, 0.0], "B has missing or infinite"),
        (np.ones(3), np.zeros((2, 3)), "B has only zero rows"),
        (np.ones((2, 2, 2)), np.ones(2), "A must be a \\(k, p\\) array"),
        (np.ones(2), np.empty((0, 2)), "B must be a \\(k, p\\) array"),
    ],
)
@pytest.mark.parametrize("measure", [subspace_distance, principal_angles])
def test_what_spans_nothing_or_does_not_fit_is_refused(measure, a, b, says):
    with pytest.raises(InputError, match=says):
        measure(a, b)
