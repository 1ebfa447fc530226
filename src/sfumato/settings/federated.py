"""The federated setting: every site is its own curator, and the server adds what the sites release.

Records never meet. A site adds up its own records, writes its own ledger and draws its own noise; only the noisy sum
leaves. Integer sums over the sites equal the pooled sum bit for bit, so distance costs nothing but noise.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SfumatoError
from sfumato.privacy.curator import Curator
from sfumato.privacy.door import Behind, Door, Setting, open_door
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise, SecureNoise, SeededNoise
from sfumato.privacy.parameters import noise_of
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import Kind
from sfumato.records import Response
from sfumato.release import Release
from sfumato.sources import Source
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation, is_whole

_ALIKE = 1e-6
"""Weights that differ by less are one: sites of one size, or without noise, add up to the pooled sum exactly."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What the sites need to believe of each other and of the server.

    ``sites``
        Every site adds all the noise its own records need. Nobody else has to be trusted; the noise of the sum has
        ``sqrt(K)`` times the standard deviation of a central run.
    ``secure-aggregation``
        Every site adds a share of variance ``1 / honest`` of that noise. Its guarantee holds if the server sees only
        the *sum* of all uploads and at least `honest` sites (itself one of them) add their share and keep it secret.
        The noise of the sum is ``sqrt(K / honest)`` times that of a central run.

    Notes
    -----
    The sum of h independent rounded Gaussians has the law of ``rint(N + U_1 + ... + U_(h-1))``, N Gaussian with the
    summed variance and U_i uniform on a unit (their characteristic functions agree but for aliases of size
    ``exp(-2 pi^2 std^2)``, and `std` is 2**21 units or more): post-processing of the ideal Gaussian mechanism, so no
    correction is needed.
    """

    kind: Literal["sites", "secure-aggregation"]
    sites: int
    honest: int

    @property
    def share(self) -> int:
        """A site's noise has this fraction, one over it, of the full variance."""
        return self.honest if self.kind == "secure-aggregation" else 1

    @property
    def sentence(self) -> str:
        """The condition of the guarantee, for the ledger."""
        if self.kind == "sites":
            return "Each site adds all its noise itself: neither the server nor another site needs to be trusted."
        return (
            f"This holds if the server sees only sums over the {self.sites} sites and at least {self.honest} of them "
            "add their share of the noise and keep it secret."
        )


def trust_of(kind: object, sites: int, honest: int | None = None) -> Trust:
    """The trust model by name. `honest` defaults to all sites but one: no single other site can undo the noise.

    >>> trust_of("secure-aggregation", 10).honest
    9
    """
    chosen = max(sites - 1, 1) if honest is None else honest
    if not is_whole(chosen, 1, sites):
        raise InputError(f"honest must be a whole number from 1 to the {sites} sites, got {honest!r}.")
    match kind:
        case "sites":
            return Trust("sites", sites, 1)
        case "secure-aggregation":
            return Trust("secure-aggregation", sites, int(chosen))
    raise InputError(f"trust must be 'sites' or 'secure-aggregation', got {kind!r}.")


class SiteLedger(Ledger):
    """A site's own account in memory; its guarantee names the trust model."""

    trust: Trust | None = None

    @property
    def guarantee(self) -> str:
        whole = super().guarantee
        return whole if self.trust is None or whole.startswith("No ") else f"{whole} {self.trust.sentence}"


class LineNoise(Noise):
    """Seeded noise that depends on (seed, site, line) alone, for rehearsals: a simulation and a deployment, or a site
    that was started again, draw the same."""

    def __init__(self, seed: int, site: str) -> None:
        self._origin = f"{seed}/{site}"
        self.begin("")

    def begin(self, line: str) -> None:
        """Start the stream of a line."""
        digest = hashlib.sha256(f"{self._origin}/{line}".encode()).digest()
        self._stream = SeededNoise(int.from_bytes(digest[:8], "big"))

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._stream.words(count)


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What a site says about itself; all of it public. `n_records` is None under add/remove-one, and where persons are
    protected.

    `rehearsal` says that its noise is seeded, so that nothing it releases is private. The last `n_second` of the
    features are those of a second table.
    """

    n_features: int
    n_records: int | None
    response: Response
    feature_names: tuple[str, ...] | None = None
    rehearsal: bool = False
    has_response: bool = True
    n_second: int = 0
    classes: tuple[str, ...] | None = None


def describe_site(source: Source, relation: Relation, protects: Kind = "record") -> SiteFacts:
    """What a site may say about its records; how many rows its persons have is private."""
    count = source.count() if relation == "replace" and protects == "record" else None
    second, classes = source.n_second, source.classes
    known = (source.n_features, count, source.response, source.feature_names)
    return SiteFacts(*known, has_response=source.has_response, n_second=second, classes=classes)


def site_noise(random_state: Any, site: str) -> Noise:
    """A site's own noise: cryptographic, or seeded by (seed, site, line) for a rehearsal."""
    if random_state is None:
        return SecureNoise()
    noise_of(random_state)  # refuses what is not a seed
    return LineNoise(int(random_state), site)


def open_site(setting: Setting, plan: Plan, ledger: Ledger, noise: Noise, trust: Trust, site: str = "") -> Door:
    """The door of one site: a curator that adds the share of the noise which the trust model asks for."""
    stated = site_plan(plan, trust)
    curator = Curator(setting, stated, ledger, noise, trust.share)
    return open_door(curator, Behind(setting, stated, ledger.relation, site, ledger.unit))


