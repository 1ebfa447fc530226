"""The bounds file: what is known of features without looking at the data."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.bounds import Bounds
    from sfumato.sources.columns import Columns


def read_bounds(path: Path, columns: "Columns", table_names: Sequence[str]) -> "Bounds | dict[str, Any]":
    """The bounds of the features, from a file: of all, or of those that have a line; 0 and 1 for categories."""
    from sfumato.bounds import Bounds
    from sfumato.sources.names import suggest

    given = _given(path)
    for name in given:
        suggest(name, table_names, f"bounds: {path}")
    numeric = [name for name in columns.features if name not in columns.categorical]
    known: dict[str, Any] = {name: _range(name, given[name]) for name in numeric if name in given}
    if any(name not in known for name in numeric):
        return known
    return Bounds(*zip(*(known.get(name, (0.0, 1.0)) for name in columns.names), strict=True))


def quote_key(name: str) -> str:
    """The name of a feature as a key of the file."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def _given(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"bounds: {path} cannot be read ({error.strerror}); write a template with 'sfumato bounds init DATA'."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"bounds: {path} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"bounds: {path} is not valid TOML ({error}).") from None
    bounds = content.get("bounds")
    if not isinstance(bounds, dict):
        raise InputError(f'bounds: {path} has no [bounds] section; it needs one with lines such as "age" = [0, 110].')
    return bounds


def _range(name: str, value: Any) -> tuple[float, float]:
    if value == []:
        raise InputError(f"bounds: {name!r} is not filled in yet; write [lower, upper], or remove the line to buy it.")
    is_pair = isinstance(value, list) and len(value) == 2
    if not is_pair or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value):
        raise InputError(f"bounds: {name!r} must be two numbers, [lower, upper].")
    lower, upper = map(float, value)
    if not lower < upper:
        raise InputError(f"bounds: {name!r} has a lower bound that is not below its upper bound; swap or widen them.")
    return lower, upper
