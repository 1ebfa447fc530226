"""A crowd: answers the questions of a fit as n records of a known law would, without any record.

A fit sees its records only through sums at the curator's door. So the fit's own code can be run on a stand-in that
answers with the mean of the law, the sampling error of n records and the noise of the plan: what comes out is the fit
to expect. Time does not depend on n.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import hadamard

from sfumato.privacy.events import Gaussian
from sfumato.privacy.mechanisms import gaussian_std
from sfumato.privacy.plan import Plan
from sfumato.records import Records
from sfumato.release import Release
from sfumato.statistics.histograms import NormHistogram, ResponseHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.slice_seconds import SliceSecondMoments
from sfumato.statistics.slices import SlicedMoments
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, Relation

POINTS = 1500
"""Points that stand for a law, at least."""
FEWEST = 12
"""Rows of magnitudes, at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """Points of a law, how many of n records are like each of them, and the plan whose noise is added.

    Drawing n records from the points with replacement has the sampling error of every sum, the same in all of them,
    as the records of a fit do. A silent crowd adds no noise.
    """

    points: Records
    counts: FloatArray
    plan: Plan
    relation: Relation
    rng: np.random.Generator
    silent: bool = False

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    @property
    def n_public(self) -> int | None:
        """The number of records, as far as a fit may know it."""
        return self.n if self.relation == "replace" else None

    def answer(self, query: BoundedSum, name: str) -> Release:
        """The sum over the crowd with the noise of the plan's line, as the door would give it."""
        event = self.plan.line(name).event
        assert isinstance(event, Gaussian)
        std = np.broadcast_to(gaussian_std(query, self.relation, event) * query.grid, query.shape)
        exact = summed(query, self.points, self.counts)
        if self.silent:
            return Release(exact, np.zeros(query.shape))
        return Release(exact + std * self.rng.standard_normal(query.shape), std)

    def covariance(self) -> FloatArray:
        """That of the records themselves, neither clipped nor noised: for the loss without privacy."""
        return np.cov(self.points.x.T, bias=True, aweights=self.counts)


def normal_points(columns: int, rng: np.random.Generator, multiple: int = 1) -> FloatArray:
    """Points (b, h, columns) that stand for independent standard normals: h ways to choose the signs of each of b rows.

    Signs are columns of a Hadamard matrix, so that the products of two columns cancel within the h, clipped by length
    or not: an error of the points would look like a tilt of the directions that no number of records mends. Which
    columns is drawn for each row, as products of four may not cancel. b is a multiple of `multiple`.
    """
    h = 1 << columns.bit_length()
    rows = max(-(-POINTS // h), FEWEST)
    size = rng.standard_normal((-(-rows // multiple) * multiple, columns))
    size /= np.sqrt((size**2).mean(axis=0))
    signs = hadamard(h)[1:].astype(np.float64)
    return np.stack([row * signs[rng.permutation(h - 1)[:columns]].T for row in size])


def summed(query: BoundedSum, points: Records, counts: FloatArray) -> FloatArray:
    """What the query sums, over points that count several times each; in its own units, not on its integer grid."""
    match query:
        case NormHistogram():
            place = np.searchsorted(query.radii[:-1], np.linalg.norm(points.x, axis=1))
            return np.bincount(place, counts, query.BINS).astype(np.float64)
        case ResponseHistogram():
            return np.bincount(query.bins.index(points), counts, query.bins.count).astype(np.float64)
        case Moments():
            z = _clipped(points.x, query.radius)
            return _both(z, counts)
        case SlicedMoments():
            map_ = query.whitening
            z = _clipped((points.x - map_.mean) @ map_.matrix.T, map_.cap)
            one_hot = np.eye(query.n_slices)[query.slice_of[query.bins.index(points)]]
            return np.concatenate([((one_hot.T * counts) @ z).ravel(), _second(z, counts)])
        case SliceSecondMoments():
            map_ = query.whitening
            z = _clipped((points.x - map_.mean) @ map_.matrix.T, map_.cap)
            place = query.slice_of[query.bins.index(points)]
            return np.stack([_both(z[place == h], counts[place == h]) for h in range(query.n_slices)])
    raise TypeError(f"a crowd has no answer to a {type(query).__name__}")


def _clipped(x: FloatArray, radius: float) -> FloatArray:
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x * np.minimum(1.0, radius / np.maximum(length, 1e-300)))


def _both(z: FloatArray, counts: FloatArray) -> FloatArray:
    return np.concatenate([counts @ z, _second(z, counts)])


def _second(z: FloatArray, counts: FloatArray) -> FloatArray:
    return np.asarray(((z.T * counts) @ z)[np.triu_indices(z.shape[1])])
