"""The account that fits write to which name none: open for the length of a ``with`` block."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger.file import FileLedger
from sfumato.privacy.unit import Kind
from sfumato.typing import Relation

_open: list[FileLedger] = []  # of this process, for all its threads: a fit in a pool of threads is paid for, too


@contextmanager
def account(
    path: str | PathLike[str],
    epsilon: float | None = None,
    delta: float = 1e-6,
    *,
    relation: Relation | None = None,
    protects: Kind | None = None,
    purpose: str = "",
) -> Iterator[FileLedger]:
    """An account for every fit inside the ``with`` block that is given no ``ledger`` of its own.

    Processes that are started inside the block, as by ``GridSearchCV(n_jobs=2)``, do not see it: hand it to the
    estimator, ``ledger=a``. Sites have accounts of their own, so `sfumato.federated.simulate` is refused inside it;
    what devices randomise themselves (`LabelPrivateSIR` and its kin) is paid for by each person, and not written to it.

    Parameters
    ----------
    path : str or Path
        The ledger file. Without `epsilon` it must exist.
    epsilon, delta : float, optional
        Its cap, for a new file; one that exists must have the same.
    relation : {"replace", "add-remove"}, optional
    protects : {"record", "person"}, optional
    purpose : str
        Why releases are made; stands in the file.

    Examples
    --------
    >>> import tempfile
    >>> from sfumato import Bounds, PrivateSIR, account
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=2_000, p=4, random_state=0)
    >>> with account(tempfile.mkdtemp() + "/study.jsonl", epsilon=3) as a:
    ...     sir = PrivateSIR(epsilon=1.0, bounds=Bounds(-1.5, 1.5)).fit(sample.x, sample.y)
    ...     print(a.remaining().describe())
    (epsilon = 2.7708..., delta = 1e-06)
    """
    cap = None if epsilon is None else Budget.approximate(epsilon, delta)
    ledger = FileLedger(path, cap, relation, purpose=purpose, protects=protects)
    _open.append(ledger)
    try:
        yield ledger
    finally:
        _open.remove(ledger)


def current_account() -> FileLedger | None:
    """The account of the innermost block, if there is one."""
    return _open[-1] if _open else None
