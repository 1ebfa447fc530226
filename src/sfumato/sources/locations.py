"""Where files are: on this machine, or in an object store that Arrow can reach (S3, GCS, Azure, HDFS)."""

import fnmatch
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


def _store(uri: str) -> tuple[Any, str]:
    from pyarrow import ArrowInvalid, fs

    try:
        store, name = fs.FileSystem.from_uri(uri)
    except (ArrowInvalid, OSError):
        raise InputError(
            f"data: {uri} is no address that Arrow can reach; use s3://, gs://, abfs:// or hdfs://."
        ) from None
    return store, name
