"""Methods side by side: expected loss against n, with what no method can beat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato import limits
from sfumato.planner.forecast import forecast, label_forecast
from sfumato.planner.population import Population
from sfumato.privacy.plan import Plan
from sfumato.typing import FloatArray, Relation

LABELS = "labels only (x public)"
PLAIN = "without privacy"
BOUND = "no method without privacy"
LABEL_BOUND = "no method on randomised labels"


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Expected losses along n, one curve per method.

    Attributes
    ----------
    n : ndarray of shape (m,)
    losses : dict of str to ndarray of shape (m,)
        Private methods by name, then randomised labels, then SIR without privacy.
    bounds : dict of str to ndarray of shape (m,)
        Lower bounds whose constants are known, in the normal linear model.
    """

    n: FloatArray
    losses: Mapping[str, FloatArray]
    bounds: Mapping[str, FloatArray]

    def best(self, at: int = 0) -> str:
        """The private method (x and y both private) with the least expected loss at the given place of `n`."""
        private = [name for name in self.losses if name not in (LABELS, PLAIN)]
        return min(private, key=lambda name: self.losses[name][at])

    def rows(self) -> list[tuple[str, ...]]:
        """A table, a row for each n."""
        curves = [*self.losses.values(), *self.bounds.values()]
        return [(f"{n:,.0f}", *(f"{curve[i]:.3f}" for curve in curves)) for i, n in enumerate(self.n)]

    def header(self) -> tuple[str, ...]:
        """Names of the columns of `rows`."""
        return ("n", *self.losses, *self.bounds)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curves (needs matplotlib); returns the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        for name, curve in self.losses.items():
            ax.loglog(self.n, curve, marker="o", markersize=3, linestyle="--" if name == PLAIN else "-", label=name)
        for name, curve in self.bounds.items():
            ax.loglog(self.n, curve, color="0.5", linestyle=":" if name == BOUND else "-.", label=name)
        ax.set_xlabel("records")
        ax.set_ylabel("expected distance to the true direction")
        ax.legend(frameon=False)
        return ax


def compare(
    plans: Mapping[str, Plan],
    ns: Sequence[float],
    n_features: int,
    epsilon: float,
    *,
    signal: float = 0.5,
    relation: Relation = "replace",
) -> Comparison:
    """Every plan at every n, for one direction that explains the part `signal` of the response.

    `epsilon` is that of the randomised labels they are compared with.
    """
    n = np.asarray(ns, dtype=np.float64)
    population = Population.typical(n_features, 1, signal)
    seen = {
        name: [forecast(plan, size, population, relation=relation, draws=3) for size in n]
        for name, plan in plans.items()
    }
    losses = {name: np.array([one.loss for one in found]) for name, found in seen.items()}
    losses[LABELS] = np.array([label_forecast(size, n_features, epsilon, signal) for size in n])
    losses[PLAIN] = np.array([one.plain for one in next(iter(seen.values()))])
    known = min(signal, 0.999)
    bounds = {
        name: np.array([limits.label_direction(size, n_features, budget, known).root for size in n])
        for name, budget in ((BOUND, np.inf), (LABEL_BOUND, epsilon))
    }
    return Comparison(n, losses, bounds)
