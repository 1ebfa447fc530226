"""Black-box audit: run a mechanism on two neighbours many times, guess which, and prove a lower bound.

Beside it the two cheapest audits: equal noise on both neighbours, and the law of purely additive noise; and what every
audit finds, an `AuditResult`, with the statistics that turn counts of right and wrong guesses into a proof.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.stats import beta, chi2, kstest, norm

from sfumato.errors import InputError
from sfumato.privacy.accounting import gdp_epsilon
from sfumato.privacy.noise import Noise, SeededNoise
from sfumato.typing import FloatArray


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


Data = TypeVar("Data")
Mechanism = Callable[[Data, Noise], Any]
"""From data and a source of noise to a vector of numbers."""


def run_many(mechanism: Mechanism[Data], data: Data, runs: int, seed: int) -> FloatArray:
    """Outputs of many runs, one row each, from one stream of noise; at once if the mechanism can (`many`)."""
    noise = SeededNoise(seed)
    many = getattr(mechanism, "many", None)
    if many is not None:
        return np.vstack([many(data, noise, len(part)) for part in np.array_split(range(runs), runs // 1000 + 1)])
    return np.array([np.ravel(mechanism(data, noise)) for _ in range(runs)], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Coupling:
    """Outputs on D minus outputs on D' under equal noise.

    `additive`: the difference is the same whatever the noise, so noise is added and does not depend on the data;
    `difference` is then exactly what the one record changes, None otherwise.
    """

    additive: bool
    difference: FloatArray | None


def couple(mechanism: Mechanism[Data], d: Data, d_prime: Data, seeds: int = 20) -> Coupling:
    """Run both neighbours under the same noise, for several noises: milliseconds.

    Noise whose covariance or range is computed from the data shows at once: the difference varies with the seed. A
    mechanism that passes and draws Gaussian noise is mu-GDP with ``mu = |difference / std|`` on this pair.

    >>> from sfumato.privacy.noise import rounded_gaussian
    >>> couple(lambda x, noise: x + rounded_gaussian(noise, 100, 1), 5, 3).difference
    array([2.])
    >>> couple(lambda x, noise: x * rounded_gaussian(noise, 100, 1), 5, 3).additive
    False
    """
    pairs = [
        tuple(np.ravel(np.asarray(mechanism(data, SeededNoise(seed)), dtype=np.float64)) for data in (d, d_prime))
        for seed in range(seeds)
    ]
    if any(one.shape != other.shape for one, other in pairs):
        return Coupling(False, None)
    differences = np.array([one - other for one, other in pairs])
    size = max(float(np.abs(pair[0]).max(initial=0.0)) for pair in pairs)
    tolerance = 1e-9 * max(float(np.abs(differences).max(initial=0.0)), 1e-3 * size)
    additive = bool((np.ptp(differences, axis=0) <= tolerance).all())
    return Coupling(additive, differences.mean(axis=0) if additive else None)


@dataclass(frozen=True, slots=True)
class GaussianCheck:
    """Noise that is added and Gaussian: mu on this pair, a lower bound on it, and the test of normality.

    `mu_lower` holds with the confidence asked for *if* the noise is Gaussian; `p_value` (Kolmogorov-Smirnov) is
    small if it is not.
    """

    mu: float
    mu_lower: float
    p_value: float


def gaussian_check(
    mechanism: Mechanism[Data], d: Data, d_prime: Data, runs: int = 6_000, confidence: float = 0.99, *, seed: int = 1
) -> GaussianCheck | None:
    """Estimate mu of additive Gaussian noise: far sharper than a black box. None if the noise is not additive.

    The difference is known exactly from the coupling, so only the standard deviation of the best linear statistic
    has to be estimated: 6,000 runs resolve 5 % of missing noise.
    """
    difference = couple(mechanism, d, d_prime).difference
    if difference is None:
        return None
    moved = np.flatnonzero(difference)
    if len(moved) == 0:
        return GaussianCheck(0.0, 0.0, 1.0)
    outputs = run_many(mechanism, d, runs, seed)[:, moved]
    half = runs // 2  # the weights come from one half, the standard deviation from the other
    variance = outputs[:half].var(axis=0)
    if not (variance > 0).all():
        return GaussianCheck(math.inf, math.inf, 0.0)
    weights = difference[moved] / variance
    scores = outputs[half:] @ weights
    shift, std = float(weights @ difference[moved]), float(scores.std(ddof=1))
    freedom = len(scores) - 1
    widest = std * math.sqrt(freedom / float(chi2.ppf(1.0 - confidence, freedom)))
    p_value = float(kstest((scores - scores.mean()) / std, "norm").pvalue)
    return GaussianCheck(shift / std, shift / widest, p_value)


Claim = float | tuple[float, float]
"""mu of Gaussian differential privacy, or (epsilon, delta)."""

Statistic = Callable[[FloatArray], FloatArray]
"""Maps outputs (runs, k) to scores (runs,): large on D, small on D'."""

