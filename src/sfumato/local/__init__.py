"""The device side: what runs where a person's record is, so that nobody else ever sees it.

A `Randomiser` is a public form (question, mechanism, epsilon); each person's device runs ``randomize`` on its own
answer. Only `Answers` travel; the analyst's estimators accept them in place of y.
"""

from sfumato.local.answers import Answers, LocalLedger
from sfumato.local.randomisers import NumberRandomiser, SliceRandomiser, ThresholdRandomiser
from sfumato.local.waves import Survey

__all__ = ["Answers", "LocalLedger", "NumberRandomiser", "SliceRandomiser", "Survey", "ThresholdRandomiser"]
