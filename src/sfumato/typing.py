"""Array types, literals and the check of a whole number, used throughout."""

import math
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

Relation: TypeAlias = Literal["replace", "add-remove"]
"""Neighbouring data sets differ by replacing one record (n public) or by adding or removing one (n private)."""


def is_whole(value: Any, least: int, most: float = math.inf) -> bool:
    """Whether a parameter is an integer in a range; true and false are none, integers of numpy are.

    >>> is_whole(np.int64(3), 1), is_whole(True, 1), is_whole(2.0, 1), is_whole(9, 1, 8)
    (True, False, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most
