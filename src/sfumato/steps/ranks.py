"""Ranks of the response: bins that adapt to where y lives, from three rounds of histograms."""

from dataclasses import dataclass

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.records import Response
from sfumato.release import Release
from sfumato.statistics.histograms import Bins, ResponseHistogram, octave_edges
from sfumato.steps.noisy_histograms import standing_out
from sfumato.typing import FloatArray

BINS = 48
MOST_CLASSES = 64
_NO_EDGES = np.empty(0)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Bins of y with their released probabilities; `total` is the noisy number of records."""

    bins: Bins
    probabilities: FloatArray
    total: float

    @property
    def is_ordered(self) -> bool:
        """Whether y is a number, so that bins have an order."""
        return self.bins.categories is None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The step that finds the ranks of the response, at a share of the budget, in about so many bins."""

    response: Response
    share: float
    n_bins: int = BINS

    @property
    def lines(self) -> tuple[Line, ...]:
        """One histogram of classes; three of a numeric response, each where the last one saw records."""
        if self.response.categories is not None:
            return (Line("ranks", "sizes of the classes", self.share, "sqrt(2) / 1", asks=ResponseHistogram),)
        levels = (("response magnitude", 0.2), ("response span", 0.2), ("ranks", 0.6))
        purposes = ("order of magnitude of the response", "span of the response", "ranks of the response")
        return tuple(
            Line(name, purpose, self.share * part, "sqrt(2) / 1", asks=ResponseHistogram)
            for (name, part), purpose in zip(levels, purposes, strict=True)
        )

    def run(self) -> Asking[Ranks]:
        """Bins and probabilities of the response. Never raises: where nothing stands out, the bins stay coarse."""
        if self.response.categories is not None:
            return (yield from self.count(Bins(_NO_EDGES, categories=self.response.categories)))
        edges = octave_edges()
        for name in ("response magnitude", "response span"):
            edges = refine(edges, (yield from ask(ResponseHistogram(Bins(edges)), name)), self.n_bins)
        return (yield from self.count(Bins(edges)))

    def count(self, bins: Bins) -> Asking[Ranks]:
        """Probabilities of known bins: the last line alone."""
        counts = yield from ask(ResponseHistogram(bins), "ranks")
        return _ranks(bins, _classes(counts) if self.response.hashed else counts)


def refine(edges: FloatArray, counts: Release, bins: int) -> FloatArray:
    """New edges: bins that stand out of the noise are cut in pieces in proportion to their counts.

    The open end bins cannot be cut. Edges between two bins that do not stand out are dropped.
    """
    heavy = standing_out(counts)
    heavy[[0, -1]] = 0.0
    pieces = np.ceil(heavy / max(heavy.sum(), 1.0) * bins).astype(int)
    kept = [np.linspace(edges[i - 1], edges[i], pieces[i] + 1) for i in range(1, len(edges)) if pieces[i] > 0]
    return np.unique(np.concatenate(kept)) if kept else np.zeros(1)


def _classes(counts: Release) -> Release:
    """The hash buckets in use: those above what the noise of all buckets reaches, at most `MOST_CLASSES`."""
    reach = np.sqrt(2.0 * np.log(len(counts.value))) + 1.0
    heavy = standing_out(counts, float(reach))
    if not heavy.any():
        heavy[0] = 1.0  # nothing stands out: one class, and the noisy answer comes out all the same
    smallest = np.sort(heavy)[-MOST_CLASSES]
    return Release(np.where(heavy >= max(smallest, 1e-9), heavy, 0.0), counts.noise_std)


def _ranks(bins: Bins, counts: Release) -> Ranks:
    positive = np.maximum(counts.value, 0.0)
    total = float(positive.sum())
    share = positive / total if total > 0 else np.full(len(positive), 1.0 / len(positive))
    return Ranks(bins, share, float(counts.value.sum()))
