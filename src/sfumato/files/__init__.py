"""Files as sources of records: CSV, Parquet, Arrow and Feather, one reader for all.

`formats` opens a file and yields batches of columns, `columns` turns a batch into numbers, `source` makes them
a `Source`. No message repeats a cell of the table.
"""

from sfumato.files.columns import Columns
from sfumato.files.formats import open_tables
from sfumato.files.source import FileSource, open_source

__all__ = ["Columns", "FileSource", "open_source", "open_tables"]
