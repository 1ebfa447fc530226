"""Auditing from a single fit, with canaries (Steinke, Nasr and Jagielski 2023)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato.audit.blackbox import AuditResult
from sfumato.audit.fits import Answer, Case, Transcript
from sfumato.errors import InputError
from sfumato.methods.sir import PrivateSIR
from sfumato.privacy.noise import Noise, SeededNoise
from sfumato.records import Records
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray

Coins = NDArray[np.bool_]
CONFIDENCE = 0.99
_LARGEST = 50.0


def one_run(
    scores: Callable[[Coins, Noise], FloatArray],
    canaries: int,
    claimed: tuple[float, float],
    *,
    guesses: int | None = None,
) -> AuditResult:
    """Toss a coin for each canary, run once, and guess the coins from scores.

    Of the canaries, the half of `guesses` with the highest scores are guessed "in", as many with the lowest "out".
    Under (epsilon, delta)-differential privacy the right guesses are no more than a binomial variable of success
    probability ``1 / (1 + exp(-epsilon))``, up to a term in delta; more right guesses refute the claim.

    Parameters
    ----------
    scores : callable
        ``scores(coins, noise)``: run the mechanism with the canaries whose coin is True, and return one score for
        each canary, computed from the output and from the canaries, not from the coins.
    canaries : int
        Their number; a hundred or more. Each coin must change one record under the claim's relation.
    claimed : (float, float)
        epsilon and delta.
    guesses : int, optional
        How many coins to guess, an even number; a third of the canaries by default.
    """
    k = (guesses if guesses is not None else canaries // 3) // 2
    if not 1 <= k <= canaries // 2:
        raise InputError(f"guesses must be from 2 to the number of canaries, got guesses={guesses!r}.")
    coins = np.random.default_rng(0).random(canaries) < 0.5
    order = np.argsort(scores(coins, SeededNoise(0)))
    right = int(coins[order[-k:]].sum() + (~coins[order[:k]]).sum())
    epsilon, delta = claimed
    lower = one_run_epsilon(canaries, 2 * k, right, delta)
    return AuditResult("one run", epsilon, lower, delta, CONFIDENCE, f"{right} of {2 * k} guesses right", 1)


def one_run_epsilon(canaries: int, guesses: int, right: int, delta: float) -> float:
    """The largest epsilon that so many right guesses refute.

    >>> round(one_run_epsilon(1000, 100, 95, 0.0), 2), one_run_epsilon(1000, 100, 50, 0.0)
    (1.94, 0.0)
    """
    low, high = 0.0, _LARGEST
    if _surprise(canaries, guesses, right, low, delta) > 1.0 - CONFIDENCE:
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        refuted = _surprise(canaries, guesses, right, middle, delta) <= 1.0 - CONFIDENCE
        low, high = (middle, high) if refuted else (low, middle)
    return low


def _surprise(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Largest probability of at least `right` right guesses under (epsilon, delta)-DP (their theorem 5.2)."""
    rate = 1.0 / (1.0 + np.exp(-epsilon))
    beta = float(binom.sf(right - 1, guesses, rate))
    below = np.cumsum(binom.pmf(right - np.arange(1, right + 1), guesses, rate))
    alpha = float((below / np.arange(1, right + 1)).max(initial=0.0))
    return min(1.0, beta + 2.0 * canaries * delta * alpha)


@dataclass(frozen=True, slots=True)
class SirCanaries:
    """Canaries for one fit: record i is ``tails[i]`` or ``heads[i]``, as its coin says (replace-one).

    The scores are the log-likelihood ratios of each coin alone, the others taken at their middle.
    """

    estimator: PrivateSIR
    base: Records
    heads: Records
    tails: Records

    def scores(self, coins: Coins, noise: Noise) -> FloatArray:
        """Fit once with the records the coins choose, and score every canary by all releases."""
        x = np.where(coins[:, None], self.heads.x, self.tails.x)
        y = np.where(coins, self.heads.y, self.tails.y)
        records = Records(np.vstack([self.base.x, x]), np.append(self.base.y, y))
        return self._scored(Case(self.estimator, records.x.shape[1]).listened(records, noise)[1])

    def _scored(self, transcript: Transcript) -> FloatArray:
        total = np.zeros(len(self.heads))
        for answer in transcript:
            assert isinstance(answer, Answer)
            query, release = answer.query, answer.release
            one, other = (_each(query, side) * query.grid.ravel() for side in (self.heads, self.tails))
            middle = (query.of(self.base) * query.grid).ravel() + ((one + other) / 2).sum(axis=0)
            total += (one - other) @ ((release.value.ravel() - middle) / release.noise_std.ravel() ** 2)
        return total


def _each(query: BoundedSum, records: Records) -> FloatArray:
    rows = (Records(records.x[i : i + 1], records.y[i : i + 1]) for i in range(len(records)))
    return np.array([query.of(row).ravel() for row in rows], dtype=np.float64)


def sir_canaries(estimator: PrivateSIR, p: int, n_base: int, canaries: int) -> SirCanaries:
    """Canaries in random directions, opposite under heads and tails, with responses at opposite ends."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.4, 0.4, (n_base, p))
    base = Records(x, x[:, 0] + 0.1 * rng.standard_normal(n_base))
    point = rng.standard_normal((canaries, p))
    y = rng.uniform(-0.5, 0.5, (2, canaries))
    return SirCanaries(estimator, base, Records(point, y[0]), Records(-point, y[1]))
