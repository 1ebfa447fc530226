"""Everything a fit asked and was told: what its guarantee covers, and what it says about two data sets."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from sfumato.privacy.door import Watched, watching
from sfumato.privacy.events import Selection
from sfumato.privacy.mechanisms import gumbel_scale
from sfumato.records import Records
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A noisy sum, with the question."""

    query: BoundedSum
    release: Release

    def log_ratio(self, d: Records, d_prime: Records) -> float:
        """Log-likelihood ratio of D against D' given this answer."""
        one, other = (self.query.of(data) * self.query.grid for data in (d, d_prime))
        middle = self.release.value - (one + other) / 2.0
        return float(((one - other) / self.release.noise_std**2 * middle).sum())

    def shift(self, d: Records, d_prime: Records) -> float:
        """mu of this answer on the two data sets."""
        moved = (self.query.of(d) - self.query.of(d_prime)) * self.query.grid
        return float(np.linalg.norm(moved / self.release.noise_std))


@dataclass(frozen=True, slots=True, eq=False)
class Pick:
    """What a selection picked, best first; `scale` is that of the Gumbel noise on the scores."""

    query: BoundedSum
    picked: IntArray
    scale: float

    def log_ratio(self, d: Records, d_prime: Records) -> float:
        """Log-likelihood ratio of D against D' given these picks."""
        return self._log_probability(d) - self._log_probability(d_prime)

    def shift(self, d: Records, d_prime: Records) -> float:
        """mu of a Gaussian release of equal zCDP cost: picks of bounded range e cost as much as ``mu = e / 2``."""
        moved = (self._scores(d) - self._scores(d_prime)) / self.scale
        return float(np.ptp(moved)) / 2.0 * float(np.sqrt(len(self.picked)))

    def _scores(self, data: Records) -> FloatArray:
        return np.asarray(self.query.scores(self.query.of(data)), dtype=np.float64)

    def _log_probability(self, data: Records) -> float:
        """The largest noisy scores in this order: one exponential mechanism after the other, on what is left."""
        scores, total = self._scores(data) / self.scale, 0.0
        left = np.ones(len(scores), dtype=bool)
        for i in self.picked:
            total += float(scores[i] - np.logaddexp.reduce(scores[left]))
            left[i] = False
        return total


Transcript = list[Answer | Pick]


def log_ratio(transcript: Transcript, d: Records, d_prime: Records) -> float:
    """Log-likelihood ratio of D against D' given all answers of a fit.

    The attacker knows both data sets, so for each question asked (it depends on earlier answers, which are public)
    both exact answers are known, and no statistic of the releases tells D from D' better than this one (Neyman and
    Pearson). It needs no training, and it audits the composition as a whole.
    """
    return sum(one.log_ratio(d, d_prime) for one in transcript)


def realised(transcript: Transcript, d: Records, d_prime: Records) -> float:
    """mu of a whole fit on this pair of data sets, along the course that its releases took."""
    return float(np.sqrt(sum(one.shift(d, d_prime) ** 2 for one in transcript)))


@dataclass(frozen=True, slots=True, eq=False)
class Witness(Watched):
    """A door that writes down every question and every answer that pass through another one."""

    transcript: Transcript

    def answer(self, query: BoundedSum, name: str) -> Release:
        release = self.door.answer(query, name)
        self.transcript.append(Answer(self.behind.bounded(query), release))
        return release

    def select(self, query: BoundedSum, name: str) -> IntArray:
        picked, event = self.door.select(query, name), self.behind.plan.line(name).event
        assert isinstance(event, Selection)
        asked = self.behind.bounded(query)
        self.transcript.append(Pick(asked, picked, gumbel_scale(asked, self.behind.relation, event)))
        return picked


@contextmanager
def overheard() -> Iterator[Transcript]:
    """Everything that estimators ask and are told meanwhile, whichever estimator it is.

    >>> from sfumato import Bounds, PrivateSIR
    >>> with overheard() as transcript:
    ...     _ = PrivateSIR(bounds=Bounds(-1, 1)).fit([[0.1, 0.2], [0.3, 0.1], [0.5, 0.4]], [1.0, 2.0, 3.0])
    >>> type(transcript[0].query).__name__
    'ResponseHistogram'
    """
    transcript: Transcript = []
    with watching(lambda door, behind: Witness(door, behind, transcript)):
        yield transcript
