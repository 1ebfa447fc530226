"""Bounds bought from the budget: middle and scale of every feature from four histograms, read by two rules.

Wide is nearly harmless, narrow is not: records are clipped and whitened privately later, so bounds that are four times
too wide cost next to nothing, while bounds that are too narrow cut off what explains the response. Both rules
therefore act on what surely is so, and err on the wide side.

*Half*: where a narrow window surely holds half of the records of a feature, its middle is there. A feature that is
not far from zero, compared to its spread, has the middle zero.

*Reach*: the scale is read off the distances from the middle, as far out as counts surely are not zero. Many equal
values (rare events, zeros of an inflated count) do not hide the others, since a distance of zero has its own bin.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from sfumato.bounds import NARROWEST, Bounds, Grid, PartialBounds
from sfumato.errors import AccuracyWarning, InputError
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.plan import Line
from sfumato.release import Release
from sfumato.statistics.histograms import OCTAVES, DistanceHistograms, LinearHistograms, OctaveHistograms
from sfumato.statistics.parts import OnColumns
from sfumato.steps.noisy_histograms import (
    SEEN,
    Estimate,
    likeliest_window,
    likely_counts,
    likely_end,
    narrowest_half,
    seen_bins,
    standing_out,
)
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

PARTS = {"magnitude": 0.15, "zoom 1": 0.10, "zoom 2": 0.10, "distance": 0.65}
"""Parts of the share. The scale decides more than the middle, and its counts are small: it gets most."""
PURPOSES = {
    "magnitude": "order of magnitude of each feature",
    "zoom 1": "rough middle of each feature",
    "zoom 2": "middle of each feature",
    "distance": "spread of each feature",
    "standard": "mean and standard deviation of each feature",
}
QUESTIONS: dict[str, type[BoundedSum]] = {
    "magnitude": OctaveHistograms,
    "zoom 1": LinearHistograms,
    "zoom 2": LinearHistograms,
    "distance": DistanceHistograms,
    "standard": LinearHistograms,
}
STANDARD = 0.5
"""Part of the last histogram, where features are to be standardised, beside the others' 1."""
ZOOM = 128
"""Bins of a zoom."""
MOST_SHARE = 0.20
"""Of the budget that a search takes, where a fit follows; what so few records and features leave to it."""
ROUGH_INSIDE, MOST_INSIDE = 2.8e-5, 2e-4
"""Variance of the noise of a histogram, as part of the records, if a search took the whole budget: up to which a tenth
of it tells spreads inside known bounds well, and up to which it tells them at all."""
HOPELESS, DOUBTFUL = 90.0, 330.0
"""Least ``n mu / sqrt(p)``, at that share, with which bounds are found at all, and features far from zero are, too."""
STANDARD_BINS = 32
"""Bins from which mean and standard deviation are read."""
WIDTH = 8.0
"""Least half width of the bounds found, in root mean squares from the middle. A feature of which known bounds say
everything is that many half widths wide, so that its unit is like that of the others."""
SEEN_IN_BOX = 4.0
"""Standard errors by which a count inside known bounds, near to them, is surely not zero."""
NEAR_BOX = 5
"""Octaves up to those of known bounds that are near to them."""
BELOW_BOX = 6
"""Octaves, from those of known bounds on down, in which records are looked for that stand out in none of them."""
ROOM = 3
"""Octaves from that of the number one on in which known bounds of a feature may end that is likely one of 0 and 1."""
ALIKE = 8.0
"""Octaves by which the sizes of features of one table are usually apart."""
CLEARLY = 2.0 * float(np.log(ZOOM))
"""Log-likelihood of a window of a zoom that chance does not reach: there are as many as half the square of its bins."""
CLOSELY, ROUGHLY, ROUGH = 1.4, 2.0, 0.015
"""Factors within which units agree with known bounds: where counts are known well, and where their noise is so large a
part of the records that units are read roughly. Where features are nearly copies of each other, bounds in other
proportions than their spreads hide what they differ in."""
PLACED = 8.0
"""Standard errors of records off the middle that stand out nowhere: enough to tell where they are likely to be ..."""
MISSING = 2.5
"""... or only that there are some."""
HEAVIEST = 1.0 / 3.0
"""Slowest fall of a tail, from an octave to the next; at a quarter, each octave adds as much to the mean square."""
RATHER_UNIT = 0.97
"""How much rather those few are taken for rare events, 0 and 1, than for rare amounts of another size: of dozens of
octaves some look like it by chance."""
RATHER_BOX = 0.9
"""The same of features with known bounds, where fewer octaves are looked at: how much rather they reach the bounds."""
CLEAR, TAIL = 4.0, 2
"""Standard errors of a count that is taken for more than chance, and octaves beside it in which fewer may go on."""
UNIT = OCTAVES + 1
"""Number of octaves of distance up to and with that of the number one."""


