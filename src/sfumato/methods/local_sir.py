"""LocalSIR: x and y are both private, and nobody is trusted with a record."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.bounds import Bounds
from sfumato.errors import InputError, PrivacyWarning
from sfumato.forecast.loss import records_needed
from sfumato.forecast.populations import IndexResponse, random_distance
from sfumato.local.answers import LocalLedger
from sfumato.local.records import RecordRandomiser, solve
from sfumato.methods.about import About
from sfumato.methods.base import REHEARSAL, DeviceEstimator, Projecting
from sfumato.methods.inputs import directions_of, first_rows, fit_source, has_ids
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import Entry
from sfumato.privacy.parameters import noise_of
from sfumato.privacy.unit import unit_of
from sfumato.release import Release
from sfumato.steps.subspace import subspace_distance

PROTECTS = "the whole record of each person, features and label"
_SIGNAL = 0.5


def _expected_loss(device: RecordRandomiser, n: float, population: IndexResponse, rng: np.random.Generator) -> float:
    """Distance from n people: the mean of their answers plus noise of known spread over sqrt(n).

    Bounds are taken to fit the population and slices to be equally likely, as whoever sets them will try.
    """
    points, h = population.points(rng), device.n_slices
    edges = np.quantile(points.y, np.arange(1, h) / h).tolist()
    assumed = replace(device, bounds=Bounds(-population.box, population.box), edges=edges)
    exact = assumed.exact_answers(points.x, points.y).mean(axis=0)
    total = Release(exact + device.stds * rng.standard_normal(len(exact)) / np.sqrt(n), device.stds / np.sqrt(n))
    found, _ = solve(total, 1.0, device.n_features, h)
    return subspace_distance(found[:, :1].T, np.eye(1, device.n_features))


@dataclass(frozen=True, slots=True)
class Prospect:
    """What fully local SIR can be expected to find; ``print`` it."""

    n_people: int
    loss: float
    useless: float
    people_for_a_tenth: float

    def __str__(self) -> str:
        verdict = "too few: expect directions little better than random" if self.hopeless else "enough to see something"
        return (
            f"{self.n_people:,} people: expected loss {self.loss:.2f} (random directions {self.useless:.2f}); "
            f"{verdict}. "
            f"A loss of 0.1 needs about {self.people_for_a_tenth:.1e} people, at a signal of 50 %."
        )

    @property
    def hopeless(self) -> bool:
        """Whether little but noise will be seen."""
        return self.loss > 0.7 * self.useless


@dataclass(eq=False, repr=False)
class LocalSIR(Projecting, DeviceEstimator):
    """Directions of x that explain y, from records that each device has noised by itself.

    Every device answers once with its slice sums and second moment plus noise (`sfumato.local.records`). No curator,
    no second round. It takes very many people: ask `explain` first. When only y is private, `LabelPrivateSIR` needs
    a hundredth of them.

    Parameters
    ----------
    epsilon, delta : float
        Guarantee of each person's whole answer.
    n_directions : int
        At most one less than the slices.
    bounds : Bounds
        Public ranges of the features.
    edges : sequence of float
        Public edges between slices of y.
    radius : float, optional
        Longest record kept, in half widths of the bounds.
    rows_per_person : int, optional
        A person has several rows, of which the first so many (``fit(..., groups=ids)``; 1 if not given) are answered
        for, each with noise of its own; all answers of a person together cost (epsilon, delta).
    random_state : int, optional
        Seeded noise, for rehearsal only.

    Attributes
    ----------
    directions_, eigenvalues_, mean_ : ndarray
    ledger_ : LocalLedger

    Examples
    --------
    >>> from sfumato import Bounds, LocalSIR
    >>> print(LocalSIR(epsilon=2.0, bounds=Bounds(-1, 1)).explain(n_samples=1000, n_features=10))
    1,000 people: expected loss 1... (random directions 1.34); too few: ...
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    n_directions: int = 1
    bounds: Bounds | None = None
    edges: Sequence[float] = (0.0,)
    _: KW_ONLY
    radius: float | None = None

    about: ClassVar[About] = About("Sliced inverse regression of randomised records", "howto/label-privacy.md")

    def device(self, n_features: int) -> RecordRandomiser:
        """What every device runs. `bounds=None` means features within (-1, 1)."""
        bounds = Bounds(-1.0, 1.0) if self.bounds is None else self.bounds
        if not isinstance(bounds, Bounds):
            raise InputError("bounds must be a sfumato Bounds; for instance Bounds(-1.5, 1.5).")
        bounds.grid(n_features)
        if self.radius is not None and not (isinstance(self.radius, Real) and 0.0 < float(self.radius) < 1e6):
            raise InputError(f"radius must be positive, in half widths of the bounds, got {self.radius!r}.")
        if not np.iterable(self.edges):
            raise InputError(f"edges must be a sequence of numbers, got {self.edges!r}; for instance (0.0,).")
        rows = unit_of(self.rows_per_person, has_ids=False).factor
        each = Budget.approximate(self.epsilon, self.delta).per_answer(rows)
        return RecordRandomiser(n_features, bounds, tuple(self.edges), each.epsilon or 0.0, self.delta, self.radius)

    def explain(self, n_samples: int, n_features: int) -> Prospect:
        """What to expect of so many people, before anyone is asked: refuses nothing, but says so if it is hopeless."""
        device = self.device(n_features)
        population = IndexResponse(n_features, 1, _SIGNAL)

        def loss(n: float) -> float:
            return float(np.mean([_expected_loss(device, n, population, np.random.default_rng(s)) for s in range(4)]))

        nothing = random_distance(n_features, 1)
        needed = records_needed(0.1, loss, 1e6) if n_features > 1 else 1.0
        return Prospect(n_samples, loss(n_samples) if n_features > 1 else 0.0, nothing, needed)

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Let every row that counts answer as its own device would, add the answers, and solve."""
        noise, unit = noise_of(self.random_state), unit_of(self.rows_per_person, has_ids(X, groups))
        source = first_rows(fit_source(self, X, y, None), groups, unit)
        if source.response.categories is not None:
            raise InputError("y must hold numbers; encode classes as 0, 1, 2 and give edges between them.")
        k = directions_of(self.n_directions, source.n_features)
        device = self.device(source.n_features)
        if k is None or k >= device.n_slices:
            raise InputError(f"n_directions must be an integer below the {device.n_slices} slices; give more edges.")
        if noise.rehearsal:
            warnings.warn(REHEARSAL, PrivacyWarning, stacklevel=2)
        records = source.pooled()
        total = device.total(records.x, np.asarray(records.y, dtype=np.float64), noise)
        found, values = solve(total, float(len(records)), source.n_features, device.n_slices)
        half = device.bounds.grid(source.n_features).half_width
        q, _ = np.linalg.qr(found[:, :k] / half[:, None])
        self.directions_ = q.T
        self.eigenvalues_ = np.clip(values[:k] ** 2, 0.0, 1.0)
        self.mean_ = device.bounds.grid(source.n_features).centre
        entry = Entry(
            "whole record", "slice sums and second moment", device.event, 1.0, float(device.stds[0]), 1.0, "replace"
        )
        self.ledger_ = LocalLedger((entry,), float(self.delta), PROTECTS, noise.rehearsal, unit)
        return self
