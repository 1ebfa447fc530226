"""How numbers are written for a reader."""

from __future__ import annotations

import math
from collections.abc import Iterable

MISSING = "—"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = range(-4, 6)  # decimal exponents that read better without powers of ten


def figure(value: float | None, digits: int = 3, *, trim: bool = False) -> str:
    """Write one number to `digits` significant digits, with a true minus sign; a dash if it is not finite.

    Examples
    --------
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

    Examples
    --------
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

    Examples
    --------
    >>> percent(0.25), percent(0.0004)
    ('25.0%', '0.04%')
    """
    if not math.isfinite(share) or abs(share) < 0.0005:
        return figure(100 * share, 1) + "%" * math.isfinite(share)
    return f"{share:.1%}".replace("-", "−")


def plural(words: str) -> str:
    """More than one of them.

    Examples
    --------
    >>> plural("singular value"), plural("pair of directions"), plural("coefficients")
    ('singular values', 'pairs of directions', 'coefficients')
    """
    noun, of, rest = words.partition(" of ")
    return words if noun.endswith("s") else f"{noun}s{of}{rest}"


def _tidy(text: str, trim: bool = False) -> str:
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")
