"""Methods side by side: expected loss against n, p or epsilon, with what no method can beat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato import limits
from sfumato.forecast.loss import forecast, label_loss
from sfumato.forecast.populations import IndexResponse
from sfumato.forecast.prospect import Prospect
from sfumato.privacy.budget import Budget
from sfumato.typing import FloatArray, Relation

LABELS = "labels only (x public)"
PLAIN = "without privacy"
BOUND = "no method without privacy"
LABEL_BOUND = "no method on randomised labels"
Along = Literal["n", "p", "epsilon"]
_AXES = {"n": "records", "p": "features", "epsilon": "epsilon"}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Expected losses along n, p or epsilon, one curve per method.

    Attributes
    ----------
    along : {"n", "p", "epsilon"}
    at : ndarray of shape (m,)
        Its values.
    losses : dict of str to ndarray of shape (m,)
        Private methods by name, then randomised labels, then SIR without privacy.
    bounds : dict of str to ndarray of shape (m,)
        Lower bounds whose constants are known, in the normal linear model.
    """

    along: Along
    at: FloatArray
    losses: Mapping[str, FloatArray]
    bounds: Mapping[str, FloatArray]

    def best(self, place: int = 0) -> str:
        """The private method (x and y both private) with the least expected loss at the given place of `at`."""
        private = [name for name in self.losses if name not in (LABELS, PLAIN)]
        return min(private, key=lambda name: self.losses[name][place])

    def rows(self) -> list[tuple[str, ...]]:
        """A table, a row for each value."""
        curves = [*self.losses.values(), *self.bounds.values()]
        return [(f"{at:,g}", *(f"{curve[i]:.3f}" for curve in curves)) for i, at in enumerate(self.at)]

    def header(self) -> tuple[str, ...]:
        """Names of the columns of `rows`."""
        return (self.along, *self.losses, *self.bounds)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curves (needs matplotlib); returns the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        for name, curve in self.losses.items():
            ax.loglog(self.at, curve, marker="o", markersize=3, linestyle="--" if name == PLAIN else "-", label=name)
        for name, curve in self.bounds.items():
            ax.loglog(self.at, curve, color="0.5", linestyle=":" if name == BOUND else "-.", label=name)
        ax.set_xlabel(_AXES[self.along])
        ax.set_ylabel("expected distance to the true direction")
        ax.legend(frameon=False)
        return ax


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a comparison; `epsilon` is that of the randomised labels the fits are compared with.

    With `rows`, persons with so many records each are protected: the answers for them share that epsilon.
    """

    prospect: Prospect
    budget: Budget
    n: float
    epsilon: float
    signal: float = 0.5
    relation: Relation = "replace"
    rows: int | None = None

    def losses(self) -> dict[str, float]:
        """Of every method, of randomised labels (where there are labels), and without privacy."""
        population = self.prospect.explaining(self.signal)
        seen = {
            name: forecast(fit, self.budget, self.n, population, relation=self.relation, rows=self.rows, draws=8)
            for name, fit in self.prospect.fits
        }
        found = {name: one.loss for name, one in seen.items()}
        if isinstance(population, IndexResponse):
            p, k = population.n_features, population.n_directions
            found[LABELS] = label_loss(self.n, p, self._each, self.signal, k)
        found[PLAIN] = next(iter(seen.values())).plain
        return found

    @property
    def _each(self) -> float:
        """Epsilon of each answer of a person: those of pure ones add up."""
        return self.epsilon / (self.rows or 1)

    def bounds(self) -> dict[str, float]:
        """What no method passes, where the constant is known."""
        if not isinstance(self.prospect.population, IndexResponse):
            return {}
        known, p = min(self.signal, 0.999), self.prospect.population.n_features
        return {
            name: limits.label_direction(self.n, p, budget, known).root
            for name, budget in ((BOUND, np.inf), (LABEL_BOUND, self._each))
        }


def compare(along: Along, at: Sequence[float], places: Sequence[Place]) -> Comparison:
    """Every method at every place."""
    losses, bounds = [one.losses() for one in places], [one.bounds() for one in places]
    return Comparison(
        along,
        np.asarray(at, dtype=np.float64),
        {name: np.array([one[name] for one in losses]) for name in losses[0]},
        {name: np.array([one[name] for one in bounds]) for name in bounds[0]},
    )
