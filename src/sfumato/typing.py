"""Array types and literals used throughout."""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

Relation: TypeAlias = Literal["replace", "add-remove"]
"""Neighbouring data sets differ by replacing one record (n public) or by adding or removing one (n private)."""