LEARNT = 0.3
"""Share of the runs the attacker learns from; the rest is the proof."""
_WIDEST = 60  # features up to which a full covariance is learnt


def audit(
    mechanism: Mechanism[Data],
    d: Data,
    d_prime: Data,
    claimed: Claim,
    runs: int = 10_000,
    confidence: float = 0.99,
    *,
    name: str = "mechanism",
    seed: int = 0,
) -> AuditResult:
    """Attack a claim of differential privacy on one pair of neighbouring data sets.

    Statistics are learnt on a first part of the runs, the best one and its threshold chosen on a second; the error
    rates on the rest, with Clopper-Pearson bounds, prove that the privacy parameter is at least `audited_lower`. A
    claim that passes is not proved true (the pair may not be the worst one); a claim that fails is false.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data, noise)`` returns a vector; it must draw all its randomness from `noise`.
    d, d_prime : object
        Neighbouring data sets, as the mechanism takes them.
    claimed : float or (float, float)
        mu of Gaussian differential privacy, or (epsilon, delta).
    runs : int
        Runs on each data set. Provable epsilon is capped near ``log(runs)``, provable mu near twice the normal
        quantile of ``1 / runs``.
    confidence : float
        How sure the lower bound is.
    name : str
        For the result.
    seed : int
        Of the noise and nothing else: the audit repeats exactly.

    Examples
    --------
    >>> from sfumato.privacy.noise import rounded_gaussian
    >>> def noisy_sum(data, noise):
    ...     return sum(data) + rounded_gaussian(noise, 1000, 1)
    >>> honest = audit(noisy_sum, [0], [1000], claimed=1.0, runs=5_000)
    >>> honest.passed, honest.tightness > 0.8
    (True, True)
    >>> audit(noisy_sum, [0], [2000], claimed=1.0, runs=5_000).passed
    False
    """
    if runs < 100:
        raise InputError(f"runs must be at least 100, got runs={runs!r}; fewer prove nothing.")
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence must be from 0.5 to below 1, got confidence={confidence!r}.")
    a, b = run_many(mechanism, d, runs, 2 * seed), run_many(mechanism, d_prime, runs, 2 * seed + 1)
    return judge(a, b, claimed, confidence, hint=couple(mechanism, d, d_prime, seeds=4).difference, name=name)


def judge(
    a: FloatArray,
    b: FloatArray,
    claimed: Claim,
    confidence: float = 0.99,
    *,
    hint: FloatArray | None = None,
    name: str = "mechanism",
) -> AuditResult:
    """The same attack on outputs that are there already: `a` on D and `b` on D', a row for each run."""
    runs, delta = len(a), claimed[1] if isinstance(claimed, tuple) else None
    half, cut = int(LEARNT * runs) // 2, int(LEARNT * runs)
    statistics = learn(a[:half], b[:half], hint)
    label, statistic, threshold = _best(statistics, a[half:cut], b[half:cut], delta, confidence)
    errors = _errors(statistic(a[cut:]), statistic(b[cut:]), threshold)
    lower = privacy_lower(errors, (runs - cut, runs - cut), delta, confidence)
    value = claimed[0] if isinstance(claimed, tuple) else claimed
    return AuditResult(name, value, lower, delta, confidence, label, runs)


def _best(
    statistics: dict[str, Statistic], a: FloatArray, b: FloatArray, delta: float | None, confidence: float
) -> tuple[str, Statistic, float]:
    """The statistic and threshold that prove most, on runs from which the statistics were not learnt."""
    tried = []
    # Few thresholds, as the best of many would be one where the examples happen to be kind. A claim of mu is best
    # tested in the middle, one of epsilon may be false only in the tails.
    levels = np.linspace(0.1, 0.9, 9) if delta is None else np.linspace(0.02, 0.98, 25)
    for label, statistic in statistics.items():
        on_a, on_b = statistic(a), statistic(b)
        for threshold in np.unique(np.quantile(np.concatenate([on_a, on_b]), levels)):
            proof = privacy_lower(_errors(on_a, on_b, threshold), (len(a), len(b)), delta, confidence)
            tried.append((proof, label, statistic, float(threshold)))
    return max(tried, key=lambda one: one[0])[1:]


