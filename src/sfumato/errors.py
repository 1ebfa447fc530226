"""Everything sfumato raises or warns.

::

    SfumatoError (Exception)
    ├── InputError (ValueError)      the data or a parameter cannot be used as given
    └── BudgetError (ValueError)     the privacy budget does not allow it
    PrivacyWarning (UserWarning)     what was asked for weakens or voids the guarantee
    AccuracyWarning (UserWarning)    public numbers say that the answer will be poor

A message names the parameter, says what is wrong and gives the remedy, in one sentence. It never carries a
value computed from records: an error text is an output like any other, and nobody has noised it.
"""

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager


class SfumatoError(Exception):
    """Base of all errors raised on purpose by sfumato."""


class InputError(SfumatoError, ValueError):
    """The data or a parameter cannot be used as given; nothing was spent."""


class BudgetError(SfumatoError, ValueError):
    """The privacy budget does not allow the request; nothing was spent."""


class PrivacyWarning(UserWarning):
    """The run is allowed, but its guarantee is weaker than it looks or absent."""


class AccuracyWarning(UserWarning):
    """The run is allowed and private, but public numbers (records, features, budget) promise a poor answer."""


@contextmanager
def as_usage() -> Iterator[None]:
    """A budget that cannot be (epsilon = -1) is a mistake in what was asked for, not a budget that is spent."""
    try:
        yield
    except BudgetError as error:
        raise InputError(str(error)) from None


def describe_unexpected(error: Exception) -> str:
    """Kind and place of an error that nobody foresaw. Its text stays unseen: it may quote a record."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "sfumato" in frame.filename] or frames
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"
    return f"unexpected {type(error).__name__} at {place}; please report it with the command you ran."
