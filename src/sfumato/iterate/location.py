"""Bounds bought from the budget: middle and scale of every feature from four histograms, read by two rules.

Wide is nearly harmless, narrow is not: records are clipped and whitened privately later, so bounds that are four times
too wide cost next to nothing, while bounds that are too narrow cut off what explains the response. Both rules
therefore act on what surely is so, and err on the wide side.

*Half*: where a narrow window surely holds half of the records of a feature, its middle is there. A feature that is
not far from zero, compared to its spread, has the middle zero.

*Reach*: the scale is read off the distances from the middle, as far out as counts surely are not zero. Many equal
values (rare events, zeros of an inflated count) do not hide the others, since a distance of zero has its own bin.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds import Bounds, PartialBounds
from sfumato.privacy.curator import Curator
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.solve.counts import likely_end, narrowest_half, seen_bins
from sfumato.statistics.columns import OnColumns
from sfumato.statistics.histograms import OCTAVES, DistanceHistograms, LinearHistograms, OctaveHistograms
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

PARTS = {"magnitude": 0.15, "zoom 1": 0.10, "zoom 2": 0.10, "distance": 0.65}
"""Parts of the share. The scale decides more than the middle, and its counts are small: it gets most."""
PURPOSES = {
    "magnitude": "order of magnitude of each feature",
    "zoom 1": "rough middle of each feature",
    "zoom 2": "middle of each feature",
    "distance": "spread of each feature",
}
ZOOM = 128
"""Bins of a zoom."""
WIDTH = 8.0
"""Least half width of the bounds found, in root mean squares from the middle."""
PLACED = 8.0
"""Standard errors of records off the middle that stand out nowhere: enough to tell where they are likely to be ..."""
MISSING = 2.0
"""... or only that there are some."""
UNIT = OCTAVES + 1
"""Number of octaves of distance up to and with that of the number one."""

Questions = Generator[tuple[BoundedSum, str], Release, "Located"]


@dataclass(frozen=True, slots=True)
class Location:
    """A search for bounds: what is known of the features, and the share of the budget it takes."""

    known: PartialBounds
    share: float


@dataclass(frozen=True, slots=True)
class Located:
    """Bounds of every feature; `unseen` marks those whose records showed no spread, so that the scale is a guess."""

    bounds: Bounds
    unseen: NDArray[np.bool_]


def location_share(n_features: int, n_records: int | None, mu: float) -> float:
    """The share of the budget that a search for that many features takes, from public numbers alone.

    ``2 p / (n mu)^2`` is the variance of a histogram's noise, as part of the records, if the search took the whole
    budget. It is brought to 1e-5 (a third of a per cent of the records), within reason: the rest of a fit that leaves
    less than four fifths of the budget loses more than better bounds bring.

    >>> [round(location_share(p, 20_000, 0.237), 3) for p in (5, 15, 60)], location_share(5, None, 0.237)
    ([0.08, 0.134, 0.2], 0.12)
    """
    if n_records is None:
        return 0.12
    variance = 2.0 * n_features / max(n_records * min(mu, 1e6), 1e-9) ** 2
    return float(np.clip(variance / 1e-5, 0.08, 0.20))


def plan_location(bounds: Bounds | Location) -> tuple[Line, ...]:
    """The lines `find_bounds` may use; none where the bounds are what they are."""
    if isinstance(bounds, Bounds):
        return ()
    asked = [name for name in PARTS if name != "magnitude" or bounds.known.unknown.size]
    if not bounds.known.asked.size:
        return ()
    whole = sum(PARTS[name] for name in asked)
    return tuple(
        Line(name, PURPOSES[name], bounds.share * PARTS[name] / whole, "sqrt(2 p) / sqrt(p)") for name in asked
    )


def find_bounds(curator: Curator, bounds: Bounds | Location, n_features: int, n_records: int | None) -> Located:
    """Bounds of each feature, from noisy histograms alone; those that are what they are pass.

    `n_records` is None where the number is private; it is then read off the histograms.
    """
    if isinstance(bounds, Bounds):
        return settled(bounds, n_features)
    search = locating(bounds.known, n_records)
    try:
        query, name = next(search)
        while True:
            query, name = search.send(curator.answer(query, name))
    except StopIteration as end:
        return cast(Located, end.value)


def settled(bounds: Bounds, n_features: int) -> Located:
    """Bounds about which nothing is asked."""
    return Located(bounds, np.zeros(n_features, dtype=bool))


def locating(known: PartialBounds, n_records: int | None) -> Questions:
    """The search: yields its questions with the names of their lines, is sent the releases.

    Every feature has a public fallback at every step, so that what the data look like never decides whether an error
    is raised. Lines about no feature at all stay unused.
    """
    view = _View(known.lower.copy(), known.upper.copy(), np.zeros(known.n_features), np.zeros(known.n_features))
    zoomed, asked = known.boxed, known.asked
    view.middle[zoomed] = known.lower[zoomed] / 2 + known.upper[zoomed] / 2
    if known.unknown.size:
        counts = yield _about(OctaveHistograms(known.unknown.size), known.unknown, known), "magnitude"
        zoomed = np.union1d(zoomed, view.place(known.unknown, counts, _total(counts, n_records)))
    for name in ("zoom 1", "zoom 2"):
        if zoomed.size:
            query = LinearHistograms(view.lower[zoomed], view.upper[zoomed], ZOOM)
            counts = yield _about(query, zoomed, known), name
            view.zoom(zoomed, counts, _total(counts, n_records))
    if not asked.size:
        return settled(Bounds(known.lower, known.upper), known.n_features)
    counts = yield _about(DistanceHistograms(view.middle[asked], view.step[asked]), asked, known), "distance"
    return _bounds(known, view, counts, n_records)


@dataclass(frozen=True, slots=True)
class _View:
    """Where each feature is looked for: a window, and what is known so far of its middle, to within a step."""

    lower: FloatArray
    upper: FloatArray
    middle: FloatArray
    step: FloatArray

    def place(self, columns: IntArray, counts: Release, n: float) -> IntArray:
        """Windows of the features that are far from zero: half of their records are in one or two octaves of a sign."""
        first, end = narrowest_half(counts.value, _noise(counts), n, (1, 2))
        centre = 2 * OCTAVES + 1
        ends = np.array([first - centre, end - 1 - centre])
        far = (end > 0) & (ends[0] * ends[1] > 0)
        size, sign = np.abs(ends[:, far]), np.sign(ends[0, far])
        near, distant = 2.0 ** (size.min(axis=0) - OCTAVES - 1.0), 2.0 ** (size.max(axis=0) - OCTAVES)
        found: IntArray = columns[far]
        self.lower[found], self.upper[found] = np.sort([sign * near, sign * distant], axis=0)
        self.middle[found] = sign * np.sqrt(near * distant)
        return found

    def zoom(self, columns: IntArray, counts: Release, n: float) -> None:
        """Shrink each window to the narrowest part that surely holds half of the records."""
        first, end = narrowest_half(counts.value[:, 1:-1], _noise(counts), n, tuple(2**k for k in range(7)))
        lower, width = self.lower[columns], (self.upper[columns] - self.lower[columns]) / ZOOM
        low, high = lower + width * first, lower + width * end
        # Floats around a huge middle must still tell the bins of the next zoom apart.
        found = (end > 0) & (high - low > 1e-12 * np.maximum(np.abs(low), np.abs(high))) & (width > 1e-145)
        at = columns[found]
        self.lower[at], self.upper[at] = low[found], high[found]
        self.middle[at] = low[found] / 2 + high[found] / 2
        # Where no part of the window holds half, the records are spread over it: they are told apart to within a bin.
        self.step[columns] = width


def _bounds(known: PartialBounds, view: _View, counts: Release, n_records: int | None) -> Located:
    """The last reading: half widths from the distances, cut to the boxes that are known."""
    asked, n = known.asked, _total(counts, n_records)
    noise = _noise(counts)
    total_noise = 0.0 if n_records is not None else noise * float(np.sqrt(counts.value.shape[1] / len(asked)))
    boxed = np.isin(asked, known.boxed)
    half, shown = _half_widths(counts.value, noise, n, total_noise, boxed)
    lower, upper, unseen = known.lower.copy(), known.upper.copy(), np.zeros(known.n_features, dtype=bool)
    middle, step = view.middle[asked], view.step[asked]
    # Far from zero and no spread to be seen: so wide that the feature weighs nothing, rather than a guess.
    half = np.where(~shown & (middle != 0), np.abs(middle), np.maximum(half, step))
    half = np.maximum(half, 2.0**-30 * np.abs(middle))  # floats must tell both ends apart
    low, high = middle - half, middle + half
    cut = boxed & shown
    low[cut], high[cut] = np.maximum(low, lower[asked])[cut], np.minimum(high, upper[asked])[cut]
    keep = boxed & (~shown | ~(high > low))
    low[keep], high[keep] = lower[asked][keep], upper[asked][keep]
    lower[asked], upper[asked], unseen[asked] = low, high, ~shown
    return Located(Bounds(lower, upper), unseen)


def _half_widths(
    counts: FloatArray, noise: float, n: float, total_noise: float, boxed: NDArray[np.bool_]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Half widths from histograms of distances, and which features showed a distance of their own.

    A feature of which nothing stands out, though records are missing from the middle, has its scale where they most
    likely are. All features of which nothing shows are looked at together; if they show nothing either, they are taken
    for 0 and 1, which is right for rare events.
    """
    seen = np.array([seen_bins(row, noise) for row in counts])
    off = n - np.where(seen[:, 0], counts[:, 0], 0.0)
    counts, seen = counts[:, 1:], seen[:, 1:]
    ends = (seen * np.arange(1, counts.shape[1] + 1)).max(axis=1)
    error = float(np.hypot(noise, total_noise))
    for j in np.flatnonzero((ends == 0) & (off > PLACED * error) & ~boxed):
        ends[j] = likely_end(counts[j], noise, off[j], UNIT)
    shown = ends > 0
    half = np.array([_half_width(row, n, end) if end else 1.0 for row, end in zip(counts, ends, strict=True)])
    blank = ~shown & ~boxed
    if not blank.any():
        return half, shown
    pool, size = counts[blank].sum(axis=0), int(blank.sum())
    together = np.flatnonzero(seen_bins(pool, noise * float(np.sqrt(size))))
    if together.size:
        half[blank] = _half_width(pool, n * size, int(together[-1]) + 1)
    else:
        for j in np.flatnonzero(blank & (off > MISSING * error)):
            half[j] = _half_width(counts[j], n, max(UNIT, likely_end(counts[j], noise, off[j], UNIT, 0.8)))
    return half, shown


def _half_width(counts: FloatArray, n: float, end: int) -> float:
    """As far as the first `end` octaves reach, or `WIDTH` root mean squares of the distances within."""
    outer = 2.0 ** (np.arange(end) - OCTAVES + 1.0)
    square = 3.0 / (8.0 * np.log(2.0)) * outer**2  # of a distance spread evenly over an octave on the log scale
    return max(float(outer[-1]), WIDTH * float(np.sqrt(np.maximum(counts[:end], 0.0) @ square / max(n, 1.0))))


def _about(query: BoundedSum, columns: IntArray, known: PartialBounds) -> BoundedSum:
    """The question about some columns; about all of them it is the question itself."""
    return query if columns.size == known.n_features else OnColumns(query, columns)


def _noise(counts: Release) -> float:
    return float(counts.noise_std.max())


def _total(counts: Release, n_records: int | None) -> float:
    """Number of records: public, or what the histograms add up to, each of them to all."""
    if n_records is not None:
        return float(n_records)
    return max(float(counts.value.sum()) / len(counts.value), 1.0)
