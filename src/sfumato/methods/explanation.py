"""What a fit would do and cost, and what to expect of it, before it sees a record."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato import limits
from sfumato.bounds import Bounds
from sfumato.displays import Displayed
from sfumato.errors import InputError
from sfumato.forecast.comparison import Along, Comparison, Place, compare
from sfumato.forecast.loss import Forecast, epsilon_needed, forecast, label_loss, records_needed
from sfumato.forecast.populations import WIDEST, IndexResponse
from sfumato.forecast.prospect import MARGIN, Prospect
from sfumato.privacy.accounting import total_epsilon
from sfumato.privacy.budget import Budget
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import is_count_public
from sfumato.steps.location import Location, searches_in_vain
from sfumato.typing import Relation

SIGNALS = (0.9, 0.5, 0.2)
TARGET = 0.1
TOLD, SOUGHT, COMPARED = 3, 2, 6
"""Stand-ins that a loss is the mean of: one that is told, one of a search, one that is compared with others."""
MOST_DRAWS, MOST_SOUGHT = 4, 2
"""Times as many stand-ins as usual, at most, where features are few; of a search, which asks about ten times."""
NO_FORECAST = "No loss is foreseen: there is no forecast for this method."


@dataclass(frozen=True, slots=True)
class Explanation(Displayed):
    """A calibrated plan in words, with the loss to expect; ``print`` it.

    `fit` are the public facts that the plan was made from. Without a prospect there is no forecast.
    """

    plan: Plan
    budget: Budget
    relation: Relation
    n_samples: int
    n_features: int
    fit: Any
    prospect: Prospect | None = None
    rows_per_person: int | None = None

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Purpose, share of the budget, epsilon it would cost alone, noise multiplier, sensitivity."""
        whole = sum(line.share for line in self.plan.lines)
        place = 0 if self.relation == "replace" else 1
        times = "" if self.rows_per_person in (None, 1) else f"{self.rows_per_person} x "
        return [
            (
                line.purpose,
                f"{100 * line.share / whole:.1f} %",
                f"{total_epsilon((line.event,), self.budget.delta or 1e-6):.3f}",
                f"{1.0 / (2.0 * line.rho) ** 0.5:.2f}",
                f"{times}{line.sensitivity.split(' / ')[place]}",
            )
            for line in self.plan.lines
        ]

    @property
    def has_forecast(self) -> bool:
        """Whether there is a forecast for a fit of this size."""
        return self.prospect is not None and not self.prospect.wide and self.n_samples >= 10

    @property
    def meaning(self) -> str:
        """What the signal of a forecast is."""
        return self._prospect.population.meaning

    def forecast(self, signal: float = 0.5, n_directions: int | None = None) -> Forecast:
        """The loss to expect on typical records whose directions explain the part `signal` (see `meaning`).

        `signal` is an assumption about the study, not something read from it: an R squared of 0.9 is a strong
        relation, 0.5 a usual one, 0.2 a weak one.
        """
        return self._forecast(self.fit, self.budget, self.n_samples, signal, n_directions, self._draws(TOLD))

    def records_for(self, target: float = TARGET, signal: float = 0.5, n_directions: int | None = None) -> float:
        """Number of records at which the expected loss is `target`; inf if no number below 10^12 will do."""

        def loss(n: float) -> float:
            draws = self._draws(SOUGHT, MOST_SOUGHT)
            return self._forecast(self.fit, self.budget, n, signal, n_directions, draws).loss

        return records_needed(target, loss, float(max(self.n_samples, 100)))

    def epsilon_for(self, target: float = TARGET, signal: float = 0.5, n_directions: int | None = None) -> float:
        """Epsilon at which the expected loss of these records is `target`, delta as it is; inf if none up to 100 is."""

        def loss(epsilon: float) -> float:
            budget = Budget.approximate(epsilon, self.budget.delta or 1e-6)
            draws = self._draws(SOUGHT, MOST_SOUGHT)
            return self._forecast(self.fit, budget, self.n_samples, signal, n_directions, draws).loss

        return epsilon_needed(target, loss)

    @property
    def _prospect(self) -> Prospect:
        if self.prospect is None:
            raise InputError("method: there is no forecast for this one; `explain` shows its plan and cost.")
        return self.prospect

    def _draws(self, usual: int, most: int = MOST_DRAWS) -> int:
        """Stand-ins of a forecast: of few records fits scatter widely, so as many as time allows."""
        return usual * min(max(30 // self.n_features, 1), most)

    def _forecast(self, fit: Any, budget: Budget, n: float, signal: float, k: int | None, draws: int) -> Forecast:
        population, rows = self._prospect.explaining(signal, k), self.rows_per_person
        return forecast(fit, budget, n, population, relation=self.relation, rows=rows, draws=draws)

    @property
    def label_loss(self) -> float:
        """Loss to expect of `LabelPrivateSIR` at the same epsilon and signal 0.5, were x public."""
        k = self._prospect.population.n_directions
        epsilon = (self.budget.epsilon or 1.0) / (self.rows_per_person or 1)  # of each answer: pure ones add up
        return label_loss(self.n_samples, self.n_features, epsilon, k=k)

    @property
    def limit(self) -> limits.Limit:
        """The minimax rate of DP-SIR at this size; a rate, not a loss."""
        epsilon, delta = self.budget.epsilon, self.budget.delta
        if epsilon is None or delta is None:
            return limits.sir_zcdp(self.n_samples, self.n_features, self.budget.rho or 1.0)
        return limits.sir(self.n_samples, self.n_features, epsilon, delta)

    def alternatives(self, budget: Budget | None = None) -> dict[str, Plan]:
        """The same fit by each method that has a forecast, at the same budget or another one."""
        return self._prospect.plans(budget or self.budget, rows=self.rows_per_person)

    def compare(self, at: Sequence[float] | None = None, signal: float = 0.5, *, along: Along = "n") -> Comparison:
        """Each method's expected loss along n, p or epsilon, with randomised labels, no privacy and the known bounds.

        Parameters
        ----------
        at : sequence of float, optional
            Where; from a tenth to ten times (epsilon and p: a fifth to five times) what was asked for by default.
        signal : float
            Part of the response that the direction is assumed to explain.
        along : {"n", "p", "epsilon"}

        Returns
        -------
        Comparison
            Its ``rows()`` are a table and ``plot()`` draws it.

        Examples
        --------
        >>> from sfumato import PrivateSIR
        >>> explanation = PrivateSIR(epsilon=1.0).explain(20_000, 10)
        >>> explanation.compare([20_000]).best()
        'descent'
        >>> len(explanation.compare([0.5, 1.0], along="epsilon").rows())
        2
        """
        if along not in ("n", "p", "epsilon"):
            raise InputError(f"along must be 'n', 'p' or 'epsilon', got {along!r}.")
        chosen = self._around(along) if at is None else list(at)
        return compare(along, chosen, [self._place(along, value, signal) for value in chosen])

    def plot(self, along: Along = "n", ax: Any = None) -> Any:
        """Draw `compare` along n, p or epsilon (needs matplotlib); returns the axes."""
        return self.compare(along=along).plot(ax)

    def _around(self, along: Along) -> list[float]:
        if along == "n":
            return [self.n_samples * factor for factor in (0.1, 0.3, 1.0, 3.0, 10.0)]
        middle = self._epsilon if along == "epsilon" else float(self.n_features)
        near = [middle * factor for factor in (0.2, 0.5, 1.0, 2.0, 5.0)]
        return near if along == "epsilon" else sorted({float(min(max(2, round(p)), WIDEST)) for p in near})

    def _place(self, along: Along, value: float, signal: float) -> Place:
        budget = self.budget
        if along == "epsilon":
            budget = Budget.approximate(value, self.budget.delta or 1e-6)
        n = value if along == "n" else float(self.n_samples)
        p = int(value) if along == "p" else self.n_features
        epsilon = value if along == "epsilon" else self._epsilon
        prospect = self._prospect if along != "p" else self._prospect.sized(p)
        return Place(prospect, budget, n, epsilon, signal, self.relation, self.rows_per_person)

    @property
    def _epsilon(self) -> float:
        return self.budget.epsilon or total_epsilon(self.plan.events, 1e-6)

    @property
    def recommended(self) -> str:
        """The method with the least expected loss at this size and budget: from public numbers alone.

        It is what ``method="auto"`` uses where the number of records is public.
        """
        return self._prospect.best(self.budget, self.n_samples, self.relation, rows=self.rows_per_person)

    def expectations(self) -> list[tuple[str, str, str, str]]:
        """Assumed signal, expected loss, loss without privacy, random directions; as text."""
        rows = []
        for signal in SIGNALS:
            seen = self.forecast(signal)
            rows.append((f"{signal:.0%}", f"{seen.loss:.3f}", f"{seen.plain:.3f}", f"{seen.useless:.3f}"))
        return rows

    def advice(self) -> list[str]:
        """What the numbers mean, in sentences."""
        needed = self.records_for(TARGET)
        enough = "no number of records" if math.isinf(needed) else f"about {_rounded(needed):,} records"
        epsilon = self.epsilon_for(TARGET)
        spend = "no epsilon up to 100" if math.isinf(epsilon) else f"epsilon of about {epsilon:.2g}"
        words = [
            f"Method with the least expected loss at this size: {self.recommended}.",
            f"A loss of {TARGET:g} at a signal of 50 % needs {enough}, or with these records {spend}.",
        ]
        words += self._of_bounds()
        return words + (self._of_sir() if isinstance(self._prospect.population, IndexResponse) else [])

    def _of_bounds(self) -> list[str]:
        """What bounds would be worth, where they are to be found."""
        location = getattr(self.fit, "bounds", None)
        if not isinstance(location, Location) or not location.known.unknown.size:
            return []
        given = self._loss(replace(self.fit, bounds=Bounds(-1.0, 1.0)), self.budget)
        found = self._loss(self.fit, self.budget)
        if given > MARGIN * found:
            return []
        twice = Budget.approximate(2.0 * self._epsilon, self.budget.delta or 1e-6)
        spent = self._loss(self.fit, twice)
        these = f"{location.known.unknown.size} features whose range is not known"
        return [
            f"Give bounds for the {these}: the loss at 50 % would be about {given:.3f}, not {found:.3f}, and "
            f"{spent:.3f} at twice the epsilon."
        ]

    def _loss(self, fit: Any, budget: Budget) -> float:
        return self._forecast(fit, budget, self.n_samples, 0.5, None, self._draws(COMPARED)).loss

    def warnings(self) -> list[str]:
        """What public numbers say will go wrong, in sentences; there may be nothing."""
        location, words = getattr(self.fit, "bounds", None), []
        public = is_count_public(self.relation, self.rows_per_person)
        if isinstance(location, Location) and public and searches_in_vain(location, self.n_samples, self.budget.mu()):
            start = "Bounds will hardly be found" if location.insists else "`fit` will refuse"
            many = location.known.unknown.size
            words.append(f"{start}: {self.n_samples} records are too few for those of {many} features; give bounds.")
        if self.prospect is not None and not self.has_forecast and self.n_features > WIDEST:
            few = self.n_samples <= self.n_features
            words.append(
                "More features than records: expect nothing better than random directions; try PrivateSparseSIR."
                if few and isinstance(self.prospect.population, IndexResponse)
                else f"No loss is foreseen for more than {WIDEST} features."
            )
        return words

    def _of_sir(self) -> list[str]:
        share = self.limit.privacy / self.limit.value
        return [
            f"If x were public and only y private, randomised labels at the same epsilon would give about "
            f"{self.label_loss:.3f}.",
            f"No method avoids the rate of {self.limit.source}; at this size privacy makes {share:.0%} of it.",
        ]

    @property
    def _whom(self) -> str:
        rows = self.rows_per_person
        return "" if rows is None else f" of a person with up to {rows} row{'s' if rows > 1 else ''}"

    def __str__(self) -> str:
        header = ("release", "share", "epsilon alone", "noise / sensitivity", "sensitivity")
        lines = [
            f"Plan for {self.n_samples} records of {self.n_features} features, "
            f"{self.budget.describe()}, relation {self.relation!r}{self._whom}:",
            *_table(header, self.rows()),
            f"All {len(self.plan.lines)} releases together: {self.budget.describe()}.",
        ]
        if self.has_forecast:
            headings = ("signal", "expected loss", "without privacy", "random directions")
            lines += ["", f"Expected distance to the true directions, by {self.meaning}:"]
            lines += [*_table(headings, self.expectations()), *self.advice()]
        elif self.prospect is None:
            lines.append(NO_FORECAST)
        lines += self.warnings()
        return "\n".join(lines)


def _table(header: tuple[str, ...], body: Sequence[tuple[str, ...]]) -> list[str]:
    rows = [header, *body]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "-" * len(lines[0]))
    return [line.rstrip() for line in lines]


def _rounded(n: float) -> int:
    """Two significant digits: a forecast is not more precise."""
    return int(round(n, 1 - math.floor(math.log10(max(n, 10.0)))))
