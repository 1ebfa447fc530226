"""PrivateSAVE and PrivateDR: second-order dimension reduction with a differential-privacy guarantee."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy.special import ndtri

from sfumato.errors import InputError
from sfumato.forecast.described import Curves
from sfumato.forecast.evidence import Evidence, Heard
from sfumato.forecast.family import CurvedBelief, orthonormal_in_order
from sfumato.forecast.populations import WIDEST, PointPopulation, signed_normals, weighted_covariance
from sfumato.forecast.prospect import Prospect
from sfumato.methods.about import CLASSES, EXPLAINING, EXPLAINING_OPTIONS, JUDGED, PARAMETERS, About, Attack, finding
from sfumato.methods.base import Assessed, ExplainingReducer, ExplainingTask, half_widths, location_of, open_session
from sfumato.methods.inputs import directions_of
from sfumato.privacy.asking import Asking
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Step
from sfumato.records import Records, Response
from sfumato.schema import Reader, whole
from sfumato.sources import ResponseKind
from sfumato.statistics.whitening import Whitening
from sfumato.steps.location import Located, Locating
from sfumato.steps.ranks import Ranking, Ranks
from sfumato.steps.second_order import (
    Kernel,
    SecondOrder,
    SliceKernel,
    SliceMoments,
    dr_kernel,
    save_kernel,
    spectrum,
)
from sfumato.steps.shape import RoughShape
from sfumato.steps.subspace import subspace_distance
from sfumato.steps.symmetric import inverse_root
from sfumato.typing import FloatArray, is_whole

SHAPE = RoughShape(0.03, 0.13)
MOST_MOMENTS = 1000
"""Slices times features for which a forecast is quick."""
_POOL = 20_000


@dataclass(frozen=True, slots=True)
class EvenResponse(PointPopulation):
    """Independent normal features and a numeric response that depends on one direction evenly, through its square.

    What slice means cannot see; the square explains the part `signal` of the response.
    """

    meaning: ClassVar[str] = "how much of y its square explains"

    kernel: Kernel = "save"
    n_slices: int = 5

    @property
    def quick(self) -> bool:
        return 1 < self.n_features <= WIDEST and self.n_features * self.n_slices <= MOST_MOMENTS

    def points(self, rng: np.random.Generator) -> Records:
        """As many rows in every slice, and in each of them the variance of every other coordinate is 1."""
        w = signed_normals(self.n_features, rng, self.n_slices)
        for rows in np.split(np.arange(len(w)), self.n_slices):
            w[rows] /= np.sqrt((w[rows] ** 2).mean(axis=(0, 1)))
        w[:, :, 0] = np.sign(w[:, :, 0]) * self._sizes(len(w))[:, None]
        rank = (rng.permuted((np.arange(len(w)) + 0.5).reshape(self.n_slices, -1), axis=1) / len(w)).ravel()
        return Records(w.reshape(-1, self.n_features), np.repeat(ndtri(rank), w.shape[1]))

    def _sizes(self, rows: int) -> FloatArray:
        """Of the index, equally likely ones in every slice of the response, the lowest slice first."""
        rng = np.random.default_rng(0)
        size = np.abs(rng.standard_normal(_POOL))
        y = np.sqrt(self.signal / 2.0) * size**2 + np.sqrt(1.0 - self.signal) * rng.standard_normal(_POOL)
        slices = [np.sort(inside) for inside in np.array_split(size[np.argsort(y)], self.n_slices)]
        pieces = (piece for inside in slices for piece in np.array_split(inside, rows // self.n_slices))
        return np.array([np.sqrt((piece**2).mean()) for piece in pieces])

    def distance(self, outcome: Any) -> float:
        return subspace_distance(outcome.directions, np.eye(1, self.n_features))

    def plain_distance(self, points: Records, counts: FloatArray) -> float:
        """The kernel of exact slice moments: none of its noise to take out."""
        order, share = np.argsort(points.y, kind="stable"), counts / counts.sum()
        parts = np.array_split(order, self.n_slices)
        shares, none = np.array([share[rows].sum() for rows in parts]), np.zeros(self.n_slices)
        means = np.stack([share[rows] @ points.x[rows] for rows in parts]) / shares[:, None]
        seconds = np.stack([(points.x[rows].T * share[rows]) @ points.x[rows] for rows in parts])
        raw = SliceMoments(shares, means, seconds / shares[:, None, None], none, none)
        root = inverse_root(weighted_covariance(points, counts), 1e-12)
        slices = raw.rewhitened(root, shares @ means)
        found = save_kernel(slices, root) if self.kernel == "save" else dr_kernel(slices, root)
        return subspace_distance((root @ spectrum(found)[1][:, :1]).T, np.eye(1, self.n_features))


@dataclass(frozen=True, slots=True)
class SecondOrderOutcome:
    """Everything a fit learnt, from releases alone; `centre` is in the units of x."""

    directions: FloatArray
    fit: SecondOrder
    located: Located
    centre: FloatArray
    belief: CurvedBelief


class KernelStep(Step, Protocol):
    """A step that finds the eigenvectors of a kernel of slice moments."""

    def run(self, whitening: Whitening, ranks: Ranks, n: float, n_directions: int | None) -> Asking[SecondOrder]:
        """The leading ones."""


@dataclass(frozen=True, slots=True)
class KernelTask(ExplainingTask):
    """What is public about a fit whose directions are eigenvectors of a kernel of slice moments."""

    power: ClassVar[float] = 1.0
    """Of an eigenvalue that is quadratic in slice moments."""

    @property
    def ranking(self) -> Ranking:
        return Ranking(self.response, 0.06)

    @property
    def kernel_step(self) -> KernelStep:
        """What is asked once the shape is known."""
        raise NotImplementedError

    def plan(self) -> Plan:
        return Plan.of(Locating(self.bounds), self.ranking, SHAPE, self.kernel_step)

    def prospect(self) -> Prospect | None:
        """What a forecast needs; None where there is none."""
        raise NotImplementedError

    def axes(self, fit: SecondOrder) -> FloatArray:
        """All eigenvectors of the kernel as columns, those that were found first."""
        raise NotImplementedError

    def run(self) -> Asking[SecondOrderOutcome]:
        """Walk the plan: bounds, ranks, shape and the kernel."""
        located, heard = (yield from Locating(self.bounds).run(self.n_features, self.n_records)), Heard()
        grid, ranks = located.grid, (yield from heard.of(self.ranking.run(self.n_records)))
        n = self.records_of(ranks)
        whitening = yield from heard.of(SHAPE.run(grid, n))
        fit = yield from heard.of(self.kernel_step.run(whitening, ranks, n, self.n_directions))
        to_z, k = fit.root @ whitening.exact_matrix, fit.choice.n_directions
        axes = self.axes(fit)[:, : k + 1]  # with the next one: it may be about as strong
        means = fit.slices.means @ axes
        within = axes.T @ fit.slices.seconds @ axes - means[:, :, None] * means[:, None, :]
        evidence = Evidence.of(heard, n, whitening, ranks, KernelAgain(self, ranks), located.reading)
        curves = Curves(fit.slice_of, to_z.T @ axes, means, within)
        belief = CurvedBelief(evidence, fit.choice, grid.half_width, curves, self.power)
        directions = orthonormal_in_order(fit.axes.T @ to_z / grid.half_width)
        centre = grid.centre + whitening.mean * grid.half_width
        return SecondOrderOutcome(directions, fit, located, centre, belief)


@dataclass(frozen=True, slots=True)
class KernelAgain:
    """The same fit on records in half widths of its bounds."""

    task: KernelTask
    ranks: Ranks

    def look(self) -> Asking[FloatArray]:
        """Eigenvalues."""
        fit = (yield from self._fit(self.task.n_directions, None))[0]
        return fit.choice.singular_values

    def run(self, n_directions: int, units: FloatArray | None = None) -> Asking[FloatArray]:
        """Directions, in half widths."""
        fit, whitening = yield from self._fit(n_directions, units)
        return np.asarray(fit.axes.T @ fit.root @ whitening.exact_matrix / whitening.source.half_width)

    def _fit(self, k: int | None, units: FloatArray | None) -> Asking[tuple[SecondOrder, Whitening]]:
        task = self.task
        ranks = yield from task.ranking.count(self.ranks.bins, task.n_records)
        n = task.records_of(ranks)
        whitening = yield from SHAPE.run(half_widths(task.n_features, units), n)
        return (yield from task.kernel_step.run(whitening, ranks, n, k)), whitening


@dataclass(frozen=True, slots=True)
class SecondOrderTask(KernelTask):
    """What is public about a fit."""

    kernel: Kernel
    n_slices: int

    @property
    def kernel_step(self) -> SliceKernel:
        return SliceKernel(0.70, self.kernel, self.n_slices)

    def prospect(self) -> Prospect | None:
        """The one method, on a numeric response that depends on a direction evenly; for classes there is no theory."""
        if self.response.categories is not None:
            return None
        population = EvenResponse(self.n_features, kernel=self.kernel, n_slices=self.n_slices)
        return Prospect(((self.kernel.upper(), self),), population)

    def axes(self, fit: SecondOrder) -> FloatArray:
        """Eigenvectors of the kernel."""
        return spectrum((save_kernel if self.kernel == "save" else dr_kernel)(fit.slices, fit.root))[1]


@dataclass(eq=False, repr=False)
class KernelReducer(Assessed, ExplainingReducer):
    """``fit`` and what it keeps, for directions that are eigenvectors of a kernel of slice moments."""

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, response_kind: ResponseKind | None = None) -> Self:
        """Find the directions of X (array, dataframe, Arrow table, or Source) that explain y.

        `groups` says whose row it is, and `response_kind` declares what y is, as in `PrivateSIR.fit`.
        """
        return self._fit(open_session(self, X, y, groups, response_kind))

    def _keep(self, outcome: SecondOrderOutcome, ledger: Ledger) -> None:
        self.directions_ = outcome.directions
        self.eigenvalues_ = outcome.fit.eigenvalues
        self._keep_belief(outcome.belief)
        self.mean_ = outcome.centre
        self._keep_bounds(outcome.located)
        self.ledger_ = ledger


@dataclass(eq=False, repr=False)
class _SecondOrder(KernelReducer):
    """Parameters of either kernel."""

    n_slices: int = 5
    _: KW_ONLY
    classes: Sequence[Any] | None = None

    _kernel: ClassVar[Kernel]

    def _task(self, n_features: int, n_records: int | None, response: Response) -> SecondOrderTask:
        slices = self.n_slices
        if not is_whole(slices, 2, 48):
            raise InputError(f"n_slices must be an integer from 2 to 48, got {slices!r}.")
        k, bounds = directions_of(self.n_directions, n_features), location_of(self, n_features, n_records)
        return SecondOrderTask(n_features, n_records, response, k, bounds, self._kernel, int(slices))


def kernel_about(
    title: str, page: str, make: Callable[[], type], options: tuple[str, ...], parameters: Mapping[str, Reader]
) -> About:
    """What all kernels share; the class does not exist yet where this is called."""

    def attacks(known: dict[str, Any]) -> Iterator[Attack]:
        name = make().__name__
        yield Attack(name, make()(**known))
        yield Attack(f"{name}, bounds found", make()(**finding(known)), replay_only=True)

    return About(
        title=title,
        page=page,
        options=options,
        meaning="eigenvalue {:.2g}",
        parameters=PARAMETERS | dict(parameters),
        released=EXPLAINING | JUDGED,
        attacks=attacks,
    )


def _about(title: str, make: Callable[[], type]) -> About:
    options, parameters = (*EXPLAINING_OPTIONS, "slices"), {"n_slices": whole(2, 48)} | CLASSES
    return kernel_about(title, "methods/save-dr.md", make, options, parameters)


class PrivateSAVE(_SecondOrder):
    """Sliced average variance estimation without revealing any one record: sees what SIR cannot.

    Where y depends on x evenly, as in ``y = (b'x)^2``, slice means say nothing; the covariances within slices do.

    Parameters
    ----------
    epsilon, delta, bounds, relation, rows_per_person, rho, classes, ledger, random_state
        As in `PrivateSIR`.
    n_directions : int or "auto"
        "auto" counts the eigenvalues that stand out of the known noise; this costs nothing.
    n_slices : int
        Slices of a numeric y; every class of a categorical one is a slice.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_features)
        Orthonormal rows, in the units of x, most explaining first.
    eigenvalues_ : ndarray of shape (n_directions,)
        Of the kernel, above its middle eigenvalue.
    standard_errors_, privacy_errors_, verdict_, choice_, mean_, bounds_, ledger_
        As in `PrivateSIR`.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivateSAVE
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(20_000, 5))
    >>> y = x[:, 1] ** 2 + 0.5 * rng.normal(size=20_000)
    >>> save = PrivateSAVE(epsilon=1.0, n_directions=1, bounds=Bounds(-5, 5)).fit(x, y)
    >>> bool(abs(save.directions_[0, 1]) > 0.98), round(save.ledger_.total(), 6)
    (True, 1.0)
    """

    about: ClassVar[About] = _about("Private sliced average variance estimation", lambda: PrivateSAVE)
    _kernel: ClassVar[Kernel] = "save"


class PrivateDR(_SecondOrder):
    """Directional regression without revealing any one record: slice means and slice covariances together.

    Finds what SIR or SAVE finds. Parameters and attributes are those of `PrivateSAVE`.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivateDR
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(30_000, 5))
    >>> y = x[:, 0] + x[:, 1] ** 2 + 0.3 * rng.normal(size=30_000)
    >>> dr = PrivateDR(epsilon=1.0, n_directions=2, bounds=Bounds(-5, 5)).fit(x, y)
    >>> bool(np.linalg.norm(dr.directions_[:, :2]) > 1.3)
    True
    """

    about: ClassVar[About] = _about("Private directional regression", lambda: PrivateDR)
    _kernel: ClassVar[Kernel] = "dr"
