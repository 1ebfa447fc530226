"""What a fit would do and cost, before it sees a record."""

from dataclasses import dataclass

from sfumato.privacy.accounting import total_epsilon
from sfumato.privacy.budget import Budget
from sfumato.privacy.plan import Plan
from sfumato.typing import Relation


@dataclass(frozen=True, slots=True)
class Explanation:
    """A calibrated plan in words; ``print`` it."""

    plan: Plan
    budget: Budget
    relation: Relation
    n_samples: int
    n_features: int

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Purpose, share of the budget, epsilon it would cost alone, noise multiplier, sensitivity."""
        whole = sum(line.share for line in self.plan.lines)
        place = 0 if self.relation == "replace" else 1
        return [
            (
                line.purpose,
                f"{100 * line.share / whole:.1f} %",
                f"{total_epsilon((line.event,), self.budget.delta or 1e-6):.3f}",
                f"{1.0 / (2.0 * line.rho) ** 0.5:.2f}",
                line.sensitivity.split(" / ")[place],
            )
            for line in self.plan.lines
        ]

    def __str__(self) -> str:
        header = ("release", "share", "epsilon alone", "noise / sensitivity", "sensitivity")
        rows = [header, *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines.insert(1, "-" * len(lines[0]))
        return "\n".join(
            [
                f"Plan for {self.n_samples} records of {self.n_features} features, "
                f"{self.budget.describe()}, relation {self.relation!r}:",
                *(line.rstrip() for line in lines),
                f"All {len(self.plan.lines)} releases together: {self.budget.describe()}.",
            ]
        )