@dataclass(frozen=True, slots=True)
class Location:
    """A search for bounds: what is known of the features, and the share of the budget it takes.

    `insists` says that it is to be made even where public numbers say that it will hardly find anything; `standardises`
    that the middle is to be near the mean and the scale near the standard deviation, since features are compared
    with those of others (sites in units of their own).
    """

    known: PartialBounds
    share: float
    insists: bool = False
    standardises: bool = False


@dataclass(frozen=True, slots=True)
class Located:
    """Bounds of every feature, those given or those found, and the unit in which it is measured.

    `unit` has the centre and half width of the grid, where the spread inside the bounds was looked for; None: they
    are those of the bounds. `unseen` marks features whose records showed no spread, so that the scale is a guess.
    `reading` is what the units were read off, if they were.
    """

    bounds: Bounds
    unseen: NDArray[np.bool_]
    unit: tuple[FloatArray, FloatArray] | None = None
    reading: "Reading | None" = None

    @property
    def grid(self) -> Grid:
        """The integer grid."""
        if self.unit is None:
            return self.bounds.grid(len(self.unseen))
        return Grid(*self.unit, limits=np.array([self.bounds.lower, self.bounds.upper]))

    @property
    def box(self) -> Bounds:
        """Where values count as they are in the fit; beyond it they count as its ends."""
        if self.unit is None:
            return self.bounds
        centre, half_width = self.unit
        lower = np.maximum(self.bounds.lower, centre - half_width)
        upper = np.minimum(self.bounds.upper, centre + half_width)
        told = upper - lower > NARROWEST  # of a middle at an end of its bounds floats may tell nothing
        return Bounds(np.where(told, lower, self.bounds.lower), np.where(told, upper, self.bounds.upper))


def location_share(known: PartialBounds, n_records: int | None, mu: float) -> float:
    """The share of the budget that the search takes, from public numbers alone; 0: there is nothing to be gained.

    ``2 p / (n mu)^2`` is the variance of a histogram's noise, as part of the records, if the search took the whole
    budget. Where bounds are to be found it is brought to 1e-5 (a third of a per cent of the records), within reason:
    a fit that is left less than four fifths of the budget loses more than better bounds bring. Where all bounds are
    known, only the scale inside is at stake: more records may hide, and the search takes at most a tenth of the budget
    (a little more where that shows little), or nothing where it would be noise: bounds that are units lose less then.

    >>> nothing, box = PartialBounds.nothing, PartialBounds.of(Bounds(0, 1), 15)
    >>> [round(location_share(nothing(p), 20_000, 0.237), 3) for p in (5, 15, 60)]
    [0.08, 0.134, 0.2]
    >>> location_share(nothing(5), None, 0.237)
    0.12
    >>> [round(location_share(box, n, 0.237), 3) for n in (20_000, 8_000, 800)]
    [0.045, 0.1, 0.0]
    >>> location_share(PartialBounds.of(Bounds(0, 1), 60), 8_000, 0.237)
    0.15
    """
    searches = known.unknown.size > 0
    if n_records is None:
        return 0.12 if searches else 0.05
    variance = 2.0 * known.asked.size / max(n_records * min(mu, 1e6), 1e-9) ** 2
    if searches:
        return float(np.clip(variance / 1e-5, 0.08, MOST_SHARE))
    if variance > MOST_INSIDE:
        return 0.0
    return float(np.clip(variance / 3e-5, 0.01, 0.10 if variance < ROUGH_INSIDE else 0.15))


