"""Whole fits under attack: what a fit publishes, and the sharpest statistic of all that it released."""

from collections.abc import Callable

import numpy as np

from sfumato.audit.cases import Memory
from sfumato.bounds import Bounds
from sfumato.estimators.pipeline import Task, run
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise
from sfumato.records import Records, Response
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, Relation

Transcript = list[tuple[BoundedSum, Release]]


class Witness(Curator):
    """A curator that also keeps every question and answer: all that the guarantee covers."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.transcript: Transcript = []

    def answer(self, query: BoundedSum, name: str) -> Release:
        release = super().answer(query, name)
        self.transcript.append((query, release))
        return release


def sir_task(n_features: int, n_records: int | None, method: str = "descent") -> Task:
    """A fit of one direction with public bounds -1 and 1. `n_records` is None under add/remove-one."""
    bounds, response = Bounds(-1.0, 1.0), Response()
    return Task(n_features, n_records, response, 1, bounds, "one-shot" if method == "one-shot" else "descent")


def published(task: Task, budget: Budget, relation: Relation) -> Callable[[Records, Noise], FloatArray]:
    """The mechanism whose output is what a fitted estimator shows: directions, eigenvalues, centre, scale."""
    plan = task.plan().calibrate(budget)

    def fit(records: Records, noise: Noise) -> FloatArray:
        outcome = run(task, Curator(Memory(records), plan, Ledger(budget, relation, rehearsal=True), noise))
        direction = outcome.spectrum.directions[0]
        sign = np.sign(direction[np.abs(direction).argmax()])
        return np.concatenate([sign * direction, outcome.fit.eigenvalues, outcome.centre, outcome.scale])

    return fit


def witnessed(task: Task, budget: Budget, relation: Relation, records: Records, noise: Noise) -> Transcript:
    """All questions and answers of one fit."""
    curator = Witness(Memory(records), task.plan().calibrate(budget), Ledger(budget, relation, rehearsal=True), noise)
    run(task, curator)
    return curator.transcript


def likelihood(
    task: Task, budget: Budget, relation: Relation, d: Records, d_prime: Records
) -> Callable[[Records, Noise], FloatArray]:
    """The mechanism whose output is the log-likelihood ratio of D against D' given all releases of a fit.

    The attacker knows both data sets, so for each question asked (it depends on earlier answers, which are public)
    both exact answers are known, and no statistic of the releases tells D from D' better than this one (Neyman and
    Pearson). It needs no training, and it audits the composition as a whole.
    """

    def fit(records: Records, noise: Noise) -> FloatArray:
        transcript = witnessed(task, budget, relation, records, noise)
        return np.array([sum(_ratio(query, release, d, d_prime) for query, release in transcript)])

    return fit


def realised(transcript: Transcript, d: Records, d_prime: Records) -> float:
    """mu of a whole fit on this pair of data sets, along the course that its releases took."""
    return float(np.sqrt(sum(_shift(query, release, d, d_prime) ** 2 for query, release in transcript)))


def worst_fit_pair(
    task: Task, budget: Budget, relation: Relation, seed: int, n_records: int = 40, tries: int = 200
) -> tuple[Records, Records]:
    """Neighbours on which a fit's releases move much: the best of random extreme pairs, judged by one transcript."""
    from sfumato.privacy.noise import SeededNoise

    rng = np.random.default_rng(seed)
    base = _ordinary(rng, n_records, task.n_features)
    transcript = witnessed(task, budget, relation, base, SeededNoise(seed))
    best, found = -1.0, (base, base)
    for _ in range(tries):
        d, d_prime = _neighbours(rng, base, relation)
        moved = realised(transcript, d, d_prime)
        if moved > best:
            best, found = moved, (d, d_prime)
    return found


def _ratio(query: BoundedSum, release: Release, d: Records, d_prime: Records) -> float:
    one, other = query.of(d) * query.grid, query.of(d_prime) * query.grid
    return float((((one - other) / release.noise_std**2) * (release.value - (one + other) / 2)).sum())


def _shift(query: BoundedSum, release: Release, d: Records, d_prime: Records) -> float:
    return float(np.linalg.norm((query.of(d) - query.of(d_prime)) * query.grid / release.noise_std))


def _ordinary(rng: np.random.Generator, n: int, p: int) -> Records:
    x = rng.uniform(-0.4, 0.4, (n, p))
    return Records(x, x[:, 0] + 0.1 * rng.standard_normal(n))


def _neighbours(rng: np.random.Generator, base: Records, relation: Relation) -> tuple[Records, Records]:
    """The base with its last record replaced by two extreme ones; or with and without one."""
    x = rng.standard_normal((2, base.x.shape[1])) * 10.0 ** rng.uniform(-2, 2, (2, 1))
    if rng.random() < 0.5:
        x[1] = rng.choice([-1.0, 1.0]) * x[0] * rng.choice([1.0, 0.3])
    y = rng.choice([-10.0, -0.5, -0.3, 0.0, 0.3, 0.5, 10.0], 2)
    if relation == "add-remove":
        return Records(np.vstack([base.x, x[:1]]), np.append(base.y, y[0])), base
    swapped = [Records(np.vstack([base.x[:-1], x[i : i + 1]]), np.append(base.y[:-1], y[i])) for i in (0, 1)]
    return swapped[0], swapped[1]
