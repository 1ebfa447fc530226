"""The papers' simulation models under their public name: `xia` and `he` draw a `Sample`."""

from sfumato.research.models import Sample, he, xia

__all__ = ["Sample", "he", "xia"]
