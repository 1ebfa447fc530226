"""What an audit found, and the statistics that turn counts of right and wrong guesses into a proof."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scipy.stats import beta, norm

from sfumato.privacy.accounting import gdp_epsilon


@dataclass(frozen=True, slots=True)
class AuditResult:
    """A claim beside what an attacker could prove.

    Attributes
    ----------
    name : str
        What was attacked.
    claimed, audited_lower : float
        The privacy parameter claimed, and a lower bound on the true one, valid with `confidence`.
    delta : float or None
        None: both are mu of Gaussian differential privacy. Else both are epsilon at this delta.
    statistic : str
        The attacker's best statistic.
    runs : int
        Outputs seen on each of the two data sets.

    Examples
    --------
    >>> result = AuditResult("release", 0.5, 0.4, None, 0.99, "mean difference", 10_000)
    >>> result.passed, result.tightness, round(result.claimed_epsilon(1e-6), 3)
    (True, 0.8, 2.254)
    """

    name: str
    claimed: float
    audited_lower: float
    delta: float | None
    confidence: float
    statistic: str
    runs: int

    @property
    def passed(self) -> bool:
        """Whether the claim stands: nothing above it was proved."""
        return self.audited_lower <= self.claimed

    @property
    def tightness(self) -> float:
        """Proved over claimed: near one the claim is not only true but barely so; above one it is false."""
        return self.audited_lower / self.claimed if self.claimed > 0 else math.inf

    def claimed_epsilon(self, delta: float) -> float:
        """The claim as epsilon."""
        return self._as_epsilon(self.claimed, delta)

    def audited_epsilon(self, delta: float) -> float:
        """The proof as epsilon."""
        return self._as_epsilon(self.audited_lower, delta)

    def _as_epsilon(self, value: float, delta: float) -> float:
        if self.delta is not None and self.delta != delta:
            raise ValueError("an (epsilon, delta) audit holds at its own delta only.")
        return value if self.delta is not None or value == math.inf else gdp_epsilon(value, delta)

    def __str__(self) -> str:
        unit = "mu" if self.delta is None else "epsilon"
        verdict = "holds" if self.passed else "IS FALSE"
        return (
            f"{self.name}: claimed {unit} = {self.claimed:.4g}, audited {unit} >= {self.audited_lower:.4g} "
            f"({100 * self.confidence:.4g} % confidence, {self.runs} runs, {self.statistic}); the claim {verdict}."
        )


def upper_rate(errors: int, trials: int, confidence: float) -> float:
    """Upper end of the one-sided Clopper-Pearson interval of an error rate.

    >>> round(upper_rate(0, 1000, 0.995), 5)
    0.00528
    """
    return 1.0 if errors >= trials else float(beta.ppf(confidence, errors + 1, trials - errors))


def mu_lower(false_in: float, false_out: float) -> float:
    """The least mu at which a test with these error rates exists: N(0, 1) against N(mu, 1) has no better one.

    >>> round(mu_lower(0.1587, 0.1587), 2)
    2.0
    """
    return max(0.0, float(-norm.ppf(false_in) - norm.ppf(false_out)))


def epsilon_lower(false_in: float, false_out: float, delta: float) -> float:
    """The least epsilon at which a test with these error rates exists at `delta` (Kairouz, Oh, Viswanath 2015).

    >>> round(epsilon_lower(0.1, 0.1, 0.0), 3)
    2.197
    """
    best = 0.0
    for one, other in ((false_in, false_out), (false_out, false_in)):
        power = 1.0 - delta - other
        if power > 0 and one > 0:
            best = max(best, math.log(power / one))
    return best


def privacy_lower(errors: tuple[int, int], trials: tuple[int, int], delta: float | None, confidence: float) -> float:
    """Lower bound on mu (delta None) or epsilon from wrong guesses on each data set; half the doubt to each rate."""
    each = 1.0 - (1.0 - confidence) / 2.0
    false_in, false_out = (upper_rate(e, n, each) for e, n in zip(errors, trials, strict=True))
    return mu_lower(false_in, false_out) if delta is None else epsilon_lower(false_in, false_out, delta)


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
