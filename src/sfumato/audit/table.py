"""The audit of every kind of release: claimed, audited, tightness."""

from collections.abc import Callable, Iterable, Mapping

from sfumato.audit.blackbox import audit
from sfumato.audit.cases import queries, release_of, worst_pair
from sfumato.audit.result import AuditResult
from sfumato.privacy.budget import Budget
from sfumato.sums import BoundedSum
from sfumato.typing import Relation

RELATIONS: tuple[Relation, ...] = ("replace", "add-remove")


def audit_table(
    budgets: Iterable[Budget] = (Budget.approximate(1.0, 1e-6), Budget.approximate(3.0, 1e-6)),
    runs: int = 10_000,
    confidence: float = 0.99,
    *,
    known: Mapping[str, BoundedSum] | None = None,
    only: str = "",
    progress: Callable[[str], object] | None = None,
) -> list[AuditResult]:
    """Audit one Gaussian release of every kind of query, on its worst pair, under both relations.

    Parameters
    ----------
    budgets : iterable of Budget
        What a single release may spend; its claim is the budget's mu.
    runs, confidence
        As in `audit`.
    known : mapping from names to BoundedSum, optional
        The queries to audit; those of `sfumato.audit.cases` by default.
    only : str
        Audit only the releases whose name contains this.
    progress : callable, optional
        Told the name of each release before it is audited.
    """
    found = []
    for budget in budgets:
        for name, query in (queries() if known is None else known).items():
            if only not in name:
                continue
            for relation in RELATIONS:
                label = f"{name}, {relation}, {budget.describe()}"
                if progress is not None:
                    progress(label)
                pair = worst_pair(query, relation)
                mechanism = release_of(query, relation, budget.mu())
                found.append(audit(mechanism, pair.d, pair.d_prime, budget.mu(), runs, confidence, name=label))
    return found


def markdown(results: Iterable[AuditResult], delta: float = 1e-6) -> str:
    """The results as a table; mu is shown with the epsilon it means at `delta`.

    >>> print(markdown([AuditResult("release", 0.5, 0.4, None, 0.99, "mean difference", 10_000)]))
    | release | claimed mu (epsilon) | audited mu (epsilon) | tightness | statistic | runs | claim |
    |---|---|---|---|---|---|---|
    | release | 0.5000 (2.254) | 0.4000 (1.766) | 0.80 | mean difference | 10000 | holds |
    """
    lines = ["| release | claimed mu (epsilon) | audited mu (epsilon) | tightness | statistic | runs | claim |"]
    lines.append("|---|---|---|---|---|---|---|")
    for r in results:
        values = [(r.claimed, r.claimed_epsilon), (r.audited_lower, r.audited_epsilon)]
        if r.delta is None:
            claimed, audited = (f"{value:.4f} ({epsilon(delta):.3f})" for value, epsilon in values)
        else:
            claimed, audited = (f"({value:.3f})" for value, _ in values)
        verdict = "holds" if r.passed else "**false**"
        lines.append(f"| {r.name} | {claimed} | {audited} | {r.tightness:.2f} | {r.statistic} | {r.runs} | {verdict} |")
    return "\n".join(lines)
