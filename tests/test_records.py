"""Records: the domain check."""

import numpy as np
import pytest

from sfumato.records import Memory, Records, is_finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["x", "y"])
def test_one_bad_number_is_found(bad, where):
    x, y = np.ones((50, 3)), np.ones(50)
    (x if where == "x" else y)[17] = bad
    assert not Records(x, y).is_finite()


def test_infinities_that_cancel_are_found():
    assert not Records(np.array([[np.inf, -np.inf]]), np.zeros(1)).is_finite()
    assert not Records(np.array([[np.inf]]), np.array([-np.inf])).is_finite()


def test_finite_numbers_whose_sum_overflows_are_fine():
    assert Records(np.full((4, 2), 1.7e308), np.full(4, -1.7e308)).is_finite()
    assert is_finite(np.arange(5)) and is_finite(np.empty(0))


def test_derived_values_are_computed_once_for_each_key():
    records, calls = Records(np.zeros((3, 1)), np.arange(3.0)), []

    def compute():
        calls.append(1)
        return records.y * 2

    class Key:
        """Anything that can be forgotten."""

    a, b = Key(), Key()
    for key in (a, a, b):
        assert records.derive(key, compute).tolist() == [0, 2, 4]
    assert len(calls) == 2


def test_derived_values_are_dropped_with_their_key():
    class Key:
        """Anything that can be forgotten."""

    records, key = Records(np.zeros((3, 1)), np.arange(3.0)), Key()
    records.derive(key, lambda: records.y)
    assert len(records._kept) == 1
    del key
    assert len(records._kept) == 0


class Map:
    """Anything that room is claimed for."""


def test_features_are_lent_room_until_something_else_claims_it():
    memory, x, maps = Memory(1_000), np.zeros((10, 3)), [Map() for _ in range(4)]
    loans = [memory.lend(x, leave=200) for _ in range(4)]
    assert [loan.x is not None for loan in loans] == [True, True, True, False]  # 720 of the 800 that may be lent
    assert memory.claim(maps[0], 280) and memory.taken == 1_000
    assert memory.claim(maps[1], 300) and [loan.x is None for loan in loans] == [True, True, False, True]
    assert not memory.claim(maps[2], 421) and loans[2].x is not None  # nothing gives way in vain
    assert memory.claim(maps[3], 420) and loans[2].x is None and memory.taken == 1_000
    del loans, maps
    assert memory.taken == 0


def test_nothing_is_lent_beyond_the_limit_and_a_loan_ends_with_its_chunk():
    memory, x, held = Memory(300), np.zeros((10, 3)), Map()
    assert memory.claim(held, 100) and memory.lend(x, leave=0).x is None
    del held
    loan = memory.lend(x, leave=0)
    assert loan.x is x and memory.lend(x, leave=0).x is None
    del loan
    assert memory.taken == 0
