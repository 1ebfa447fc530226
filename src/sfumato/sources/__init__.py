"""The only readers of tables: arrays, frames, files and streams become records in chunks, read as often as needed.

`scan` opens them; `files` holds `FileSource`, `formats` the files it reads, `columns` how a batch becomes numbers. What
needs Arrow is imported when a file is opened. No message here repeats a cell of a table.
"""

from sfumato.sources.arrays import ArraySource
from sfumato.sources.base import (
    MOST_ROWS,
    ResponseKind,
    Source,
    bucket,
    chunk_rows,
    declared_response,
    encode_response,
    response_kind_of,
)
from sfumato.sources.scanning import scan

__all__ = [
    "MOST_ROWS",
    "ArraySource",
    "ResponseKind",
    "Source",
    "bucket",
    "chunk_rows",
    "declared_response",
    "encode_response",
    "response_kind_of",
    "scan",
]
