"""Reporting: every private estimator can write what it released as a page."""

from os import PathLike
from pathlib import Path

from sklearn.utils.validation import check_is_fitted


class Reporting:
    """Gives a fitted estimator its ``report``."""

    def report(self, path: str | PathLike[str]) -> Path:
        """Write a self-contained HTML report; only released values are in it."""
        from sfumato.report.build import document
        from sfumato.report.html import render

        check_is_fitted(self, "ledger_")
        page = render(document(self))
        target = Path(path)
        target.write_text(page, encoding="utf-8")
        return target
