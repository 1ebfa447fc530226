"""Ranks of the response: bins that adapt to where y lives, from three rounds of histograms."""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.records import Response
from sfumato.release import Release
from sfumato.statistics.histograms import Bins, ResponseHistogram, octave_edges
from sfumato.steps.noisy_histograms import (
    likeliest_stretch,
    likeliest_window,
    likely_counts,
    nearest_shares,
    standing_out,
)
from sfumato.typing import FloatArray, IntArray

BINS = 48
MOST_CLASSES = 64
LEVELS = {"response magnitude": 0.2, "response span": 0.2, "ranks": 0.6}
"""Parts of the share of the three rounds."""
PIECES = 4
"""Of where the response is at first sight, if no bin of that stands out: one full and one empty bin would look like a
finding."""
VISIBLE = 2.5
"""Least count of a bin, in standard deviations of its noise."""
_NO_EDGES = np.empty(0)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Bins of y with their released probabilities; `total` is the noisy number of records, `noise` that of a count.

    `functions` (bins, q) are what x is to explain, where y is neither a number nor a class but a cell of several
    responses; the first of them comes first in the order of the cells.
    """

    bins: Bins
    probabilities: FloatArray
    total: float
    noise: float = 0.0
    functions: FloatArray | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether y is a number, so that bins have an order."""
        return self.bins.categories is None

    @property
    def unseen(self) -> IntArray:
        """Bins whose count does not show through its noise."""
        return np.flatnonzero(self.probabilities * max(self.total, 0.0) < VISIBLE * self.noise)

    @property
    def seen(self) -> "Ranks":
        """The same without bins whose count does not show, if any does: the noise of a class that nobody is in is not a
        function of the response."""
        shown = self.probabilities.copy()
        shown[self.unseen] = 0.0
        whole = float(shown.sum())
        return replace(self, probabilities=shown / whole) if whole > 0.0 else self


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
        purposes = ("order of magnitude of the response", "span of the response", "ranks of the response")
        return tuple(
            Line(name, purpose, self.share * part, "sqrt(2) / 1", asks=ResponseHistogram)
            for (name, part), purpose in zip(LEVELS.items(), purposes, strict=True)
        )

    def run(self, n_records: int | None = None) -> Asking[Ranks]:
        """Bins and probabilities of the response. Never raises: where nothing stands out, the bins stay coarse.

        `n_records` is None where the number is private; it is then read off the histograms.
        """
        if self.response.categories is not None:
            return (yield from self.count(Bins(_NO_EDGES, categories=self.response.categories), n_records))
        octaves, n = octave_edges(), None if n_records is None else float(n_records)
        counts = yield from ask(ResponseHistogram(Bins(octaves)), "response magnitude")
        edges = refine(octaves, counts, n, _most_bins(counts, n, self.n_bins, "response span"), np.zeros(1))
        few, pieces = _most_bins(counts, n, self.n_bins, "ranks"), _pieces(octaves, counts, n, edges)
        counts = yield from ask(ResponseHistogram(Bins(edges)), "response span")
        edges = refine(edges, counts, n, few, pieces)
        return (yield from self.count(Bins(edges), n_records))

    def count(self, bins: Bins, n_records: int | None = None) -> Asking[Ranks]:
        """Probabilities of known bins: the last line alone."""
        counts = yield from ask(ResponseHistogram(bins), "ranks")
        seen = _classes(counts) if self.response.hashed else counts.value
        total = float(seen.sum())
        # Of undeclared classes those that are not seen are left out, and the others are all there is.
        n = total if n_records is None or self.response.hashed else float(n_records)
        return Ranks(bins, nearest_shares(seen, n), total, float(counts.noise_std.max()))


def _most_bins(magnitudes: Release, n: float | None, n_bins: int, level: str) -> int:
    """As many bins as leave each of them a count that shows through the noise of a later round."""
    noise = float(magnitudes.noise_std.max()) * np.sqrt(LEVELS["response magnitude"] / LEVELS[level])
    n = float(likely_counts(magnitudes, None).sum()) if n is None else n
    return int(np.clip(n / max(VISIBLE * noise, 1e-9), PIECES, n_bins))


def _pieces(octaves: FloatArray, counts: Release, n: float | None, edges: FloatArray) -> FloatArray:
    """Equal pieces of where y is at first sight; of all `edges` that were made of it, where nothing is seen.

    A single octave of noise far out would make pieces of all edges so wide that one of them holds everybody.
    """
    first, last, likely = likeliest_stretch(octaves, counts, n)
    seen = len(edges) > 1 and likely > 2.0 * np.log(len(counts.value))
    return np.linspace(first if seen else edges[0], last if seen else edges[-1], PIECES + 1)


def refine(edges: FloatArray, counts: Release, n: float | None, bins: int, otherwise: FloatArray) -> FloatArray:
    """New edges: bins in which the n records are likely to be are cut in pieces in proportion to their counts.

    The open end bins cannot be cut. Edges between two bins that are all noise are dropped. If the records could be
    anywhere (chance does as well in one of as many windows as there are pairs of bins), the edges are `otherwise`.
    """
    if likeliest_window(counts, n)[2] <= 2.0 * np.log(len(counts.value)):
        return np.unique(otherwise)
    heavy = likely_counts(counts, n)
    heavy[[0, -1]] = 0.0
    pieces = np.ceil(heavy / max(heavy.sum(), 1.0) * bins).astype(int)
    kept = [np.linspace(edges[i - 1], edges[i], pieces[i] + 1) for i in range(1, len(edges)) if pieces[i] > 0]
    return np.unique(np.concatenate(kept) if kept else otherwise)


def _classes(counts: Release) -> FloatArray:
    """The hash buckets in use: those above what the noise of all buckets reaches, at most `MOST_CLASSES`."""
    reach = np.sqrt(2.0 * np.log(len(counts.value))) + 1.0
    heavy = standing_out(counts, float(reach))
    if not heavy.any():
        heavy[0] = 1.0  # nothing stands out: one class, and the noisy answer comes out all the same
    smallest = np.sort(heavy)[-MOST_CLASSES]
    return np.where(heavy >= max(smallest, 1e-9), heavy, 0.0)