def _errors(on_a: FloatArray, on_b: FloatArray, threshold: float) -> tuple[int, int]:
    """Wrong guesses on D' and on D if scores above the threshold are taken for D."""
    return int((on_b > threshold).sum()), int((on_a <= threshold).sum())


def learn(a: FloatArray, b: FloatArray, hint: FloatArray | None = None) -> dict[str, Statistic]:
    """Candidate statistics an attacker may use, learnt from outputs `a` on D and `b` on D', (runs, k) each.

    `hint` is the difference of the outputs under equal noise: for additive noise, exactly what one record changes.
    """
    spread = _spread(a, b)
    found: dict[str, Statistic] = {}  # the first of equals is taken
    if hint is not None:
        found["coupled difference"] = _linear(hint / spread)
    found["mean difference"] = _linear((a.mean(0) - b.mean(0)) / spread)
    if 1 < a.shape[1] <= _WIDEST and len(a) > 10 * a.shape[1]:
        pooled = (np.cov(a.T) + np.cov(b.T)) / 2
        pooled += 1e-6 * np.diag(spread)
        found["linear discriminant"] = _linear(np.linalg.solve(pooled, a.mean(0) - b.mean(0)))
    found["quadratic"] = _quadratic(a, b)
    found["spread"] = _spread_ratio(a, b)
    if len(np.unique(np.concatenate([a, b]), axis=0)) < len(a) // 2:
        found["exact values"] = _atoms(a, b)
    return found


def _spread(a: FloatArray, b: FloatArray) -> FloatArray:
    both = (a.var(0) + b.var(0)) / 2
    shift = (a.mean(0) - b.mean(0)) ** 2
    # A coordinate without noise would divide by zero; if it also differs, it decides everything.
    floor = 1e-12 * max(float(both.max()), float(shift.max()), 1e-300)
    return np.asarray(np.maximum(both, floor))


def _linear(weights: FloatArray) -> Statistic:
    return lambda outputs: np.asarray(outputs @ weights)


def _quadratic(a: FloatArray, b: FloatArray) -> Statistic:
    """Log-likelihood ratio of independent Gaussians."""
    both = _spread(a, b)
    va, vb = (np.maximum(v.var(0), 1e-9 * both) for v in (a, b))
    ma, mb = a.mean(0), b.mean(0)
    return lambda outputs: np.asarray(((outputs - mb) ** 2 / vb - (outputs - ma) ** 2 / va).sum(axis=1))


def _spread_ratio(a: FloatArray, b: FloatArray) -> Statistic:
    """How far an output lies from the common middle along the direction whose spread differs most."""
    middle = (a.mean(0) + b.mean(0)) / 2
    scale = np.sqrt(_spread(a, b))
    if a.shape[1] > _WIDEST or len(a) <= 10 * a.shape[1]:
        directions = np.eye(a.shape[1])
    else:
        difference = np.cov((a / scale).T) - np.cov((b / scale).T)
        directions = np.linalg.eigh(np.atleast_2d(difference))[1]
    gap = ((((a - middle) / scale) @ directions) ** 2).mean(0) - ((((b - middle) / scale) @ directions) ** 2).mean(0)
    j = int(np.abs(gap).argmax())
    sign = 1.0 if gap[j] > 0 else -1.0
    return lambda outputs: np.asarray(sign * np.abs(((outputs - middle) / scale) @ directions[:, j]))


def _atoms(a: FloatArray, b: FloatArray) -> Statistic:
    """Log-ratio of how often exactly this output was seen: for index sets, labels and other discrete outputs."""
    seen_a, seen_b = (Counter(row.tobytes() for row in np.ascontiguousarray(v)) for v in (a, b))

    def score(outputs: FloatArray) -> FloatArray:
        keys = [row.tobytes() for row in np.ascontiguousarray(outputs)]
        return np.array([np.log((seen_a[key] + 0.5) / (seen_b[key] + 0.5)) for key in keys])

    return score
