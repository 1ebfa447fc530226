"""Tables written to a file of the format its ending tells."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from sfumato.errors import InputError


def open_writer(path: Path, schema: Any) -> Any:
    """A writer with ``write_table``, to be used in a ``with`` block."""
    match path.suffix.lower():
        case ".csv":
            return pcsv.CSVWriter(path, schema)
        case ".parquet":
            return pq.ParquetWriter(path, schema)
        case ".arrow" | ".feather":
            return pa.ipc.new_file(path, schema)
    raise InputError(f"out: the ending of {path.name} tells no format; use .csv, .parquet, .arrow or .feather.")
