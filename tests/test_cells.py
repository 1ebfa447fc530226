"""A cell has one key, whatever table it comes from, and declared names are keys too."""

import enum
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato import InputError, PrivateLDA, PrivateSIR, scan
from sfumato.cells import encode, key, keys_of, kinds_of, name, position
from sfumato.local import SliceRandomiser
from sfumato.sources.arrays import response_to_array

ONES = [1, 1.0, True, "1", "1.0", " 1", "1e0", "+1", "true", "True", b"1", np.int64(1), np.float32(1), np.True_]


Ward = enum.Enum("Ward", {"NORTH": "north"}, type=str)


@pytest.mark.parametrize("cell", [*ONES, Decimal("1.00"), Fraction(1), np.str_("1"), np.longdouble(1)])
def test_every_way_to_write_one_is_one(cell):
    assert key(cell) == 1.0 and name(key(cell)) == "1"


@pytest.mark.parametrize(
    "text", ["", " ", "yes", " yes", "Yes", "nan", "inf", "-Infinity", "1e400", "1_000", "0x1", "1\0", "١", "\ud800"]
)
def test_text_that_is_no_finite_number_stays_as_it_is(text):
    assert key(text) == text == name(key(text))


def test_an_enumeration_of_texts_is_its_text():
    assert key(Ward.NORTH) == "north"


def test_zero_has_no_sign_and_large_integers_are_their_nearest_float():
    assert name(key(-0.0)) == name(key("-0")) == "0"
    assert key(2**53 + 1) == key(str(2**53 + 1)) == key(np.int64(2**53 + 1)) == 2.0**53


@pytest.mark.parametrize("cell", [None, [1], {}, 1j, object(), np.datetime64("2020"), b"\xff"])
def test_what_is_neither_number_nor_text_is_refused_without_being_quoted(cell):
    with pytest.raises(InputError) as error:
        key(cell)
    assert repr(cell) not in str(error.value) and "xff" not in str(error.value)


@pytest.mark.parametrize(
    "names", [[1, "1"], ["true", 1], ["0", "1", "1.0"], [0, -0.0], ["a", b"a"], [2**53, 2**53 + 1]]
)
def test_two_names_of_the_same_cells_are_refused(names):
    with pytest.raises(InputError, match="name the same cells"):
        keys_of(names, "classes")
    for refuse in (PrivateSIR(classes=names), PrivateLDA(classes=names)):
        with pytest.raises(InputError, match=r"classes: .* name the same cells"):
            refuse.fit(np.zeros((3, 2)), [0, 1, 1])
    with pytest.raises(InputError, match="name the same cells"):
        SliceRandomiser(1.0, classes=names)


@pytest.mark.parametrize("bad", [None, np.nan, np.inf, 10**400, [1], b"\xff"])
def test_names_that_no_cell_can_have_are_refused(bad):
    with pytest.raises(InputError, match="classes must be finite numbers or texts"):
        keys_of(["a", bad], "classes")


def test_codes_of_a_column_are_those_of_its_cells():
    rng = np.random.default_rng(0)
    cells = np.array([*ONES, 0, "0", "x", 2.5, "2.5", Decimal("2.5")], dtype=object)
    column = rng.choice(cells, 2000)
    code = position(keys_of([1, "2.5", "x"], "classes"))
    assert encode(column, code).tolist() == [code(key(cell)) for cell in column]
    numbers = rng.choice([0.0, 1.0, 2.5, -0.0], 2000)
    assert encode(numbers, code).tolist() == [code(key(cell)) for cell in numbers]


def test_kinds_are_those_of_types_and_never_of_what_a_text_says():
    assert kinds_of(np.array(["1", "2"])) == kinds_of(np.array(["1", "x"], dtype=object)) == {"text"}
    assert kinds_of(np.array([1, 2.0, True], dtype=object)) == kinds_of(np.array([1.0])) == {"number"}
    assert kinds_of(np.array([1, "x", None], dtype=object)) == {"number", "text", "missing"}
    assert "missing" in kinds_of(np.array([1, Decimal("NaN")], dtype=object))


def test_a_declared_kind_wins_over_the_type():
    codes, response = response_to_array([0, 1.0, "1"], None, "categorical")
    assert response.hashed and codes[1] == codes[2] != codes[0]
    assert np.array_equal(codes, response_to_array(np.array(["0", "1", "true"]), None)[0])
    with pytest.raises(InputError, match="response_kind is 'numeric'"):
        response_to_array(["1", "2"], None, "numeric")
    with pytest.raises(InputError, match="where classes are declared"):
        response_to_array([1, 2], [1, 2], "numeric")
    with pytest.raises(InputError, match="response_kind must be"):
        response_to_array([1, 2], None, "numbers")


def test_a_scanned_csv_column_is_what_it_is_declared_to_be(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,1\n2,x\n3,1.0\n")
    with pytest.raises(InputError, match="mixed kind"):
        scan(path, response="y").check()
    with pytest.raises(InputError, match="another kind"):
        scan(path, response="y", response_kind="numeric").check()
    source = scan(path, response="y", response_kind="categorical")
    (records,) = source.read(source.parts()[0])
    assert source.response.hashed and records.y[0] == records.y[2] != records.y[1]
    with pytest.raises(InputError, match="response_kind must be given to scan"):
        PrivateSIR().fit(source, response_kind="numeric")


def test_the_kind_declared_to_fit_decides_the_plan():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    plans = [
        [
            entry.purpose
            for entry in PrivateSIR(bounds="search", random_state=0).fit(x, response, response_kind=kind).ledger_
        ]
        for response, kind in ((y, "categorical"), (y.astype(str), None), (y.astype(str).astype(object), None))
    ]
    assert plans[0] == plans[1] == plans[2]
    numeric = PrivateSIR(bounds="search", random_state=0).fit(x, y, response_kind="numeric")
    assert np.array_equal(numeric.directions_, PrivateSIR(bounds="search", random_state=0).fit(x, y).directions_)


def test_no_value_decides_whether_the_classes_of_lda_are_names():
    """One fraction among integers made them numbers to be sliced."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    plans = [
        [entry.purpose for entry in PrivateLDA(bounds="search", random_state=0).fit(x, response).ledger_]
        for response in (y, [*y[1:].tolist(), 0.5], y.astype(float), y.astype(str))
    ]
    assert all(plan == plans[0] for plan in plans)
