"""Bounds: the public box a record is clipped to, and the integer grid laid over it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Bounds:
    """Smallest and largest value of each feature, known *without* looking at the data.

    Values outside are moved to the nearest bound, so wrong bounds cost accuracy, never privacy. Taking the
    minimum and maximum of the data as bounds would publish two records: use what is known about the
    measurement, or leave ``bounds=None`` and let the library buy location and scale privately.

    Parameters
    ----------
    lower, upper : float or array-like of shape (n_features,)
        A scalar holds for every feature.

    Examples
    --------
    >>> Bounds(-1.5, 1.5)
    Bounds(lower=-1.5, upper=1.5)
    >>> Bounds([0, 0], [120, 250]).upper
    array([120., 250.])
    """

    lower: FloatArray = field()
    upper: FloatArray = field()

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        object.__setattr__(self, "lower", _numbers("lower", lower))
        object.__setattr__(self, "upper", _numbers("upper", upper))
        if self.lower.ndim and self.upper.ndim and self.lower.shape != self.upper.shape:
            raise InputError("bounds: lower and upper must have the same length; give one value per feature.")
        if not (self.upper - self.lower > 1e-150).all():
            raise InputError("bounds: every lower bound must be below its upper bound; swap or widen them.")

    def __repr__(self) -> str:
        return f"Bounds(lower={_show(self.lower)}, upper={_show(self.upper)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bounds):
            return NotImplemented
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower.tobytes(), self.upper.tobytes()))

    def grid(self, n_features: int) -> "Grid":
        """The integer grid over the box, for tables with `n_features` columns."""
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if bound.ndim and len(bound) != n_features:
                raise InputError(
                    f"bounds: {name} has {len(bound)} values but x has {n_features} features; "
                    "give one value per feature, or a single number."
                )
        centre = np.broadcast_to(self.lower / 2 + self.upper / 2, n_features)
        half_width = np.broadcast_to(self.upper / 2 - self.lower / 2, n_features)
        return Grid(centre.copy(), half_width.copy())


@dataclass(frozen=True, slots=True, eq=False)
class PartialBounds:
    """What is known of each feature without looking at the data: the bounds of some, nothing of the others.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_features,)
        NaN where nothing is known.
    settled : ndarray of bool
        Features of which bounds say everything, as of those that are 0 or 1: nothing about them is ever bought. Of
        other bounds the spread inside is not known: the range of an income says little about most incomes.
    """

    lower: FloatArray
    upper: FloatArray
    settled: NDArray[np.bool_]

    @classmethod
    def nothing(cls, n_features: int) -> "PartialBounds":
        """Nothing is known of any feature."""
        return cls(np.full(n_features, np.nan), np.full(n_features, np.nan), np.zeros(n_features, dtype=bool))

    @classmethod
    def of(cls, bounds: Bounds | None, n_features: int) -> "PartialBounds":
        """The bounds of all features, with what lies inside unknown; or nothing."""
        if bounds is None:
            return cls.nothing(n_features)
        lower, upper = (np.broadcast_to(bound, n_features).copy() for bound in (bounds.lower, bounds.upper))
        return cls(lower, upper, np.zeros(n_features, dtype=bool))

    def beside(self, other: "PartialBounds") -> "PartialBounds":
        """What is known of the features of two tables side by side."""
        lower, upper = np.append(self.lower, other.lower), np.append(self.upper, other.upper)
        return PartialBounds(lower, upper, np.append(self.settled, other.settled))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.lower)

    @property
    def unknown(self) -> IntArray:
        """Features of which nothing is known."""
        return np.flatnonzero(np.isnan(self.lower))

    @property
    def boxed(self) -> IntArray:
        """Features whose bounds are known, but not the spread inside."""
        return np.flatnonzero(~np.isnan(self.lower) & ~self.settled)

    @property
    def asked(self) -> IntArray:
        """Features about which something is bought."""
        return np.flatnonzero(~self.settled)


@dataclass(frozen=True, slots=True)
class Grid:
    """Maps a record to integers: ``rint((x - centre) / half_width * 2**bits)``, clipped to ``+-2**bits``.

    The box ``centre +- half_width`` becomes the cube of side ``2 * 2**bits``. `bits` is 20, fewer for very wide
    tables, so that the squared length of a record (at most ``p * 4**bits``) is exact in float64.
    """

    centre: FloatArray
    half_width: FloatArray

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.centre)

    @property
    def bits(self) -> int:
        """Bits of a half-width."""
        return min(20, (52 - self.n_features.bit_length()) // 2)

    def integers(self, x: FloatArray) -> FloatArray:
        """Integer-valued rows; each entry depends on its own entry of `x` alone."""
        with np.errstate(over="ignore"):
            scaled: FloatArray = x - self.centre
            scaled *= 2.0**self.bits / self.half_width
        np.rint(scaled, out=scaled)
        return np.clip(scaled, -(2.0**self.bits), 2.0**self.bits, out=scaled)


def _numbers(name: str, value: ArrayLike) -> FloatArray:
    try:
        given = np.asarray(value)
        array = given.astype(np.float64, casting="same_kind" if given.dtype.kind == "c" else "unsafe")
    except (TypeError, ValueError):
        raise InputError(f"bounds: {name} must be a number or one number per feature.") from None
    if array.ndim > 1 or array.size == 0 or not np.isfinite(array).all() or np.abs(array).max(initial=0.0) > 1e150:
        raise InputError(f"bounds: {name} must hold finite numbers below 1e150, one per feature or a single one.")
    array.flags.writeable = False
    return array


def _show(bound: FloatArray) -> str:
    return repr(bound.tolist())