def site_plan(plan: Plan, trust: Trust) -> Plan:
    """The plan as a site's ledger states it: where noise is shared, every line says so."""
    if trust.share == 1:
        return plan
    note = f" (noise shared by {trust.sites} sites, {trust.honest} of them honest)"
    return replace(plan, lines=tuple(replace(line, purpose=line.purpose + note) for line in plan.lines))


class SitesLostError(SfumatoError):
    """Too few sites answered; what the others have spent stays in their ledgers."""


class Sites(Protocol):
    """The sites of a federation, wherever they are."""

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site, None where it is private."""

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """The releases of the sites that answered, checked."""

    def pick(self, query: BoundedSum, name: str, asked: Collection[str]) -> Mapping[str, IntArray]:
        """What each of the sites that are asked picked privately, best first."""


class FederatedCurator:
    """A door without records behind it: asks every site and adds their releases.

    A site that does not answer is left out of that sum, and the sum is scaled by the public sizes of the sites (by
    their number, where sizes are private) to what all of them would have given; value and noise alike.

    Every site adds the same noise, whatever its size, so sites of very different size are weighted (`weights_of`):
    what is released stays as it is, and weighing it costs nothing.

    Parameters
    ----------
    sites : Sites
    minimum : int
        With fewer answers than this the run ends with `SitesLostError`.
    weigh : bool
        False where the server sees sums over all sites only, which it cannot weigh.
    """

    def __init__(self, sites: Sites, minimum: int = 1, *, weigh: bool = True) -> None:
        self._sites = sites
        self._weigh = weigh
        self._minimum = minimum

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The sum of the sites' releases for the plan's line `name`."""
        releases = self._sites.ask(query, name)
        self._enough(len(releases), name)
        sizes = {site: self._sites.sizes[site] for site in sorted(releases)}
        noise = worth(query, next(iter(releases.values()))) if self._weigh else 0.0
        weights = weights_of(list(sizes.values()), noise)
        total = reduce(add, (scaled(releases[site], weight) for site, weight in zip(sizes, weights, strict=True)))
        kept = sum(weight * (size or 1) for size, weight in zip(sizes.values(), weights, strict=True))
        return scaled(total, sum(size or 1 for size in self._sites.sizes.values()) / kept)

    def ballots(self, query: BoundedSum, name: str, turn: int = 0, turns: int = 1) -> list[IntArray]:
        """What every site whose turn it is picked from its own sums, best first.

        A site's picks are private for its own records (Gumbel noise on its scores): counting them costs nothing. In
        `turns` turns every site is asked once, so the line is charged once at each.
        """
        asked = sorted(self._sites.sizes)[turn::turns]
        picks = self._sites.pick(query, name, asked)
        self._enough(len(self._sites.sizes) - len(asked) + len(picks), name)
        return [picks[site] for site in asked if site in picks]

    def select(self, query: BoundedSum, name: str) -> IntArray:
        """What the sites picked from their own sums, counted: a pick is worth more the better its rank, and the more
        records its site has (where that is public). Private picks are post-processed, so counting costs nothing."""
        picks = self._sites.pick(query, name, sorted(self._sites.sizes))
        self._enough(len(picks), name)
        points, most = np.zeros(query.shape[-1]), 0
        for site, found in sorted(picks.items()):
            points[found] += np.arange(len(found), 0, -1) * (self._sites.sizes[site] or 1)
            most = max(most, len(found))
        return np.argsort(-points, kind="stable")[:most]

    def _enough(self, answers: int, name: str) -> None:
        if answers < max(self._minimum, 1):
            raise SitesLostError(
                f"only {answers} of {len(self._sites.sizes)} sites answered {name!r}, {self._minimum} are "
                "needed; see which sites were left out and why, and run again when they are back."
            )


def worth(query: BoundedSum, release: Release) -> float:
    """How many records the noise of a release is worth: its variance over that of one record's largest contribution.

    >>> from sfumato.statistics.histograms import Bins, ResponseHistogram
    >>> worth(ResponseHistogram(Bins(np.zeros(0))), Release(np.zeros(1), np.full(1, 5.0)))
    25.0
    """
    scaled = release.noise_std / query.grid * query.weights  # in the norm that bounds one record
    return float(np.sum(np.broadcast_to(scaled, query.shape) ** 2) / query.norm**2)


def weights_of(sizes: Sequence[int | None], noise: float) -> list[float]:
    """What each site's sum counts, one for the site that counts most.

    The mean over n_k records has a variance of 1 / n_k + noise / n_k^2 (in units of one record's), and means are best
    weighted by the inverse of it: a *sum* counts ``n_k / (n_k + noise)``. Without noise all sums count alike, which is
    pooling; under heavy noise a small site counts by its size. Private sizes: all alike.

    >>> [round(weight, 4) for weight in weights_of([1000, 1000, 10], 1000.0)]
    [1.0, 1.0, 0.0198]
    >>> weights_of([1000, 10], 0.0)
    [1.0, 1.0]
    """
    raw = [1.0 if size is None else size / (size + noise) for size in sizes]
    most = max(raw)
    return [1.0] * len(raw) if min(raw) > (1.0 - _ALIKE) * most else [each / most for each in raw]


def scaled(release: Release, factor: float) -> Release:
    """Value and noise alike times a public factor."""
    return release if factor == 1.0 else Release(release.value * factor, release.noise_std * factor)
