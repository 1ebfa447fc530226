"""PrivatePHD: principal Hessian directions with a differential-privacy guarantee.

Li (1992) looks at ``E[(y - E y) z z']``, the mean Hessian of the regression function if x is normal: along its
eigenvectors y curves most. Here y enters by the sign of its rank about the median, so that its scale, tails and ties do
not matter. That is the difference between the second moments of the upper and the lower half of the records, and with
signs a sum of ``+-z z'`` would need no less noise than the moments of both halves, which also tell the covariance.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.errors import InputError
from sfumato.forecast.populations import weighted_covariance
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import About
from sfumato.methods.base import location_of
from sfumato.methods.inputs import directions_of
from sfumato.methods.second_order import EvenResponse, KernelReducer, KernelTask, kernel_about
from sfumato.records import Records, Response
from sfumato.steps.second_order import HalfMoments, SecondOrder, largest_in_size
from sfumato.steps.subspace import subspace_distance
from sfumato.steps.symmetric import inverse_root
from sfumato.typing import FloatArray


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
        return subspace_distance((root @ largest_in_size(hessian)[1][:, :1]).T, np.eye(1, self.n_features))


@dataclass(frozen=True, slots=True)
class HessianTask(KernelTask):
    """What is public about a fit."""

    power: ClassVar[float] = 2.0

    @property
    def kernel_step(self) -> HalfMoments:
        return HalfMoments(0.70)

    def prospect(self) -> Prospect:
        """On a numeric response that depends on a direction evenly."""
        return Prospect((("PHD", self),), CurvedResponse(self.n_features, n_slices=2))

    def axes(self, fit: SecondOrder) -> FloatArray:
        """Eigenvectors of half the difference of the halves."""
        lower, upper = fit.slices.seconds
        return largest_in_size((upper - lower) / 2.0)[1]


@dataclass(eq=False, repr=False)
class PrivatePHD(KernelReducer):
    """Principal Hessian directions without revealing any one record: where a numeric y curves most.

    Finds what is even about y, as in ``y = (b'x)^2``, and interactions, as in ``y = x1 x2``; a linear trend it does not
    see, so that curvature shows beside one. For a few thousand records its two halves have less noise than the slices
    of `PrivateSAVE`.

    Parameters
    ----------
    epsilon, delta, bounds, relation, rows_per_person, rho, ledger, random_state
        As in `PrivateSIR`.
    n_directions : int or "auto"
        "auto" counts the eigenvalues that stand out of the known noise and of sampling; this costs nothing.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x, most curved first.
    eigenvalues_ : ndarray of shape (n_directions,)
        Of the mean Hessian of the sign of the rank: positive where large y are far out along the direction, negative
        where they are near its middle.
    standard_errors_, privacy_errors_, verdict_, choice_, mean_, bounds_, ledger_
        As in `PrivateSIR`.

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

    about: ClassVar[About] = kernel_about(
        "Private principal Hessian directions", "methods/phd.md", lambda: PrivatePHD, ("response", "response_kind"), {}
    )

    def _task(self, n_features: int, n_records: int | None, response: Response) -> HessianTask:
        if response.categories is not None:
            raise InputError("y: classes have no order to curve along; use PrivateSAVE or PrivateLDA, or give numbers.")
        k, bounds = directions_of(self.n_directions, n_features), location_of(self, n_features, n_records)
        return HessianTask(n_features, n_records, response, k, bounds)
