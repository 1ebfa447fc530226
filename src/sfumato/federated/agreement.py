"""Do the sites agree? A check on what they released anyway, so it costs nothing.

Each site's noisy sums, divided by its public size, estimate the same quantities if the sites' records come from one
distribution. The difference between a site and all others has a known noise variance and a sampling variance that the
released sums themselves tell (counts: p (1 - p) / n; moments and gradients: from the released second moments).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from sfumato.release import Release
from sfumato.settings.federated import Sites
from sfumato.statistics.gradients import ResidualProduct
from sfumato.statistics.histograms import LinearHistograms, NormHistogram, ResponseHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.parts import OnColumns
from sfumato.steps.symmetric import upper_to_full
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

LEVEL = 1e-4
"""Chance that any of the sites of one distribution is ever said to disagree, over all comparisons of a run."""
COMPARISONS = 12
"""More than a run ever makes for one site."""
_ABOUT = {
    ResponseHistogram: "the response",
    NormHistogram: "the length of records",
    LinearHistograms: "the spread of features",
    Moments: "means and covariance of the features",
    ResidualProduct: "how the response depends on the features",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One site against all others on one release."""

    site: str
    line: str
    about: str
    p_value: float


class ComparedSites:
    """Sites whose answers are compared as they come in. Implements `Sites`.

    The site that differs most from all others is set aside first and the rest compared again, so that one odd site does
    not make the others look odd; two sites that differ are both named, as nobody can tell which is right.

    Parameters
    ----------
    sites : Sites
        Under trust="sites" and public sizes; sums of shares cannot be told apart by site.
    leave_out : bool
        Leave a site that disagrees out of every later sum. What it released before stays in, and stays charged.
    """

    def __init__(self, sites: Sites, *, leave_out: bool = False) -> None:
        self._sites = sites
        self._leave_out = leave_out
        self.disagreeing: dict[str, Comparison] = {}

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site."""
        return self._sites.sizes

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """The releases of the sites that are still in."""
        releases = self._sites.ask(query, name)
        if self._leave_out:
            releases = {site: found for site, found in releases.items() if site not in self.disagreeing}
        asked = query.query if isinstance(query, OnColumns) else query
        if type(asked) in _ABOUT and all(self.sizes[site] for site in releases):
            self._compare(asked, name, dict(releases))
        return releases

    def pick(self, query: BoundedSum, name: str, asked: Collection[str]) -> Mapping[str, IntArray]:
        """The picks of the sites that are still in; nothing to compare, as honest sites may name different features."""
        picks = self._sites.pick(query, name, asked)
        return {site: found for site, found in picks.items() if not (self._leave_out and site in self.disagreeing)}

    def _compare(self, query: BoundedSum, name: str, releases: dict[str, Release]) -> None:
        agreeing = {site: found for site, found in releases.items() if site not in self.disagreeing}
        level = LEVEL / (len(self.sizes) * COMPARISONS)
        while len(agreeing) > 1:
            p_values = {site: self._p_value(query, site, agreeing) for site in agreeing}
            odd = min(p_values, key=lambda site: p_values[site])
            if p_values[odd] >= level:
                return
            for site in agreeing if len(agreeing) == 2 else (odd,):
                self.disagreeing[site] = Comparison(site, name, _ABOUT[type(query)], p_values[site])
            del agreeing[odd]

    def _p_value(self, query: BoundedSum, site: str, releases: Mapping[str, Release]) -> float:
        n = float(self.sizes[site] or 1)
        others = [name for name in releases if name != site]
        m = float(sum(self.sizes[name] or 0 for name in others))
        rest = np.sum([releases[name].value for name in others], axis=0)
        noise = np.sum([releases[name].noise_std ** 2 for name in others], axis=0)
        difference = releases[site].value / n - rest / m
        pooled = (releases[site].value + rest) / (n + m)
        variance = releases[site].noise_std ** 2 / n**2 + noise / m**2
        variance = variance + sampling_variance(query, pooled) * (1.0 / n + 1.0 / m)
        return float(chi2.sf(float((difference**2 / variance).sum()), difference.size))


def sampling_variance(query: BoundedSum, pooled: FloatArray) -> FloatArray:
    """Variance of one record's contribution, coordinate by coordinate, from the released mean contribution.

    Moments as for normal features; a gradient's entries share the released mean squared size evenly.
    """
    match query:
        case Moments():
            p = query.source.n_features
            second = upper_to_full(pooled[p:], p)
            diagonal = np.maximum(np.diag(second), 0.0)
            row, column = np.triu_indices(p)
            pairs = diagonal[row] * diagonal[column] + second[row, column] ** 2
            return np.concatenate([diagonal, pairs])
        case ResidualProduct():
            return np.full(query.shape, query.size**2 * 2.0 / query.shape[1])
    share = np.clip(pooled, 0.0, 1.0)
    return np.asarray(share * (1.0 - share))
