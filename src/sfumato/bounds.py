"""Bounds: the public box a record is clipped to, and the integer grid laid over it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.blocks import along, blocks, clip_along, side_by_side
from sfumato.errors import InputError
from sfumato.typing import FloatArray, IntArray, is_whole

NARROWEST = 1e-150
"""Least difference of two bounds."""
SEARCH = "search"
"""Said of bounds: buy them, even where public numbers say that they will hardly be found."""


GivenBounds: TypeAlias = "Bounds | Mapping[Any, Any] | Sequence[Any] | str | None"
"""The parameter ``bounds`` of an estimator, as `PartialBounds.of` reads it."""


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
        narrow = np.flatnonzero(~(self.upper - self.lower > NARROWEST))
        if narrow.size:
            which = f" (not so at position {narrow[0]})" if self.lower.ndim or self.upper.ndim else ""
            raise InputError(f"bounds: every lower bound must be below its upper bound{which}; swap or widen them.")

    def __repr__(self) -> str:
        return f"Bounds(lower={_show(self.lower)}, upper={_show(self.upper)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bounds):
            return NotImplemented
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower.tobytes(), self.upper.tobytes()))

    def cut(self, x: FloatArray, features: IntArray, first: int = 0) -> FloatArray:
        """x with values of some features moved to the nearest bound; its columns are the features from `first` on.

        >>> Bounds([0, 0], [120, 1]).cut(np.array([[130.0, 0.5], [-1.0, 7.0]]), np.array([1]))
        array([[130. ,   0.5],
               [ -1. ,   1. ]])
        """
        here = features[(first <= features) & (features < first + x.shape[1])]
        lower, upper = (end[here] if end.ndim else end for end in (self.lower, self.upper))
        cut = x.copy()
        cut[:, here - first] = np.clip(x[:, here - first], lower, upper)
        return cut

    def eased(self, x: FloatArray, first: int = 0) -> FloatArray:
        """x with values beyond the bounds brought nearer: they count by the root of their distance.

        A distance d beyond an end, in half widths, becomes ``2 (sqrt(1 + d) - 1)``: a small one stays about what it
        is, a hundred becomes eighteen. Order is kept, and values inside stay what they are. Columns of x are the
        features from `first` on.

        >>> Bounds([0, 0], [2, 2]).eased(np.array([[1.5, -3.0], [2.0, 26.0]]))
        array([[ 1.5, -2. ],
               [ 2. , 10. ]])
        """
        here = slice(first, first + x.shape[1])
        lower, upper = (end[here] if end.ndim else end for end in (self.lower, self.upper))
        near, half = np.clip(x, lower, upper), upper / 2 - lower / 2
        beyond = x - near
        # No difference of roots, which would lose small distances, and no product that large ones would overflow.
        return np.asarray(near + beyond / (np.sqrt(half) + np.sqrt(half + np.abs(beyond))) * (2.0 * np.sqrt(half)))

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

    def __eq__(self, other: object) -> bool:
        """By value, nothing known being equal to itself: what was forecast for them once is remembered."""
        return self._bytes == other._bytes if isinstance(other, PartialBounds) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._bytes)

    @property
    def _bytes(self) -> tuple[bytes, ...]:
        return self.lower.tobytes(), self.upper.tobytes(), self.settled.tobytes()

    @classmethod
    def nothing(cls, n_features: int) -> "PartialBounds":
        """Nothing is known of any feature."""
        return cls(np.full(n_features, np.nan), np.full(n_features, np.nan), np.zeros(n_features, dtype=bool))

    @classmethod
    def of(
        cls, given: Any, n_features: int, names: Sequence[str] | None = None, parameter: str = "bounds"
    ) -> "PartialBounds":
        """What the parameter `bounds` of an estimator says.

        `names` are those of the columns; without them, as before a table is there, a name stands for any column.

        >>> PartialBounds.of({"age": (0, 120), 2: range(4)}, 3, ["age", "income", "grade"]).upper
        array([120.,  nan,   3.])
        >>> PartialBounds.of([(0, 120), "search", range(4)], 3).upper
        array([120.,  nan,   3.])
        """
        known = cls.nothing(n_features)
        if isinstance(given, list | tuple | np.ndarray) and len(given) != n_features:
            raise InputError(
                f"{parameter}: there are {len(given)} entries for {n_features} features; give one (lower, upper) for "
                "each, in the order of the columns, or a mapping of some columns to theirs."
            )
        given = by_column(given)
        if given is None or (isinstance(given, str) and given == SEARCH):
            return known
        if isinstance(given, Bounds):
            given.grid(n_features)
            known.lower[:], known.upper[:] = given.lower, given.upper
            return known
        if not isinstance(given, Mapping):
            raise InputError(
                f"{parameter} must be a sfumato Bounds, a mapping of columns to (lower, upper), a list of (lower, "
                "upper), 'search' or None; for instance Bounds(-1.5, 1.5) or {'age': (0, 120)}."
            )
        for column, value in zip(_positions(list(given), n_features, names, parameter), given.values(), strict=True):
            if value is None or (isinstance(value, str) and value == SEARCH):
                continue
            known.lower[column], known.upper[column] = _ends(value, parameter, _called(column, names))
            known.settled[column] = isinstance(value, range)
        return known

    def with_binary(self, columns: Sequence[int]) -> "PartialBounds":
        """These features are 0 or 1, as their type says, and nothing about them is left to be bought."""
        binary = np.isin(np.arange(self.n_features), columns)
        free = binary & np.isnan(self.lower)
        lower, upper = np.where(free, 0.0, self.lower), np.where(free, 1.0, self.upper)
        return PartialBounds(lower, upper, self.settled | binary)

    def beside(self, other: "PartialBounds") -> "PartialBounds":
        """What is known of the features of two tables side by side."""
        lower, upper = np.append(self.lower, other.lower), np.append(self.upper, other.upper)
        return PartialBounds(lower, upper, np.append(self.settled, other.settled))

    def some(self, columns: IntArray) -> "PartialBounds":
        """What is known of some of the features."""
        return PartialBounds(self.lower[columns], self.upper[columns], self.settled[columns])

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


def by_column(given: Any) -> Any:
    """Bounds that are listed in the order of the columns as a mapping of positions; others as they are.

    >>> by_column([(0, 120), range(4)])
    {0: (0, 120), 1: range(0, 4)}
    """
    return dict(enumerate(given)) if isinstance(given, list | tuple | np.ndarray) else given


@dataclass(frozen=True, slots=True)
class Grid:
    """Maps a record to integers: ``rint((x - centre) / half_width * 2**bits)``, clipped to ``+-2**bits``.

    The box ``centre +- half_width`` becomes the cube of side ``2 * 2**bits``. `bits` is 20, fewer for very wide
    tables, so that the squared length of a record (at most ``p * 4**bits``) is exact in float64.

    Where the unit of a feature is not that of its bounds, `limits` are the bounds, (2, p): values are moved to them
    first. The cube holds whatever they are.
    """

    centre: FloatArray
    half_width: FloatArray
    limits: FloatArray | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.centre)

    def some(self, columns: IntArray) -> "Grid":
        """The grid of some of the features."""
        limits = None if self.limits is None else self.limits[:, columns]
        return Grid(self.centre[columns], self.half_width[columns], limits)

    @property
    def bits(self) -> int:
        """Bits of a half-width."""
        return min(20, (52 - self.n_features.bit_length()) // 2)

    @property
    def reach(self) -> FloatArray:
        """How far from the centre a value of each feature can be, in half widths; at most one."""
        if self.limits is None:
            return np.ones(self.n_features)
        return np.asarray(np.minimum(1.0, np.abs(self.limits - self.centre).max(axis=0) / self.half_width))

    def integers(self, x: FloatArray) -> FloatArray:
        """Integer-valued rows; each entry depends on its own entry of `x` alone."""
        found = np.empty(x.shape)
        for here, block in self.blocks(x):
            found[here] = block
        return found

    def blocks(self, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """A few rows at a time: which, and their integers."""
        x, factor, (lowest, highest) = np.ascontiguousarray(x), self._factor, self._ends
        for here in blocks(*x.shape):
            found = np.empty(x[here].shape)
            for values, scaled in zip(side_by_side(x[here]), side_by_side(found), strict=True):
                self._scale(values, along(self.centre, values), along(factor, values), scaled)
                clip_along(scaled, lowest, highest)
            yield here, found

    @property
    def _factor(self) -> FloatArray:
        return np.asarray(2.0**self.bits / self.half_width)

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest integer of each feature: differences, products and roundings are monotone, so whoever is
        moved to the limits before becomes what is moved to the limits' integers after.
        """
        most = np.full(self.n_features, 2.0**self.bits)
        if self.limits is None:
            return -most, most
        ends = self._scale(self.limits, self.centre, self._factor, np.empty(self.limits.shape))
        return np.clip(ends[0], -most, most), np.clip(ends[1], -most, most)

    @staticmethod
    def _scale(x: FloatArray, centre: FloatArray, factor: FloatArray, out: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            np.subtract(x, centre, out=out)
            out *= factor
        return np.rint(out, out=out)


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


def _positions(columns: Sequence[Any], n_features: int, names: Sequence[str] | None, parameter: str) -> list[int]:
    """Columns, given by name or position, as positions; names before there is a table are as many other columns."""
    position = {} if names is None else {name: j for j, name in enumerate(names)}
    if names is None:
        free = iter(sorted(set(range(n_features)) - {c for c in columns if isinstance(c, int)}))
        position = {name: next(free, -1) for name in columns if isinstance(name, str)}
    found = [position.get(c, -1) if isinstance(c, str) else c for c in columns]
    for column, j in zip(columns, found, strict=True):
        if isinstance(column, str) and names is not None and len(names) == 0:
            raise InputError(
                f"{parameter}: column {column!r} is named, but the table has no column names; give positions, or a "
                "dataframe (in a pipeline by set_output(transform='pandas'))."
            )
        if not is_whole(j, 0, n_features - 1):
            raise InputError(f"{parameter}: there is no column {column!r}; give names or positions of columns of x.")
    if len({int(j) for j in found}) < len(found):
        raise InputError(f"{parameter}: a column is named twice, by name and by position; name it once.")
    return [int(j) for j in found]


def _called(position: int, names: Sequence[str] | None) -> str | int:
    """What a column is called: its name, if it has one."""
    return position if names is None or len(names) == 0 else str(names[position])


def _ends(value: Any, parameter: str, column: Any) -> tuple[float, float]:
    """Lower and upper bound of one column."""
    ends = (min(value), max(value)) if isinstance(value, range) and len(value) > 1 else value
    needs = f"{parameter}: column {column!r} needs (lower, upper), a range of integers, or 'search'."
    if not isinstance(ends, Sequence | np.ndarray) or isinstance(ends, str) or len(ends) != 2:
        raise InputError(needs)
    try:
        both = Bounds(*ends)
    except InputError as error:
        raise InputError(f"{parameter}: column {column!r}: {str(error).removeprefix('bounds: ')}") from None
    if both.lower.ndim or both.upper.ndim:
        raise InputError(needs)
    return float(both.lower), float(both.upper)


def _show(bound: FloatArray) -> str:
    return repr(bound.tolist())
