"""The account of what a data set has paid: in memory (`Ledger`) or in a file that many runs share (`FileLedger`).

``lines`` is what a file says, ``chain`` what its lines add up to, ``disk`` how they get there, ``admin``
what the owner of a file does with it. What a budget still admits is in `sfumato.privacy.budget`.
"""

from sfumato.privacy.ledger.file import FileLedger
from sfumato.privacy.ledger.memory import Entry, Ledger, Mark

__all__ = ["Entry", "FileLedger", "Ledger", "Mark"]
