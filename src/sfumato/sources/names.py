"""Names: of files and of columns, with a suggestion for those that are mistyped."""

import difflib
import fnmatch
import glob
from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import InputError
from sfumato.sources.locations import FilePath, find_remote, is_remote


def find(pattern: str) -> Sequence[FilePath]:
    """The files of a path, an address or a glob pattern, sorted."""
    if is_remote(pattern):
        return find_remote(pattern)
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
        if name in names or not isinstance(name, str) or not any(sign in name for sign in "*?["):
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
    close = difflib.get_close_matches(str(name).lower(), folded, n=1)
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    hint = f"did you mean {folded[close[0]]!r}?" if close else f"choose among {shown}."
    raise InputError(f"{parameter}: there is no column {name!r}; {hint}")


def choose_columns(
    names: Sequence[str],
    response: str | None,
    features: Sequence[str] | None,
    second: Sequence[str],
    person: str | None,
) -> tuple[list[str], list[str]]:
    """The feature columns of the first and of the second set, every name checked against those of the table.

    >>> choose_columns(["y", "age", "lab_a", "lab_b"], "y", None, ["lab_*"], None)
    (['age'], ['lab_a', 'lab_b'])
    """
    for parameter, column in (("response", response), ("person", person)):
        if column is not None:
            suggest(column, names, parameter)
    if person is not None and person == response:
        raise InputError(f"person: {person!r} is the response; leave one of them out.")
    for parameter, given in (("features", features), ("second", second)):
        if isinstance(given, str):
            raise InputError(f"{parameter} must be a list of column names, got {given!r}; write [{given!r}].")
    other = expand(second, names, "second")
    rest = [name for name in names if name not in (response, person, *other)]
    chosen = rest if features is None else expand(features, names, "features")
    for parameter, named in (("features", chosen), ("second", other)):
        for column, why in ((response, "is the response"), (person, "says whose row it is")):
            if column in named:
                raise InputError(f"{parameter}: {column!r} {why}; leave it out.")
        for name in named:
            if list(names).count(name) > 1:
                raise InputError(f"{parameter}: several columns are called {name!r}; rename them.")
    twice = [name for name in other if name in chosen]
    if twice:
        raise InputError(f"second: {twice[0]!r} is among the features of the first set too; name it once.")
    if not chosen:
        raise InputError("features: no feature column is left; name at least one.")
    return chosen, other
