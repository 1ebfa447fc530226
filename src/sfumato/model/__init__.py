"""The model file: a fitted estimator as JSON that can be read by hand and loads without running code.

It holds the parameters, the released values and the ledger; whatever is in it was paid for, so the file may be
sent wherever the report may.
"""

from sfumato.model.file import FORMAT, check_parameters, load_inputs, load_model, save_model, standalone
from sfumato.model.sections import Inputs

__all__ = ["FORMAT", "Inputs", "check_parameters", "load_inputs", "load_model", "save_model", "standalone"]
