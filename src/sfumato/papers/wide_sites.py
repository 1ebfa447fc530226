"""Sites with thousands of features at the cost of a few: features that do not matter are drawn as signs."""

import numpy as np
from numpy.typing import NDArray

from sfumato.papers.sites import MergedSites
from sfumato.privacy import mechanisms
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.events import Selection
from sfumato.privacy.noise import SecureNoise
from sfumato.privacy.plan import Plan
from sfumato.records import Records, Response
from sfumato.release import Release
from sfumato.sources import ArraySource
from sfumato.statistics.columns import OnColumns
from sfumato.statistics.scores import UNITS, SignScores
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation

Bits = NDArray[np.uint8]


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
        x = np.empty((len(self.y), len(wanted)))
        for place, column in enumerate(wanted.tolist()):
            if column < self.near.shape[1]:
                x[:, place] = self.near[:, column]
            else:
                byte, bit = divmod(column - self.near.shape[1], 8)
                signs = 2.0 * ((self.far[:, byte] >> (7 - bit)) & 1) - 1.0
                size = np.abs(np.random.default_rng([self.seed, column]).standard_normal(len(self.y)))
                x[:, place] = signs * size
        return x


class WideCurator(Curator):
    """Votes site by site; sums over all sites with the noise of all sites."""

    def __init__(self, sites: WideSites, plan: Plan) -> None:
        self._sites, self._plan = sites, plan
        self._answers: dict[tuple[int, ...], Curator] = {}
        self._scores: dict[bytes, list[IntArray]] = {}

    @property
    def relation(self) -> Relation:
        return "replace"

    def answer(self, query: BoundedSum, name: str) -> Release:
        wanted = query.columns if isinstance(query, OnColumns) else np.arange(1)
        inner = query.query if isinstance(query, OnColumns) else query
        key = tuple(wanted.tolist())
        if key not in self._answers:
            merged = MergedSites(
                ArraySource(self._sites.columns(wanted), self._sites.y, self._sites.response),
                self._sites.clients,
                self._sites.budget,
            )
            self._answers[key] = merged.merge(self._plan)
        return self._answers[key].answer(inner, name)

    def ballots(self, query: BoundedSum, name: str, turn: int = 0, turns: int = 1) -> list[IntArray]:
        """The picks of the sites whose turn it is. What a feature scores at a site does not change: it is added up
        once."""
        event = self._plan.line(name).event
        assert isinstance(query, OnColumns) and isinstance(query.query, SignScores) and isinstance(event, Selection)
        key, noise = query.query.table.tobytes(), SecureNoise()
        if key not in self._scores:
            self._scores[key] = self._all_scores(query.query)
        asked = self._scores[key][turn::turns]
        return [mechanisms.top(each[:, query.columns], query, "replace", event, noise) for each in asked]

    def _all_scores(self, query: SignScores) -> list[IntArray]:
        site, found = self._sites, []
        values = np.rint(query.table * UNITS).astype(np.float32)
        near = SignScores(np.zeros(site.near.shape[1]), query.bins, query.table)
        for rows in np.split(np.arange(len(site.y)), site.clients):
            part = slice(int(rows[0]), int(rows[-1]) + 1)
            records = Records(site.near[part], site.y[part])
            bits = np.unpackbits(site.far[part], axis=1).astype(np.float32)
            table = values[query.bins.index(records)]
            # whole numbers below 2**24, so single precision is exact
            signs = 2.0 * (table.T @ bits) - table.sum(axis=0)[:, None]
            found.append(np.concatenate([near.of(records), signs.astype(np.int64)], axis=1))
        return found

    def select(self, query: BoundedSum, name: str) -> IntArray:
        raise RuntimeError("sites vote; see ballots.")
