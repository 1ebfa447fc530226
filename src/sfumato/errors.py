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
