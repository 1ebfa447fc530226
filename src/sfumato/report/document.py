"""The report as data, what a reader may see, and how its numbers are written.

A `Document` holds released values and words only, as tuples and strings, never arrays or records. Whoever
builds it has already gone through the one door, so rendering is post-processing and costs no privacy.

Shapes are checked here, so the charts may trust them. Values are not: a number may be infinite or missing,
and a report that fails after the budget is spent helps nobody. Such a number is written as a dash, not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from sfumato.errors import InputError
from sfumato.forecast.assessment import Verdict

MISSING = "—"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = range(-4, 6)  # decimal exponents that read better without powers of ten


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One paid release. `share` is its part of the whole budget, a fraction in mu^2 (Gaussian privacy)."""

    purpose: str
    query: str
    mechanism: str
    sensitivity: float
    noise_std: float
    epsilon_alone: float | None
    share: float


PRIVACY_ALONE = "of the privacy noise alone, not of sampling"
IN_ALL = "of sampling and privacy noise together"
"""What the standard error of a weight is of."""


@dataclass(frozen=True, slots=True)
class Loading:
    """One feature's weight in each direction, and its standard error."""

    feature: str
    values: tuple[float, ...]
    errors: tuple[float, ...]

    def __post_init__(self) -> None:
        _require(len(self.values) == len(self.errors), "errors must have one entry per entry of values.")

    @property
    def has_error(self) -> bool:
        """Whether any of its errors is known."""
        return any(map(math.isfinite, self.errors))


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Noisy counts on a grid: `counts[i][j]` belongs to x bin i and y bin j, and may be negative.

    Edges are finite and increasing; there is one more edge than bins on each axis.
    """

    x_edges: tuple[float, ...]
    y_edges: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]
    noise_std: float
    x_label: str
    y_label: str

    def __post_init__(self) -> None:
        for name, edges in (("x_edges", self.x_edges), ("y_edges", self.y_edges)):
            _require(len(edges) >= 2, f"{name} must have at least two entries.")
            _require(all(map(math.isfinite, edges)), f"{name} must be finite.")
            _require(all(a < b for a, b in pairwise(edges)), f"{name} must increase.")
        rows, columns = len(self.x_edges) - 1, len(self.y_edges) - 1
        _require(len(self.counts) == rows, "counts must have one row per x bin.")
        _require(all(len(row) == columns for row in self.counts), "counts must have one entry per y bin in each row.")


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Singular values in order, the edge below which noise alone could have made them, and how many.

    `name` says what they are where they are no singular values; an `edge` that is not finite is not drawn. `p_values`
    are those of the first values, where they were tested.
    """

    values: tuple[float, ...]
    edge: float
    chosen: int
    why: str
    name: str = "singular value"
    p_values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _require(0 <= self.chosen <= len(self.values), "chosen must lie between 0 and the number of values.")


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The loss to expect elsewhere: `losses[i][j]` at `sizes[i]` records and budget `budgets[j]`.

    Attributes
    ----------
    budget_name : str
        What the budgets are: epsilon or rho.
    plain : tuple of float
        Expected loss without privacy, one per size.
    useless : float
        Expected loss of directions drawn at random.
    here : (int, int)
        Row and column of the run that the report is about.
    assumption : str
        One sentence on where the numbers come from.
    """

    budget_name: str
    budgets: tuple[float, ...]
    sizes: tuple[int, ...]
    losses: tuple[tuple[float, ...], ...]
    plain: tuple[float, ...]
    useless: float
    here: tuple[int, int]
    assumption: str

    def __post_init__(self) -> None:
        _require(len(self.losses) == len(self.plain) == len(self.sizes), "losses and plain must have a row per size.")
        _require(all(len(row) == len(self.budgets) for row in self.losses), "losses must have an entry per budget.")


@dataclass(frozen=True, slots=True)
class Document:
    """All that one report says.

    Parameters
    ----------
    title, subtitle : str
        What was fitted, and one line on how.
    guarantee : str
        The privacy guarantee as one quotable sentence.
    facts : tuple of (str, str)
        Short name and value pairs: number of records, method, budget.
    loadings : tuple of Loading
        One per feature, in the order to be shown; all with the same number of directions.
    spectrum : Spectrum or None
        Why there are so many directions, if the method says so.
    heatmap : Heatmap or None
        The noisy summary picture, if one was bought.
    ledger : tuple of LedgerRow
    total : str
        The last line of the ledger.
    notes : tuple of str
        Caveats, one paragraph each.
    reproduce : str
        Code that runs the same plan again.
    rehearsal : bool
        True if the noise was seeded, so that the run gives no privacy.
    what_if : WhatIf or None
        The loss to expect at other budgets and sizes, where there is a forecast.
    unit : str
        What one column of the loadings is called.
    mark : str
        Where the releases stand in the ledger file they were written to, if any.
    verdict : Verdict or None
        Whether the fit would come out the same again, where the method judges itself.
    error_of : str
        What the standard errors are of.
    command : str
        The command that made the fit, if one did.
    """

    title: str
    guarantee: str
    subtitle: str
    facts: tuple[tuple[str, str], ...]
    loadings: tuple[Loading, ...]
    spectrum: Spectrum | None
    heatmap: Heatmap | None
    ledger: tuple[LedgerRow, ...]
    total: str
    notes: tuple[str, ...]
    reproduce: str
    rehearsal: bool
    what_if: WhatIf | None = None
    unit: str = "direction"
    mark: str = ""
    verdict: Verdict | None = None
    error_of: str = PRIVACY_ALONE
    command: str = ""

    def __post_init__(self) -> None:
        counts = {len(loading.values) for loading in self.loadings}
        _require(len(counts) <= 1, "loadings must all have the same number of directions.")

    @property
    def n_directions(self) -> int:
        """The number of directions shown: 0 if there are no loadings."""
        return len(self.loadings[0].values) if self.loadings else 0

    def level_of(self, k: int) -> str:
        """The level of direction k, from 0, where directions differ in it; else nothing."""
        levels = () if self.verdict is None else self.verdict.levels
        return levels[k] if len(set(levels)) > 1 and k < len(levels) else ""

    @property
    def has_errors(self) -> bool:
        """Whether the method tells the errors of its loadings."""
        return any(loading.has_error for loading in self.loadings)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InputError(message)


def figure(value: float | None, digits: int = 3, *, trim: bool = False) -> str:
    """Write one number to `digits` significant digits, with a true minus sign; a dash if it is not finite.

    >>> figure(0.41235), figure(-12345.6), figure(1.5e-9), figure(float("nan"))
    ('0.412', '−12,346', '1.50×10⁻⁹', '—')
    >>> figure(0.5), figure(0.5, trim=True)
    ('0.500', '0.5')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if int(exponent) in _PLAIN:
        return _tidy(f"{value:,.{max(0, digits - 1 - int(exponent))}f}", trim)
    return f"{_tidy(mantissa, trim)}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def figures(values: Iterable[float], digits: int = 3) -> tuple[str, ...]:
    """Write a column of numbers with common decimals, set by the largest, so that they align.

    >>> figures([0.5, -0.01234, 0.0])
    ('0.500', '−0.012', '0.000')
    """
    column = tuple(map(float, values))
    peak = max((abs(value) for value in column if math.isfinite(value)), default=0.0)
    exponent = int(f"{peak:.{digits - 1}e}".split("e")[1])
    if exponent not in _PLAIN:
        return tuple(figure(value, digits) for value in column)
    decimals = max(0, digits - 1 - exponent)
    return tuple(
        _tidy(f"{round(value, decimals) + 0.0:,.{decimals}f}") if math.isfinite(value) else MISSING for value in column
    )


def percent(share: float) -> str:
    """Write a share as a percentage.

    >>> percent(0.25), percent(0.0004)
    ('25.0%', '0.04%')
    """
    if not math.isfinite(share) or abs(share) < 0.0005:
        return figure(100 * share, 1) + "%" * math.isfinite(share)
    return f"{share:.1%}".replace("-", "−")


def plural(words: str) -> str:
    """More than one of them.

    >>> plural("singular value"), plural("pair of directions"), plural("coefficients")
    ('singular values', 'pairs of directions', 'coefficients')
    """
    noun, of, rest = words.partition(" of ")
    return words if noun.endswith("s") else f"{noun}s{of}{rest}"


def _tidy(text: str, trim: bool = False) -> str:
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")
