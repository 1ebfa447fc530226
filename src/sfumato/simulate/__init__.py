"""The papers' simulation models: records, responses and the true directions."""

from sfumato.simulate.he import he
from sfumato.simulate.xia import Sample, xia

__all__ = ["Sample", "he", "xia"]
