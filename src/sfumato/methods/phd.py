"""PrivatePHD: principal Hessian directions with a differential-privacy guarantee.

Li (1992) looks at ``E[(y - E y) z z']``, the mean Hessian of the regression function if x is normal: along its
eigenvectors y curves most. Here y enters by the sign of its rank about the median, so that its scale, tails and ties do
not matter. That is the difference between the second moments of the upper and the lower half of the records, and with
signs a sum of ``+-z z'`` would need no less noise than the moments of both halves, which also tell the covariance.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.bounds import Bounds, GivenBounds
from sfumato.errors import InputError
from sfumato.forecast.populations import weighted_covariance
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import EXPLAINING, JUDGED, PARAMETERS, About, Attack, finding
from sfumato.methods.base import location_of
from sfumato.methods.parameters import directions_of
from sfumato.methods.second_order import SHAPE, EvenResponse, KernelReducer, SecondOrderOutcome, walk_kernel
from sfumato.privacy.asking import Asking, ask
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Records, Response
from sfumato.statistics.slice_seconds import SliceSecondMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.dimension import Choice
from sfumato.steps.location import Locating, Location
from sfumato.steps.picture import groups
from sfumato.steps.ranks import Ranking, Ranks
from sfumato.steps.second_order import SecondOrder, rewhiten, slice_moments
from sfumato.steps.subspace import subspace_distance
from sfumato.steps.symmetric import inverse_root, noise_edge
from sfumato.typing import FloatArray

LEAST_HALF = 0.25
"""Smallest part of the records that a half is taken to have, so that noise over its size stays bounded."""


@dataclass(frozen=True, slots=True)
class HalfMoments:
    """The step that finds the mean Hessian: second moments of the lower and of the upper half of the ranks of y."""

    share: float

    @property
    def lines(self) -> tuple[Line, ...]:
        """Both halves in one release."""
        purpose = "sums and second moments of the lower and the upper half"
        return (Line("halves", purpose, self.share, "1.60 r^2 / 1.12 r^2", asks=SliceSecondMoments),)

    def run(self, whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None) -> Asking[SecondOrder]:
        """Eigenvectors of half the difference, the largest eigenvalues in size first.

        Both are moments about the mean of all records, so that a linear trend, which moves the halves by as much to
        either side, cancels. Sampling moves an entry of the difference off the diagonal by ``1 / sqrt(n)``, one on it
        by ``sqrt(2 / n)``: it adds to the variance of the noise, and both end at the same edge.
        """
        half_of, _ = groups(ranks, 2)  # one, where more than half of the responses are equal
        released = yield from ask(SliceSecondMoments(whitening, ranks.bins, half_of, 2), "halves")
        shares = np.maximum(np.bincount(half_of, ranks.probabilities, minlength=2), LEAST_HALF)
        shares /= shares.sum()
        raw = slice_moments(released.value, released.noise_std, n * shares, shares)
        root, mean = rewhiten(raw)
        halves = raw.rewhitened(root, mean)
        lower, upper = halves.seconds
        values, vectors = _largest_in_size((upper - lower) / 2.0)
        noise_std = float(np.linalg.norm(raw.second_noise)) / 2.0
        edge = 1.1 * noise_edge(float(np.hypot(noise_std, np.sqrt(2.0 / n))), len(values))
        found = max(1, int((np.abs(values) > edge).sum()))
        choice = Choice(n_directions or found, np.abs(values), edge, n_directions is not None)
        leading = values[: choice.n_directions]
        coefficients = vectors[:, : choice.n_directions] * np.maximum(np.abs(leading), 1e-12)
        return SecondOrder(coefficients, root, noise_std / np.sqrt(2.0), leading, choice, halves, half_of)


def _largest_in_size(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values))
    return np.asarray(values[order]), np.asarray(vectors[:, order])


@dataclass(frozen=True, slots=True)
class CurvedResponse(EvenResponse):
    """The population of `EvenResponse`, and what principal Hessian directions find of it without privacy."""

    def plain_distance(self, points: Records, counts: FloatArray) -> float:
        """The two halves of the records by y, exactly."""
        share = counts / counts.sum()
        order = np.argsort(points.y, kind="stable")
        upper = np.zeros(len(order), dtype=bool)
        upper[order] = np.cumsum(share[order]) > 0.5
        root = inverse_root(weighted_covariance(points, counts), 1e-12)
        z, sign = points.x @ root, np.where(upper, 1.0, -1.0)
        hessian = (z.T * (share * sign)) @ z
        return subspace_distance((root @ _largest_in_size(hessian)[1][:, :1]).T, np.eye(1, self.n_features))


@dataclass(frozen=True, slots=True)
class HessianTask:
    """What is public about a fit."""

    n_features: int
    n_records: int | None
    response: Response
    n_directions: int | None
    bounds: Bounds | Location

    @property
    def ranking(self) -> Ranking:
        return Ranking(self.response, 0.06)

    @property
    def kernel_step(self) -> HalfMoments:
        return HalfMoments(0.70)

    def plan(self) -> Plan:
        """Every release the fit will make, with its share."""
        return Plan.of(Locating(self.bounds), self.ranking, SHAPE, self.kernel_step)

    def prospect(self) -> Prospect:
        """On a numeric response that depends on a direction evenly."""
        return Prospect((("PHD", self),), CurvedResponse(self.n_features, n_slices=2))

    def run(self) -> Asking[SecondOrderOutcome]:
        """Walk the plan."""
        return (yield from walk_kernel(self, power=2.0))


def _attacks(known: dict[str, Any]) -> Iterator[Attack]:
    yield Attack("PrivatePHD", PrivatePHD(**known))
    yield Attack("PrivatePHD, bounds found", PrivatePHD(**finding(known)), replay_only=True)


class PrivatePHD(KernelReducer):
    """Principal Hessian directions without revealing any one record: where a numeric y curves most.

    Finds what is even about y, as in ``y = (b'x)^2``, and interactions, as in ``y = x1 x2``; a linear trend it does not
    see, so that curvature shows beside one. For a few thousand records its two halves have less noise than the slices
    of `PrivateSAVE`.

    Parameters
    ----------
    epsilon, delta : float
        The total privacy budget of everything that touches the data, found bounds included.
    n_directions : int or "auto"
        "auto" counts the eigenvalues that stand out of the known noise and of sampling; this costs nothing.
    bounds : Bounds, mapping, "search" or None
        Range of each feature, or of some (see `PrivateSIR`), known without looking at the data; the others are found
        privately, and charged.
    relation, rows_per_person, rho, ledger, random_state
        As in `PrivateSAVE`.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x, most curved first.
    standard_errors_, privacy_errors_ : ndarray of shape (n_directions, n_features)
        Root mean square error of the directions, by sampling and noise; the part that privacy noise alone makes.
    eigenvalues_ : ndarray of shape (n_directions,)
        Of the mean Hessian of the sign of the rank: positive where large y are far out along the direction, negative
        where they are near its middle.
    verdict_ : Verdict
        Whether the directions would come out the same on a fresh sample: "reliable", "weak" or "noise".
    choice_, mean_, bounds_, ledger_
        How many directions and why, with a test of each; released centre; bounds given or found; every release.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivatePHD
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(20_000, 5))
    >>> y = x[:, 0] + x[:, 1] ** 2 + 0.5 * rng.normal(size=20_000)
    >>> phd = PrivatePHD(epsilon=1.0, n_directions=1, bounds=Bounds(-5, 5)).fit(x, y)
    >>> bool(abs(phd.directions_[0, 1]) > 0.97), bool(phd.eigenvalues_[0] > 0)
    (True, True)
    """

    about: ClassVar[About] = About(
        title="Private principal Hessian directions",
        page="methods/phd.md",
        options=("response", "response_kind"),
        meaning="eigenvalue {:.2g}",
        parameters=PARAMETERS,
        released=EXPLAINING | JUDGED,
        attacks=_attacks,
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_directions: int | str = "auto",
        bounds: GivenBounds = None,
        *,
        relation: str = "replace",
        rows_per_person: int | None = None,
        rho: float | None = None,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_directions = n_directions
        self.bounds = bounds
        self.relation = relation
        self.rows_per_person = rows_per_person
        self.rho = rho
        self.ledger = ledger
        self.random_state = random_state

    def _task(self, n_features: int, n_records: int | None, response: Response) -> HessianTask:
        if response.categories is not None:
            raise InputError("y: classes have no order to curve along; use PrivateSAVE or PrivateLDA, or give numbers.")
        k, bounds = directions_of(self.n_directions, n_features), location_of(self, n_features, n_records)
        return HessianTask(n_features, n_records, response, k, bounds)