def assume_bounds(
    bounds: Bounds | Location, n_features: int, box: float, n_records: int | None, mu: float
) -> Bounds | Location:
    """Bounds, or the search for them, of another number of records and features within ``+-box``: for forecasts."""
    if isinstance(bounds, Bounds):
        return Bounds(-box, box)
    searched = PartialBounds.nothing(n_features)
    known = searched if bounds.known.unknown.size else PartialBounds.of(Bounds(-box, box), n_features)
    share = location_share(known, n_records, mu)
    return replace(bounds, known=known, share=share) if share > 0.0 else Bounds(-box, box)


def searches_in_vain(location: Location, n_records: int, mu: float) -> bool:
    """Whether public numbers say that hardly any bounds will be found."""
    return bool(_clarity(location, n_records, mu) < HOPELESS)


def _clarity(location: Location, n_records: int, mu: float) -> float:
    """``n mu / sqrt(p)``: how far counts of all records stand out of the noise of p histograms, at the usual share."""
    return float(n_records * mu * np.sqrt(location.share / MOST_SHARE / max(location.known.unknown.size, 1)))


def check_search(location: Location, n_records: int | None, mu: float, stacklevel: int = 2) -> None:
    """Refuse a search that public numbers say is in vain, and warn of one that may miss features.

    Where the number of records is private there is nothing to go by.
    """
    unknown = location.known.unknown.size
    if n_records is None or not unknown or location.insists:
        return
    if searches_in_vain(location, n_records, mu):
        raise InputError(
            f"bounds: {n_records} records are too few to find those of {unknown} features within this budget; give "
            "bounds, if only of some features ({'age': (0, 120)}), raise epsilon, or insist with bounds='search' "
            "(--bounds search)."
        )
    if _clarity(location, n_records, mu) < DOUBTFUL:
        warnings.warn(
            f"bounds: with {n_records} records and this budget, those of {unknown} features are found roughly, "
            "and features far from zero (years, dates, offsets) may be dropped; give bounds for these.",
            AccuracyWarning,
            stacklevel=stacklevel,
        )


@dataclass(frozen=True, slots=True)
class Locating:
    """The step that finds bounds, from noisy histograms alone; those that are what they are pass."""

    bounds: Bounds | Location

    @property
    def lines(self) -> tuple[Line, ...]:
        """What the search may ask; nothing where the bounds are what they are."""
        if isinstance(self.bounds, Bounds):
            return ()
        asked = {name: part for name, part in PARTS.items() if name != "magnitude" or self.bounds.known.unknown.size}
        if self.bounds.standardises:
            asked["standard"] = STANDARD
        each = self.bounds.share / sum(asked.values())
        return tuple(
            Line(name, PURPOSES[name], each * part, "sqrt(2 p) / sqrt(p)", asks=QUESTIONS[name])
            for name, part in asked.items()
        )

    def run(self, n_features: int, n_records: int | None) -> Asking[Located]:
        """Bounds of each feature; `n_records` is None where the number is private, and read off the histograms."""
        if isinstance(self.bounds, Bounds):
            return settled(self.bounds, n_features)
        return (yield from _search(self.bounds, n_records))


def settled(bounds: Bounds, n_features: int) -> Located:
    """Bounds about which nothing is asked."""
    return Located(bounds, np.zeros(n_features, dtype=bool))


def _search(location: Location, n_records: int | None) -> Asking[Located]:
    """Every feature has a public fallback at every step, so that what the data look like never decides whether an error
    is raised.
    """
    known = location.known
    lower, upper = np.nan_to_num(known.lower, nan=-1.0), np.nan_to_num(known.upper, nan=1.0)
    middle, step = np.zeros((2, known.n_features))
    view = _View(lower, upper, middle, step, np.full(known.n_features, 0.5))
    zoomed, asked = known.boxed, known.asked
    view.middle[zoomed] = known.lower[zoomed] / 2 + known.upper[zoomed] / 2
    if known.unknown.size:
        counts = yield from ask(_about(OctaveHistograms(known.unknown.size), known.unknown, known), "magnitude")
        zoomed = np.union1d(zoomed, view.place(known.unknown, counts, _total(counts, n_records)))
    for name in ("zoom 1", "zoom 2"):
        looked = zoomed if zoomed.size else asked  # the fewer features, the less noise; but what is planned is asked
        counts = yield from ask(
            _about(LinearHistograms(view.lower[looked], view.upper[looked], ZOOM), looked, known), name
        )
        if zoomed.size:
            view.zoom(zoomed, counts, _total(counts, n_records))
    counts = yield from ask(_about(DistanceHistograms(view.middle[asked], view.step[asked]), asked, known), "distance")
    reading = Reading(known, view, counts, n_records)
    located = reading.located()
    if not location.standardises:
        return replace(located, reading=reading)
    counts = yield from ask(LinearHistograms(located.bounds.lower, located.bounds.upper, STANDARD_BINS), "standard")
    return Located(_standard(located.bounds, counts), located.unseen)


