"""Everything a fit asked and was told: what its guarantee covers, and what it says about two data sets."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from sfumato.estimators import session
from sfumato.privacy.curator import Curator, Setting
from sfumato.privacy.events import Selection
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise
from sfumato.privacy.plan import Plan
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


class _Overheard:
    """A setting that remembers what it was last asked."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.last: BoundedSum | None = None

    def sum(self, query: BoundedSum) -> IntArray:
        self.last = query
        return self._setting.sum(query)


class Witness(Curator):
    """A curator that also keeps every question, as it reached the records, and every answer."""

    def __init__(self, setting: Setting, plan: Plan, ledger: Ledger, noise: Noise) -> None:
        self._heard = _Overheard(setting)
        super().__init__(self._heard, plan, ledger, noise)
        self.transcript: Transcript = []

    def answer(self, query: BoundedSum, name: str) -> Release:
        return self._keep(super().answer(query, name))

    def answer_part(self, query: BoundedSum, name: str, part: int) -> Release:
        return self._keep(super().answer_part(query, name, part))

    def select(self, query: BoundedSum, name: str) -> IntArray:
        event = self._open[name].event
        picked = super().select(query, name)
        assert isinstance(event, Selection) and self._heard.last is not None
        asked = self._heard.last  # with the bounds of a person's rows, where persons are protected
        self.transcript.append(Pick(asked, picked, 2.0 * asked.peak(self.relation) / event.epsilon))
        return picked

    def _keep(self, release: Release) -> Release:
        assert self._heard.last is not None
        self.transcript.append(Answer(self._heard.last, release))
        return release


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

    class Listening(Witness):
        def __init__(self, setting: Setting, plan: Plan, ledger: Ledger, noise: Noise) -> None:
            super().__init__(setting, plan, ledger, noise)
            self.transcript = transcript

    door = vars(session)  # every private fit opens its door there
    before, door["Curator"] = door["Curator"], Listening
    try:
        yield transcript
    finally:
        door["Curator"] = before
