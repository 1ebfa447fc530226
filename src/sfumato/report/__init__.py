"""The report of a private fit: a `Document` of released values, and `render`, which writes it as one page.

Nothing here reads a record, a file or the network, so nothing here can leak.
"""

from sfumato.report.document import Document, Heatmap, LedgerRow, Loading, Spectrum, WhatIf
from sfumato.report.html import render

__all__ = ["Document", "Heatmap", "LedgerRow", "Loading", "Spectrum", "WhatIf", "render"]