@dataclass(frozen=True, slots=True)
class _View:
    """Where each feature is looked for: a window, and what is known so far of its middle, to within a step.

    `above` is the part of the records off the middle that lie above it; a half where that is not known.
    """

    lower: FloatArray
    upper: FloatArray
    middle: FloatArray
    step: FloatArray
    above: FloatArray

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
        shown = standing_out(counts)
        sides = np.array([shown[:, :centre].sum(axis=1), shown[:, centre + 1 :].sum(axis=1)])
        told = ~far & (sides.sum(axis=0) > 0)
        self.above[columns[told]] = sides[1, told] / sides[:, told].sum(axis=0)
        return found

    def zoom(self, columns: IntArray, counts: Release, n: float) -> None:
        """Shrink each window to the narrowest part that surely holds half of the records, or else to where they are
        by far most likely: the middle of a box is a poor guess of a skewed feature's.
        """
        first, end = narrowest_half(counts.value[:, 1:-1], _noise(counts), n, tuple(2**k for k in range(7)))
        for row in np.flatnonzero(end == 0):
            inner = Release(counts.value[row, 1:-1], counts.noise_std[row, 1:-1])
            likely = likeliest_window(inner, n)
            if likely[2] > CLEARLY:
                first[row], end[row] = likely[:2]
        lower, width = self.lower[columns], (self.upper[columns] - self.lower[columns]) / ZOOM
        low, high = lower + width * first, lower + width * end
        # Floats around a huge middle must still tell the bins of the next zoom apart.
        found = (end > 0) & (high - low > 1e-12 * np.maximum(np.abs(low), np.abs(high))) & (width > 1e-145)
        at = columns[found]
        self.lower[at], self.upper[at] = low[found], high[found]
        self.middle[at] = low[found] / 2 + high[found] / 2
        # Where no part of the window holds half, the records are spread over it: they are told apart to within a bin.
        self.step[columns] = width
        middle = np.where(found, (first + end) / 2.0, ZOOM / 2.0)
        lower_part = np.clip(middle[:, None] - np.arange(ZOOM), 0.0, 1.0)
        below = counts.value[:, 0] + (counts.value[:, 1:-1] * lower_part).sum(axis=1)
        self.above[columns] = np.clip(1.0 - below / n, 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What units are read off: the histograms of distances, about middles that were found before."""

    known: PartialBounds
    view: _View
    counts: Release
    n_records: int | None

    def located(self) -> Located:
        """Bounds and units."""
        return _bounds(self.known, self.view, self.counts, self.n_records)

    def distributions(self) -> "Distributions":
        """How the records of every feature that was asked about are likely to lie around its middle."""
        n, asked = None if self.n_records is None else float(self.n_records), self.known.asked
        rows = zip(self.counts.value, self.counts.noise_std, strict=True)
        likely = np.array([likely_counts(Release(value, noise), n) for value, noise in rows])
        likely[:, 0] += likely.sum(axis=1) == 0.0
        below = np.cumsum(likely, axis=1) / likely.sum(axis=1, keepdims=True)
        step = self.view.step[asked, None]
        ends = np.maximum(2.0 ** (np.arange(likely.shape[1]) - float(OCTAVES)), step)
        # What is nearer than a step is spread over it; without one it is at the middle itself.
        ends, below = np.hstack([0.0 * step, ends]), np.hstack([np.where(step > 0, 0.0, below[:, :1]), below])
        return Distributions(asked, self.view.middle[asked], self.view.above[asked], ends, below)

    def half_widths_again(self, rng: np.random.Generator) -> FloatArray:
        """Half widths that other noise might have told.

        Counts that are hardly more than noise are taken for none, but for those that go on from others: of hundreds of
        octaves some show chance, and with noise on top of it would be seen far more often than the first time.
        """
        value, noise = self.counts.value, self.counts.noise_std
        clear = value > CLEAR * noise
        tail = maximum_filter1d(clear, 2 * TAIL + 1, axis=1, mode="constant") & (value > noise)
        counts = Release(np.where(clear | tail, value, 0.0) + noise * rng.standard_normal(noise.shape), noise)
        return replace(self, counts=counts).located().grid.half_width

    @np.errstate(all="ignore")
    def kurtosis_again(self, rng: np.random.Generator) -> FloatArray:
        """Of each feature about its middle, within half a width: as the counts leave it possible, other noise taken off
        them.

        What hides in the noise of the outer octaves would make a tail heavy: for the fourth moment every count is taken
        for higher by half its standard error. Infinite where no distances were asked for.
        """
        half_width, asked = self.located().grid.half_width, self.known.asked
        noise = self.counts.noise_std[:, 1:]
        counts = self.counts.value[:, 1:] + noise * rng.standard_normal(noise.shape)
        outer = 2.0 ** (np.arange(counts.shape[1]) - OCTAVES + 1.0) / half_width[asked, None]
        reach = np.where(outer < 2.0, np.minimum(outer, 1.0), 0.0)  # bins of noise alone would outweigh those inside
        second = (np.maximum(counts, 0.0) * reach**2).sum(axis=1)
        fourth = (np.maximum(counts + noise / 2.0, 0.0) * reach**4).sum(axis=1)
        found = np.full(self.known.n_features, np.inf)
        found[asked] = fourth * _total(self.counts, self.n_records) / np.maximum(second, 1e-300) ** 2
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """Of some features around their middles, as histograms tell them.

    Attributes
    ----------
    columns : ndarray of int
        Which features.
    middle, above : ndarray
        The middle of each, and the part of the records off the middle that lie above it.
    ends, below : ndarray of shape (features, octaves)
        Zero and the ends of octaves of distance from the middle, and the part of the records up to there. Where
        nothing shows all records are taken to be at the middle.
    """

    columns: IntArray
    middle: FloatArray
    above: FloatArray
    ends: FloatArray
    below: FloatArray

    def at(self, row: int, off: FloatArray) -> FloatArray:
        """Part of the records below these differences from the middle; of those at the middle itself half count."""
        near, above = self.below[row, 0], self.above[row]
        nearer = np.where(off == 0, near, np.interp(np.abs(off), self.ends[row], self.below[row]))
        # The middle takes its own part of the ranks, and each side its part of the rest.
        side = np.where(off > 0, above, above - 1.0)
        return np.asarray(
            (1.0 - near) * (1.0 - above) + near / 2.0 + np.sign(off) * near / 2.0 + side * (nearer - near)
        )


def _bounds(known: PartialBounds, view: _View, counts: Release, n_records: int | None) -> Located:
    """The last reading: units from the distances, bounds where they were not known."""
    asked, n = known.asked, _total(counts, n_records)
    noise = _noise(counts)
    total_noise = 0.0 if n_records is not None else noise * float(np.sqrt(counts.value.shape[1] / len(asked)))
    boxed = np.isin(asked, known.boxed)
    middle, step = view.middle[asked], view.step[asked]
    widest = np.maximum(middle - known.lower[asked], known.upper[asked] - middle)  # nan where nothing is known
    half, shown = _half_widths(counts.value, noise, n, total_noise, np.where(boxed, widest, np.inf))
    # Far from zero and no spread to be seen: so wide that the feature weighs nothing, rather than a guess.
    half = np.where(~shown & ~boxed & (middle != 0), np.abs(middle), np.maximum(half, step))
    half = np.maximum(half, 2.0**-30 * np.abs(middle))  # floats must tell both ends apart
    centre, half_width = known.lower / 2 + known.upper / 2, known.upper / 2 - known.lower / 2
    told = boxed & shown
    factor = float(np.clip(ROUGHLY * noise / max(ROUGH * n, 1e-9), CLOSELY, ROUGHLY))
    middle[told], half[told] = _agreeing(middle[told], half[told], centre[asked[told]], half_width[asked[told]], factor)
    half_width *= WIDTH
    centre[asked], half_width[asked] = middle, half
    lower, upper, unseen = known.lower.copy(), known.upper.copy(), np.zeros(known.n_features, dtype=bool)
    found = known.unknown
    lower[found], upper[found] = (centre - half_width)[found], (centre + half_width)[found]
    unseen[asked] = ~shown
    return Located(Bounds(lower, upper), unseen, (centre, half_width))


def _agreeing(
    middle: FloatArray, half: FloatArray, centre: FloatArray, half_width: FloatArray, factor: float
) -> tuple[FloatArray, FloatArray]:
    """Units inside known bounds: in proportion to the bounds, but for features that are not, by more than a `factor`.

    What was found is noisy, the bounds are not.
    """
    ratio = half / half_width
    usual = np.median(ratio) if len(ratio) else 1.0
    agrees = np.abs(np.log(ratio / usual)) < np.log(factor)
    half = np.where(agrees, usual * half_width, half)
    return np.where(agrees & (np.abs(middle - centre) < half / WIDTH), centre, middle), half


def _half_widths(
    counts: FloatArray, noise: float, n: float, total_noise: float, widest: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Half widths from histograms of distances, and which features showed a distance of their own.

    `widest` is how far known bounds let a record be from the middle; infinite where they are not known.

    A feature of which nothing stands out, though records are missing from the middle, has its scale where they most
    likely are. All others of which nothing shows are looked at together; if they show nothing either, they are taken
    for 0 and 1, which is right for rare events, or for as wide as known bounds allow where these are not about so wide.
    """
    # Inside a box few octaves can hold records: less is needed to tell that they do, and a false alarm is harmless,
    # because those beyond the box are not looked at. Far below the ends of the box it is not: a feature would be
    # measured in a unit that is thousands of times too small, and weigh as many times too much.
    boxed = np.isfinite(widest)
    seen = seen_bins(counts, noise)
    inside = np.floor(np.log2(np.where(boxed, widest, 1.0)))[:, None] + UNIT  # a power of two begins its octave
    octave = np.arange(counts.shape[1])
    seen |= boxed[:, None] & (octave > inside - NEAR_BOX) & seen_bins(counts, noise, SEEN_IN_BOX)
    seen[:, 1:] &= ~boxed[:, None] | (octave[1:] <= inside)
    off = n - np.where(seen[:, 0], counts[:, 0], 0.0)
    counts, seen, inside = counts[:, 1:], seen[:, 1:], inside[:, 0]
    ends = (seen * np.arange(1, counts.shape[1] + 1)).max(axis=1)
    error = float(np.hypot(noise, total_noise))
    shown = ends > 0
    room = np.clip(inside, 1, counts.shape[1]).astype(np.int64)
    # What a feature is taken for of which nothing shows: 0 and 1, unless bounds leave no room for that, or far more.
    usual = np.where(boxed & ((inside < UNIT) | (inside >= UNIT + ROOM)), room, UNIT)
    prior = _prior_ends(ends[shown & ~boxed], np.where(boxed, room, 0), counts.shape[1])
    for j in np.flatnonzero(~shown & (off > MISSING * error)):
        placed = off[j] > PLACED * error
        trust = 0.5 if placed else RATHER_BOX if boxed[j] else RATHER_UNIT
        end = likely_end(counts[j], noise, Estimate(float(off[j]), error), int(usual[j]), trust, prior[j])
        shown[j], ends[j] = placed, end if placed or boxed[j] or end > UNIT else 0
    most, blind = np.where(boxed, inside, np.inf), np.where(usual == UNIT, 1.0, widest)
    half = np.array(
        [
            _half_width(row, noise, n, end, m) if end else unit
            for row, end, m, unit in zip(counts, ends, most, blind, strict=True)
        ]
    )
    blank = (ends == 0) & ~boxed
    pool, size = counts[blank].sum(axis=0), max(int(blank.sum()), 1)
    together = np.flatnonzero(seen_bins(pool, noise * float(np.sqrt(size))))
    if together.size:
        half[blank] = _half_width(pool, noise * float(np.sqrt(size)), n * size, int(together[-1]) + 1)
    return np.where(shown, half, np.minimum(half, widest)), shown


def _prior_ends(seen: IntArray, room: IntArray, octaves: int) -> FloatArray:
    """How likely each octave is the last one of a feature of which nothing stands out, before its counts are looked at.

    Features of one table are of sizes that are not too far from each other: from the median of the ends that were
    `seen`. Inside known bounds, with `room` for so many octaves (0: not known), they are near to these.

    >>> _prior_ends(np.array([41, 45, 43]), np.array([0, 5]), 60)[:, [2, 3, 42, 50]].round(2)
    array([[0.04, 0.04, 1.  , 0.5 ],
           [1.  , 1.  , 0.  , 0.  ]])
    """
    end = np.arange(1, octaves + 1)
    alike = 1.0 / (1.0 + ((end - (np.median(seen) if seen.size else UNIT)) / ALIKE) ** 2)
    below = room[:, None] - end
    return np.where(room[:, None] > 0, (below >= 0) & (below < BELOW_BOX), alike)


def _half_width(counts: FloatArray, noise: float, n: float, end: int, most: float = np.inf) -> float:
    """As far as the first `end` octaves reach, or `WIDTH` root mean squares of the distances, tail included.

    Known bounds leave room for `most` octaves, and the tail ends there.
    """
    tail = _tail(counts, noise, end)[: int(min(max(most - end, 0.0), len(counts)))]
    likely = np.concatenate([np.maximum(counts[:end], 0.0), tail])
    outer = 2.0 ** (np.arange(len(likely)) - OCTAVES + 1.0)
    square = 3.0 / (8.0 * np.log(2.0)) * outer**2  # of a distance spread evenly over an octave on the log scale
    if end == UNIT and np.isinf(most) and not tail.size and not (likely[: end - 1] > SEEN * noise).any():
        outer[end - 1] = square[end - 1] = 1.0  # nothing but zeros and the octave of the number one: 0 and 1
    return max(float(outer[end - 1]), WIDTH * float(np.sqrt(likely @ square / max(n, 1.0))))


def _tail(counts: FloatArray, noise: float, end: int) -> FloatArray:
    """Counts beyond the last octave that is seen, as they go on falling, down to a single record.

    They fall at the rate of the last two octaves, or as fast as the next count surely says. A light tail adds next to
    nothing; of a heavy one, the rare records far out make up most of the scale.
    """
    before, last = (float(counts[end - k]) if end >= k else 0.0 for k in (2, 1))
    if last <= 1.0:
        return np.empty(0)
    following = float(counts[end]) - 2.0 * noise if end < len(counts) else 0.0
    rate = min(last / max(before, 1.0), following / last, HEAVIEST)
    if rate <= 1e-6:
        return np.empty(0)
    return np.asarray(last * rate ** np.arange(1, int(np.log(last) / -np.log(rate)) + 1))


def _standard(bounds: Bounds, counts: Release) -> Bounds:
    """Bounds ``mean +- WIDTH sd`` of the binned distribution, by the bins that stand out if they hold most records."""
    width = (bounds.upper - bounds.lower) / STANDARD_BINS
    middle = bounds.lower[:, None] + width[:, None] * (np.arange(STANDARD_BINS) + 0.5)
    heavy = standing_out(Release(counts.value[:, 1:-1], counts.noise_std[:, 1:-1]))
    total = heavy.sum(axis=1)
    weight = heavy / np.maximum(total, 1e-300)[:, None]
    mean = (weight * middle).sum(axis=1)
    sd = np.sqrt(np.maximum((weight * (middle - mean[:, None]) ** 2).sum(axis=1), width**2 / 12.0))
    known = total > 0.7 * np.maximum(counts.value.sum(axis=1), 1.0)  # else many equal values would hide the others
    lower = np.where(known, mean - WIDTH * sd, bounds.lower)
    return Bounds(lower, np.where(known, mean + WIDTH * sd, bounds.upper))


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
