"""Sites with thousands of features at the cost of a few: features that do not matter are drawn as signs."""

from dataclasses import replace

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
from sfumato.settings.merging import elected
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

    def select(self, query: BoundedSum, name: str) -> IntArray:
        event = self._plan.line(name).event
        assert isinstance(query, SignScores) and isinstance(event, Selection)
        noise, site = SecureNoise(), self._sites
        near = replace(query, centre=query.centre[: site.near.shape[1]])
        ballots = []
        for rows in np.split(np.arange(len(site.y)), site.clients):
            part = slice(int(rows[0]), int(rows[-1]) + 1)
            records = Records(site.near[part], site.y[part])
            bits = np.unpackbits(site.far[part], axis=1, count=len(query.centre) - site.near.shape[1])
            table = np.rint(query.table * UNITS).astype(np.float32)[query.bins.index(records)]
            # whole numbers below 2**24, so single precision is exact
            far = 2.0 * (table.T @ bits.astype(np.float32)) - table.sum(axis=0)[:, None]
            total = np.concatenate([near.of(records), far.astype(np.int64)], axis=1)
            ballots.append(mechanisms.top(total, query, "replace", event, noise))
        return elected(ballots)
