"""Names: of files, on this machine or in an object store that Arrow can reach (S3, GCS, Azure, HDFS), and of columns.

For those that are mistyped there is a suggestion.
"""

import difflib
import fnmatch
import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from sfumato.errors import InputError


@dataclass(frozen=True)
class RemoteFile:
    """An object in a store, by its address: ``s3://bucket/visits.parquet``.

    Keys to the store are those of the environment (as ``AWS_ACCESS_KEY_ID``), never of the address, which is written to
    messages and sent to workers.

    >>> RemoteFile("s3://bucket/visits.csv.gz?region=eu-central-1").name
    'visits.csv.gz'
    """

    uri: str

    def __post_init__(self) -> None:
        if urlsplit(self.uri).password is not None or urlsplit(self.uri).username is not None:
            raise InputError("data: leave keys out of the address, and put them into the environment.")

    def __str__(self) -> str:
        return self.uri

    @property
    def name(self) -> str:
        """The last part of the address."""
        return PurePosixPath(urlsplit(self.uri).path).name

    def absolute(self) -> "RemoteFile":
        """Itself: an address is the same everywhere."""
        return self

    def is_dir(self) -> bool:
        """An object is none."""
        return False


FilePath = Path | RemoteFile


def file_of(name: str | Path) -> FilePath:
    """A file by its path or address."""
    return RemoteFile(name) if isinstance(name, str) and is_remote(name) else Path(name)


def is_remote(name: str) -> bool:
    """Whether a name is the address of an object in a store."""
    return "://" in name


def find_remote(pattern: str) -> list[RemoteFile]:
    """The objects whose address matches, sorted."""
    scheme, host, path, query, _ = urlsplit(pattern)
    fixed = path.split("*")[0]  # a question mark begins the query of an address
    if fixed == path:
        return [RemoteFile(pattern)]
    folder = fixed.rpartition("/")[0]
    store, base = _store(urlunsplit((scheme, host, folder, query, "")))
    from pyarrow import fs

    try:
        found = store.get_file_info(fs.FileSelector(base, recursive="**" in path))
    except OSError:
        raise InputError(
            f"data: {pattern} cannot be listed; check the address and the keys in the environment."
        ) from None
    wanted = base + path[len(folder) :].replace("/**/", "/*")
    names = sorted(info.path for info in found if info.is_file and fnmatch.fnmatchcase(info.path, wanted))
    if not names:
        raise InputError(f"data: no object matches {pattern!r}; check the address or the pattern.")
    return [RemoteFile(urlunsplit((scheme, host, folder + name[len(base) :], query, ""))) for name in names]


def open_file(path: FilePath) -> Any:
    """The file for reading at any place."""
    if isinstance(path, Path):
        import pyarrow as pa

        return pa.OSFile(str(path))
    store, name = _store(path.uri)
    return store.open_input_file(name)


def open_stream(path: FilePath) -> Any:
    """The file for reading from its start, decompressed as its ending says."""
    if isinstance(path, Path):
        import pyarrow as pa

        return pa.input_stream(str(path), compression="detect")
    store, name = _store(path.uri)
    return store.open_input_stream(name, compression="detect")


def bytes_in(path: FilePath) -> int:
    """Size of the file."""
    if isinstance(path, Path):
        return path.stat().st_size
    store, name = _store(path.uri)
    return int(store.get_file_info(name).size or 0)


def stamp(path: FilePath) -> object:
    """What changes when the file does: its size and the time of its last change; None where there is no file."""
    if isinstance(path, Path):
        found = path.stat() if path.exists() else None
        return None if found is None else (found.st_size, found.st_mtime_ns)
    store, name = _store(path.uri)
    info = store.get_file_info(name)
    return info.size, info.mtime_ns


def _store(uri: str) -> tuple[Any, str]:
    from pyarrow import ArrowInvalid, fs

    try:
        store, name = fs.FileSystem.from_uri(uri)
    except (ArrowInvalid, OSError):
        raise InputError(
            f"data: {uri} is no address that Arrow can reach; use s3://, gs://, abfs:// or hdfs://."
        ) from None
    return store, name


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
