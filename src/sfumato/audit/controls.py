"""Mechanisms and fits that break their promise: an audit or a replay must catch all of them.

An audit that never fails proves nothing. Each mechanism claims the privacy that its makers in papers or libraries claim
(or would), on the pair of neighbours that shows best why the claim is false; the fits break one promise of a fit each.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import numpy as np

from sfumato.audit.blackbox import Claim
from sfumato.audit.hostile import Hostile, Private, Table, forges
from sfumato.audit.releases import OneRelease, queries, worst_pair
from sfumato.audit.tape import Replayed, record
from sfumato.bounds import Bounds
from sfumato.methods.about import BOX
from sfumato.methods.label_iht import LabelPrivateIHT
from sfumato.methods.pca import PrincipalTask, PrivatePCA
from sfumato.privacy.budget import Budget
from sfumato.privacy.door import Door, Watch
from sfumato.privacy.noise import Noise, rounded_gaussian
from sfumato.records import Records, Response
from sfumato.release import Release
from sfumato.statistics.moments import UNITS, Moments
from sfumato.sums import BoundedSum, Restated, as_integers, round_within
from sfumato.typing import FloatArray, IntArray, Relation

BUDGET = Budget.approximate(1.0, 1e-6)


@dataclass(frozen=True, slots=True)
class Control:
    """A broken mechanism, its claim, a telling pair of data sets, and what is wrong."""

    name: str
    mechanism: Callable[[Records, Noise], FloatArray]
    d: Records
    d_prime: Records
    claimed: Claim
    why: str


def controls() -> list[Control]:
    """All negative controls."""
    return [half_noise(), mvg(), index_filter(), bounds_from_data(), noise_before_clipping()]


def half_noise() -> Control:
    """The right mechanism with half the noise."""
    query = queries()["histogram of the response"]
    pair = worst_pair(query, "replace")
    mechanism = OneRelease(query, "replace", 2.0 * BUDGET.mu())
    return Control("noise halved", mechanism, pair.d, pair.d_prime, BUDGET.mu(), "half the noise the claim needs")


def mvg() -> Control:
    """Multivariate Gaussian noise of the FSIR paper (algorithm 2): its covariance comes from the private matrix.

    The ratio vector is normalised here so that the paper's own condition (4) on the noise holds.
    """
    epsilon, delta, radius = 1.0, 1e-6, 1.0

    def mechanism(records: Records, noise: Noise) -> FloatArray:
        means = _slice_means(records, radius)
        left, sizes, _ = np.linalg.svd(means)
        bound = len(records) ** 2 * epsilon**2 / (8 * radius**2 * means.shape[0] * math.log(2 / delta))
        inverse = 1.0 / np.maximum(sizes, 1e-9)
        std = 1.0 / np.sqrt(bound * inverse / np.linalg.norm(inverse))
        return np.asarray((means + left @ (std[:, None] * _normal(noise, means.shape))).ravel())

    base = np.full((20, 2), 1e-3) * np.array([[1.0, -1.0], [1.0, 1.0]] * 10)
    pair = _neighbours(base, [1.0, 0.0], [0.0, 1.0] * 10)
    why = "the noise's shape is computed from the data"
    return Control("noise shaped by the data (MVG)", mechanism, *pair, (epsilon, delta), why)


def index_filter() -> Control:
    """Publishing which features pass a threshold, without noise (CCMD filter, FSIR paper, algorithm 3)."""

    def mechanism(records: Records, noise: Noise) -> FloatArray:
        return np.asarray((np.abs(_slice_means(records, 1.0)).max(axis=1) > 0.02).astype(float))

    pair = _neighbours(np.zeros((20, 2)), [1.0, 0.0], [0.0, 1.0] * 10)
    why = "a non-constant output without noise has no privacy at all"
    return Control("index set without noise (CCMD)", mechanism, *pair, (1.0, 1e-6), why)


def bounds_from_data() -> Control:
    """Bounds taken as minimum and maximum of the data, then the right noise for them."""

    def mechanism(records: Records, noise: Noise) -> FloatArray:
        width = np.ptp(records.x, axis=0)  # one record moves the sum by no more, or so it seems
        std = np.linalg.norm(width) / BUDGET.mu()
        return np.asarray(records.x.sum(axis=0) + std * _normal(noise, (records.x.shape[1],)))

    pair = _neighbours(np.linspace(-1.0, 1.0, 20)[:, None] * np.ones((1, 2)), [50.0, 1.0], [0.0] * 20)
    why = "the scale of the noise tells the largest record"
    return Control("bounds read from the data", mechanism, *pair, BUDGET.mu(), why)


def noise_before_clipping() -> Control:
    """Noise for clipped records added to the sum of raw ones, and the result clipped afterwards."""
    std = round(2.0 / BUDGET.mu() * 2**20)

    def mechanism(records: Records, noise: Noise) -> FloatArray:
        noisy = records.x.sum(axis=0) + rounded_gaussian(noise, std, records.x.shape[1]) / 2**20
        return np.asarray(np.clip(noisy, -len(records), len(records)))

    pair = _neighbours(np.zeros((20, 2)), [10.0, 10.0], [0.0] * 20)
    why = "a record outside the bounds counts in full"
    return Control("noise before clipping", mechanism, *pair, BUDGET.mu(), why)


def _neighbours(x: FloatArray, last: list[float], y: list[float]) -> tuple[Records, Records]:
    """A table, and the same with another last record."""
    return Records(x, np.array(y)), Records(np.vstack([x[:-1], last]), np.array(y))


def _slice_means(records: Records, radius: float) -> FloatArray:
    """The p x 2 matrix of slice sums over n, records clipped to the radius."""
    length = np.linalg.norm(records.x, axis=1, keepdims=True)
    x = records.x * np.minimum(1.0, radius / np.maximum(length, 1e-300))
    return np.stack([x[records.y == h].sum(axis=0) / len(x) for h in (0.0, 1.0)], axis=1)


def _normal(noise: Noise, shape: tuple[int, ...]) -> FloatArray:
    return rounded_gaussian(noise, 2**30, shape) / 2.0**30


@dataclass(frozen=True, slots=True, eq=False)
class Understated(Restated):
    """The same sum, with bounds that are too small; `part` is what they are of the true ones."""

    query: BoundedSum
    part: float = 0.8

    @property
    def norm(self) -> float:
        return self.part * self.query.norm

    @property
    def diameter(self) -> float:
        return self.part * self.query.diameter

    def of(self, records: Records) -> IntArray:
        return self.query.of(records)


@dataclass(frozen=True, slots=True)
class Unclipped(Moments):
    """Moments of records as long as the box allows, with the bounds of clipped ones."""

    def of(self, records: Records) -> IntArray:
        x = self.source.integers(records.x)
        x *= UNITS / (self.radius * 2.0**self.source.bits)
        round_within(x, x.shape[1])
        return as_integers(np.concatenate([np.ones(len(x)) @ x, (x.T @ x)[np.triu_indices(x.shape[1])]]))


def _unclipped(query: BoundedSum) -> BoundedSum:
    return Unclipped(query.source, query.radius, query.centre_weight) if type(query) is Moments else query


class LeakedCount(PrivatePCA):
    """Uses the number of records where it is private."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        self._seen = len(X)
        fitted = super().fit(X, groups=groups)
        del self._seen
        return fitted

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PrincipalTask:
        return replace(super()._task(n_features, n_records, response), n_records=self._seen)


