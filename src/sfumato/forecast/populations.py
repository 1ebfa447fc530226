"""Populations: what is assumed about records that nobody has collected yet, in a few public numbers.

A population is points that stand for it, in standard deviations of its features; the true directions are the first
coordinates unless it says otherwise. An error of the points would look like a tilt of the directions that no number
of records mends. So whatever must vanish in the population vanishes exactly for the points, clipped by length or not:
by mirror images, or by the signs of a Hadamard matrix.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import hadamard
from scipy.special import ndtri

from sfumato.errors import InputError
from sfumato.forecast.stand_in import StandIn
from sfumato.privacy.asking import drive
from sfumato.privacy.plan import Plan
from sfumato.records import Records
from sfumato.steps.descent import is_central, schedule_of
from sfumato.steps.location import assume_bounds
from sfumato.steps.subspace import subspace_distance
from sfumato.steps.symmetric import inverse_root
from sfumato.typing import FloatArray, Relation

POINTS = 1500
"""Points that stand for a population, at least."""
WIDEST = 100
"""Most features for which a forecast is quick enough to precede a fit."""


def random_distance(p: int, k: int) -> float:
    """Root mean square distance of a random k-dimensional subspace: ``sqrt(2 k (1 - k / p))``.

    >>> round(random_distance(10, 1), 3)
    1.342
    """
    return math.sqrt(2.0 * k * (1.0 - k / p))


@dataclass(frozen=True, slots=True)
class Population(ABC):
    """Typical records of an estimator's kind.

    Parameters
    ----------
    n_features : int
        Columns of all tables.
    n_directions : int
        True directions.
    signal : float
        Part of a variance that they explain; `meaning` says of which, after "by".
    """

    meaning: ClassVar[str]
    box: ClassVar[float] = 8.0
    """Assumed half width of given bounds, in standard deviations of the widest feature: generous."""

    n_features: int
    n_directions: int = 1
    signal: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.signal < 1.0:
            raise InputError(f"signal must be between 0 and 1, got {self.signal!r}; 0.5 is typical.")

    @property
    def useless(self) -> float:
        """Root mean square distance of directions drawn at random."""
        return random_distance(self.n_features, self.n_directions)

    @property
    def quick(self) -> bool:
        """Whether there is something to find, in few enough features for a quick forecast."""
        return self.n_features <= WIDEST and self.n_directions < self.n_features

    def sized(self, n_features: int) -> Self:
        """The same population with another number of features."""
        return replace(self, n_features=max(n_features, self.n_directions + 1))

    def settle(self, fit: Any, n_records: int | None, mu: float) -> Any:
        """The public facts of a fit as they would be on these records: their size, their directions, their bounds."""
        bounds = assume_bounds(fit.bounds, self.n_features, self.box, n_records, mu)
        sizes = {"n_features": self.n_features, "n_records": n_records, "n_directions": self.n_directions}
        return replace(fit, bounds=bounds, **sizes)

    @abstractmethod
    def losses(
        self, fit: Any, plan: Plan, n: float, relation: Relation, rng: np.random.Generator
    ) -> tuple[float, float]:
        """Distances to the true directions of one fit on n records, private and not."""


@dataclass(frozen=True, slots=True)
class PointPopulation(Population):
    """A population of points: the fit is run on a stand-in made of them."""

    @abstractmethod
    def points(self, rng: np.random.Generator) -> Records:
        """Points that stand for the population."""

    @abstractmethod
    def distance(self, outcome: Any) -> float:
        """Distance between the directions that a fit found and the true ones."""

    @abstractmethod
    def plain_distance(self, points: Records, counts: FloatArray) -> float:
        """The same of the method without privacy, on points that count several times each."""

    def losses(
        self, fit: Any, plan: Plan, n: float, relation: Relation, rng: np.random.Generator
    ) -> tuple[float, float]:
        door = StandIn.of(self.points(rng), n, plan, relation, rng)
        return self.distance(drive(fit.run(), door)), self.plain_distance(*door.points)


@dataclass(frozen=True, slots=True)
class IndexResponse(PointPopulation):
    """Normal features and a response that depends on x through an index of one or two directions.

    One direction: y grows with the index. More: y is the angle of two coordinates, which shows two directions of about
    equal strength (further ones are not assumed). With `classes`, y is cut into that many equally likely ones.
    `sample`, if given, are the standardised index (m, k), the response (m,), the matrix (p, p) that mixes index and
    independent normals into x, and the true directions (k, p); `of` makes them.
    """

    meaning: ClassVar[str] = "how much of y it explains"
    box: ClassVar[float] = 3.0

    classes: int | None = None
    sample: tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None = None

    def __post_init__(self) -> None:
        Population.__post_init__(self)
        if self.sample is None:
            object.__setattr__(self, "n_directions", min(self.n_directions, 2))

    @classmethod
    def of(cls, x: ArrayLike, y: ArrayLike, directions: ArrayLike) -> "IndexResponse":
        """From public or simulated records with known directions: a study to come "like this one".

        Only their covariance, the response and the index are used. What goes together in them is taken for a law: of a
        weak or winding link give many, tens of thousands, or chance looks like signal.
        """
        table = np.asarray(x, dtype=np.float64)
        table = table - table.mean(axis=0)
        b = np.atleast_2d(np.asarray(directions, dtype=np.float64))
        values, vectors = np.linalg.eigh(table.T @ table / len(table))
        values = np.maximum(values, 1e-12 * values[-1])
        root = (vectors * np.sqrt(values)) @ vectors.T
        across, _ = np.linalg.qr(np.column_stack([root @ b.T, np.eye(len(root))]))
        mixing = root @ across[:, : len(root)]
        index = (table @ np.linalg.inv(mixing).T)[:, : len(b)]
        return cls(len(root), len(b), sample=(index, np.asarray(y, dtype=np.float64), mixing, b))

    def settle(self, fit: Any, n_records: int | None, mu: float) -> Any:
        """Records like given ones are in the units of the fit, and within its bounds.

        The schedule of a central fit is the one that it would have; a federation has its own.
        """
        settled = super(IndexResponse, self).settle(fit, n_records, mu)
        schedule = getattr(fit, "schedule", None)
        if schedule is not None and is_central(schedule):
            ordered = fit.response.categories is None
            settled = replace(settled, schedule=schedule_of(self.n_features, n_records, mu, ordered))
        return settled if self.sample is None else replace(settled, bounds=fit.bounds)

    def points(self, rng: np.random.Generator) -> Records:
        """Every index and response with a normal rest of x and with its mirror image."""
        index, y, mixing, _ = self._typical(rng) if self.sample is None else self.sample
        rest = rng.standard_normal((len(index), self.n_features - index.shape[1]))
        if len(rest) > 2 * rest.shape[1]:
            rest = rest @ inverse_root(rest.T @ rest / len(rest), 1e-12)
        w = np.vstack([np.column_stack([index, rest]), np.column_stack([index, -rest])])
        if self.classes is not None:
            ranks = np.argsort(np.argsort(y, kind="stable"), kind="stable")
            return Records(w @ mixing.T, np.tile(ranks * self.classes // len(y), 2))
        return Records(w @ mixing.T, np.concatenate([y, y]))

    def _typical(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        m, k, p = POINTS // 2, self.n_directions, self.n_features
        index, noise = rng.standard_normal((2, m, k))
        if k == 1:  # equally likely values: less chance in the points
            index[:, 0] = rng.permutation(ndtri((np.arange(m) + 0.5) / m))
        noisy = math.sqrt(self.signal) * index + math.sqrt(1.0 - self.signal) * noise
        y = noisy[:, 0] if k == 1 else np.arctan2(noisy[:, 1], noisy[:, 0])
        return index, y, np.eye(p), np.eye(k, p)

    def distance(self, outcome: Any) -> float:
        return subspace_distance(outcome.directions, self._truth)

    def plain_distance(self, points: Records, counts: FloatArray) -> float:
        return subspace_distance(slice_directions(points, counts, self.n_directions), self._truth)

    @property
    def _truth(self) -> FloatArray:
        return np.eye(self.n_directions, self.n_features) if self.sample is None else self.sample[3]


def missed_distance(found: int, active: int, distance: float) -> float:
    """Distance to a direction of which `found` of `active` equal parts were seen, at `distance` from those.

    >>> missed_distance(4, 4, 0.1), round(missed_distance(2, 4, 0.0), 6), round(missed_distance(0, 4, 0.0), 6)
    (0.1, 1.0, 1.414214)
    """
    missed = 1.0 - found / active * (1.0 - min(distance**2 / 2.0, 1.0))
    return distance if found == active else math.sqrt(2.0 * missed)


def slice_directions(points: Records, counts: FloatArray, k: int, slices: int = 20) -> FloatArray:
    """Directions of ordinary SIR on weighted points: slices of equal weight, or the classes."""
    if points.y.dtype.kind == "i":
        place = points.y.astype(int)
    else:
        order, rank = np.argsort(points.y, kind="stable"), np.empty(len(points))
        rank[order] = (np.cumsum(counts[order]) - counts[order] / 2.0) / counts.sum()
        place = np.minimum((rank * slices).astype(int), slices - 1)
    one_hot = np.eye(place.max() + 1)[place] * (counts / counts.sum())[:, None]
    share = np.maximum(one_hot.sum(axis=0), 1e-12)
    x = points.x - counts @ points.x / counts.sum()
    root = inverse_root((x.T * counts) @ x / counts.sum(), 1e-12)
    u = np.linalg.svd(root @ (x.T @ one_hot / np.sqrt(share)), full_matrices=False)[0]
    return np.asarray((root @ u[:, :k]).T)


def signed_normals(columns: int, rng: np.random.Generator, multiple: int = 1) -> FloatArray:
    """Points (b, h, columns) that stand for independent standard normals: h ways to choose the signs of each of b rows.

    Signs are columns of a Hadamard matrix, so that the products of two columns cancel within the h. Which columns is
    drawn for each row, as products of four may not cancel. b is a multiple of `multiple`.
    """
    h = 1 << columns.bit_length()
    rows = max(-(-POINTS // h), 12)
    size = rng.standard_normal((-(-rows // multiple) * multiple, columns))
    size /= np.sqrt((size**2).mean(axis=0))
    signs = hadamard(h)[1:].astype(np.float64)
    return np.stack([row * signs[rng.permutation(h - 1)[:columns]].T for row in size])


def weighted_covariance(points: Records, counts: FloatArray) -> FloatArray:
    """Of points that count several times each."""
    return np.cov(points.x.T, bias=True, aweights=counts)
