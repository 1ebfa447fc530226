"""Names: of files and of columns, with a suggestion for those that are mistyped."""

import difflib
import fnmatch
import glob
from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import InputError


def find(pattern: str) -> list[Path]:
    """The files of a path or glob pattern, sorted."""
    if Path(pattern).exists():
        return [Path(pattern)]
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        close = difflib.get_close_matches(pattern, glob.glob(str(Path(pattern).parent / "*")), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "check the name or the pattern."
        raise InputError(f"data: no file matches {pattern!r}; {hint}")
    return [Path(name) for name in found]


def expand(given: Sequence[str], names: Sequence[str], parameter: str) -> list[str]:
    """Names and patterns as names, in the order given; what a pattern finds again is not taken twice.

    >>> expand(["lab_b", "lab_*"], ["lab_a", "age", "lab_b"], "features")
    ['lab_b', 'lab_a']
    """
    found: list[str] = []
    for name in given:
        if name in names or not any(sign in name for sign in "*?["):
            suggest(name, names, parameter)
            found.append(name)
            continue
        matched = [other for other in names if fnmatch.fnmatchcase(other, name)]
        if not matched:
            raise InputError(f"{parameter}: no column matches {name!r}; check the pattern.")
        found += [other for other in matched if other not in found]
    return found


def suggest(name: str, names: Sequence[str], parameter: str) -> None:
    """Refuse a name that is not among `names`, with the one that was probably meant.

    >>> suggest("agee", ["age", "weight"], "features")
    Traceback (most recent call last):
    sfumato.errors.InputError: features: there is no column 'agee'; did you mean 'age'?
    """
    if name in names:
        return
    folded = {other.lower(): other for other in names}
    close = difflib.get_close_matches(name.lower(), folded, n=1)
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    hint = f"did you mean {folded[close[0]]!r}?" if close else f"choose among {shown}."
    raise InputError(f"{parameter}: there is no column {name!r}; {hint}")