class BoundsFromData(PrivatePCA):
    """Takes the range of the records for public bounds."""

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PrincipalTask:
        return replace(super()._task(n_features, n_records, response), bounds=self._range)

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        lower, upper = (np.clip(end, -1e100, 1e100) for end in (X.min(axis=0), X.max(axis=0)))
        self._range = Bounds(lower, upper + 1e-6 + 1e-6 * np.abs(upper))
        fitted = super().fit(X, groups=groups)
        del self._range, self.bounds_
        return fitted


@dataclass(frozen=True, slots=True)
class _Instead:
    """A door that asks something else than it was told to."""

    door: Door
    change: Callable[[BoundedSum], BoundedSum]

    def answer(self, query: BoundedSum, name: str) -> Release:
        return self.door.answer(self.change(query), name)

    def select(self, query: BoundedSum, name: str) -> IntArray:
        return self.door.select(self.change(query), name)


@dataclass(frozen=True, slots=True)
class BrokenFit:
    """An estimator that breaks its promise by itself, or with the `change` made to its questions.

    Where it promises to protect persons, they have `rows` rows each at most, and it is told of them if `with_ids`.
    """

    name: str
    estimator: Any
    relation: Relation
    change: Callable[[BoundedSum], BoundedSum] = lambda query: query
    rows: int = 1
    with_ids: bool = False

    def pair(self, i: int, seed: int = 0) -> Replayed:
        """A replay on the i-th pair of hostile neighbours."""
        rng = np.random.default_rng([seed, i])
        private: Private = "record" if hasattr(self.estimator, "relation") else "label"  # devices know of no relation
        hostile = Hostile(3, (-1.0, 1.0), self.relation, private, rows=self.rows)
        table, told = hostile.table(rng), forges(i)

        def fit(table: Table) -> Any:
            return self.estimator.fit(table.x, np.array(table.y), table.ids if self.with_ids else None)

        paid = self.estimator.rows_per_person or 1
        recording = record(fit, table, told[i % len(told)], paid, self._ask_instead)
        return recording.play(hostile.neighbour(rng, table))

    def _ask_instead(self, watch: Watch) -> Watch:
        return lambda door, behind: _Instead(watch(door, behind), self.change)

    def caught(self, pairs: int = 40) -> bool:
        """Whether any of so many pairs shows that the promise is broken."""
        return any(not self.pair(i).passed for i in range(pairs))


def broken_fits() -> list[BrokenFit]:
    """All negative controls of the replay."""
    known: dict[str, Any] = {"n_directions": 1, "bounds": BOX, "method": "refined", "random_state": 0}
    private = known | {"relation": "add-remove"}
    device: dict[str, Any] = {"n_active": 1, "rows_per_person": 9, "random_state": 0}
    return [
        BrokenFit("a diameter stated 20 % too small", PrivatePCA(**known), "replace", Understated),
        BrokenFit("a norm stated 20 % too small", PrivatePCA(**private), "add-remove", Understated),
        BrokenFit("the number of records used where it is private", LeakedCount(**private), "add-remove"),
        BrokenFit("records that are not clipped", PrivatePCA(**known), "replace", _unclipped),
        BrokenFit("bounds read from the data", BoundsFromData(**known), "replace"),
        *(
            BrokenFit(
                f"a person's ten rows bounded as nine, {relation}",
                PrivatePCA(**known, relation=relation, rows_per_person=10),
                relation,
                partial(Understated, part=0.9),
                rows=12,
                with_ids=True,
            )
            for relation in get_args(Relation)
        ),
        BrokenFit("nine rows vouched for and ten there", PrivatePCA(**known, rows_per_person=9), "replace", rows=10),
        BrokenFit("nine answers paid for and ten given", LabelPrivateIHT(**device), "replace", rows=10),
    ]
