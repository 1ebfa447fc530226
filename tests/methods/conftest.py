"""What tests of estimators share."""

import pytest

from sfumato import Budget, Ledger


@pytest.fixture
def unspent():
    """A ledger to which nothing may have been charged when the test is over."""
    ledger = Ledger(Budget.approximate(10.0, 1e-6), "replace")
    yield ledger
    assert len(ledger) == 0
