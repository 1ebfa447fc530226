"""Many sites at the cost of one, for the tables of He, Zhang and Chen: what K sites release has a known law.

Sites with thousands of features cost as little: features that do not matter are drawn as signs.
"""

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy import mechanisms
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.door import Door
from sfumato.privacy.events import Selection
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import SecureNoise
from sfumato.privacy.plan import Plan
from sfumato.records import Records, Response
from sfumato.release import Release
from sfumato.settings.central import Central
from sfumato.sources import ArraySource
from sfumato.statistics.parts import OnColumns
from sfumato.statistics.scores import UNITS, SignScores
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

Bits = NDArray[np.uint8]


class MergedSites:
    """Curators over pooled records with the noise of `clients` sites together, for studies alone.

    Sums over sites equal the pooled sum, and the noise of K sites, each calibrated to the whole budget, adds to a
    Gaussian of K times the variance: the law of `sfumato.federated.simulate` under trust="sites" (tested), for the time
    of one fit instead of K doors. The ledger states what each site spends.

    Parameters
    ----------
    source : ArraySource
        The records of all sites.
    clients : float
        Their number; with shares of the noise, number over honest ones.
    budget : Budget
        Of each site.
    """

    def __init__(self, source: ArraySource, clients: float, budget: Budget) -> None:
        self._source, self._clients, self._budget = source, clients, budget

    def open(self, plan: Plan) -> Door:
        """For one plan, calibrated to each site's budget."""
        return self.merge(plan.calibrate(self._budget))

    def merge(self, plan: Plan) -> Door:
        """For a plan that is calibrated already."""
        ledger = Ledger(self._budget, "replace")
        return Curator(Central(self._source), plan.merged(self._clients), ledger, SecureNoise())


def far_signs(records: int, features: int, seed: int) -> Bits:
    """Signs of independent symmetric features, eight to a byte: (records, ceil(features / 8))."""
    rng = np.random.default_rng([seed, features])
    return rng.integers(0, 256, (records, -(-features // 8)), dtype=np.uint8)


class WideSites:
    """Sites whose first features are given and whose others are independent standard normals.

    Screening sees no more than the signs of a feature, so those are drawn first; a feature that is elected then gets
    its sizes, which for a normal are independent of its signs. The law is that of a table drawn in full.
    """

    def __init__(
        self, near: FloatArray, y: FloatArray, response: Response, far: Bits, clients: int, budget: Budget, seed: int
    ) -> None:
        self.near, self.y, self.response, self.far = near, y, response, far
        self.clients, self.budget, self.seed = clients, budget, seed

    def open(self, plan: Plan) -> "WideCurator":
        """For one plan, calibrated to each site's budget."""
        return WideCurator(self, plan.calibrate(self.budget))

    def columns(self, wanted: IntArray) -> FloatArray:
        """Some features as numbers."""
        x = self.signs(wanted)
        for place, column in enumerate(wanted.tolist()):
            if column >= self.near.shape[1]:
                x[:, place] *= np.abs(np.random.default_rng([self.seed, column]).standard_normal(len(self.y)))
        return x

    def signs(self, wanted: IntArray) -> FloatArray:
        """Some features, those that do not matter as signs alone, which is all that screening sees."""
        x = np.empty((len(self.y), len(wanted)), order="F")
        for place, column in enumerate(wanted.tolist()):
            if column < self.near.shape[1]:
                x[:, place] = self.near[:, column]
            else:
                byte, bit = divmod(column - self.near.shape[1], 8)
                x[:, place] = 2.0 * ((self.far[:, byte] >> (7 - bit)) & 1) - 1.0
        return x

    def scores(self, query: SignScores, site: int) -> IntArray:
        """What every feature scores at a site."""
        each = len(self.y) // self.clients
        part = slice(site * each, (site + 1) * each)
        records = Records(self.near[part], self.y[part])
        near = SignScores(np.zeros(self.near.shape[1]), query.bins, query.table)
        table = np.rint(query.table * UNITS).astype(np.float32)[query.bins.index(records)]
        bits = np.unpackbits(self.far[part], axis=1).astype(np.float32)
        # whole numbers below 2**24, so single precision is exact
        signs = 2.0 * (table.T @ bits) - table.sum(axis=0)[:, None]
        return np.concatenate([near.of(records), signs.astype(np.int64)], axis=1)


class WideCurator:
    """Votes site by site; sums over all sites with the noise of all sites."""

    def __init__(self, sites: WideSites, plan: Plan) -> None:
        self._sites, self._plan = sites, plan
        self._answers: dict[tuple[int, ...], Door] = {}
        self._scores: dict[tuple[bytes, int], IntArray] = {}

    def answer(self, query: BoundedSum, name: str) -> Release:
        wanted = query.columns if isinstance(query, OnColumns) else np.arange(1)
        inner = query.query if isinstance(query, OnColumns) else query
        if isinstance(inner, SignScores):
            return self._merged(self._sites.signs(wanted)).answer(inner, name)
        key = tuple(wanted.tolist())
        if key not in self._answers:
            self._answers[key] = self._merged(self._sites.columns(wanted))
        return self._answers[key].answer(inner, name)

    def _merged(self, x: FloatArray) -> Door:
        source = ArraySource(x, self._sites.y, self._sites.response)
        return MergedSites(source, self._sites.clients, self._sites.budget).merge(self._plan)

    def ballots(self, query: BoundedSum, name: str, turn: int = 0, turns: int = 1) -> list[IntArray]:
        """The picks of the sites whose turn it is."""
        event = self._plan.line(name).event
        assert isinstance(query, OnColumns) and isinstance(query.query, SignScores) and isinstance(event, Selection)
        found, noise = [], SecureNoise()
        for site in range(turn, self._sites.clients, turns):
            scores = self._all_scores(query.query, site)[:, query.columns]
            found.append(mechanisms.top(scores, query, "replace", event, noise))
        return found

    def _all_scores(self, query: SignScores, site: int) -> IntArray:
        """What each feature scores at a site, which is the same in every round: it is added up once."""
        key = (query.table.tobytes(), site)
        if key not in self._scores:
            self._scores[key] = self._sites.scores(query, site)
        return self._scores[key]

    def select(self, query: BoundedSum, name: str) -> IntArray:
        raise RuntimeError("sites vote; see ballots.")
