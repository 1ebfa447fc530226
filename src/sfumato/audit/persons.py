"""Whole fits under attack by someone who may change all rows of one person."""

from dataclasses import replace

import numpy as np

from sfumato.audit.fits import Case, FitAudit, attack, ordinary
from sfumato.audit.transcript import realised
from sfumato.people import first_rows
from sfumato.privacy.noise import SeededNoise
from sfumato.records import Records
from sfumato.typing import FloatArray, IntArray

_HIDDEN = 2
"""Rows of the person that are too many to count; they must change nothing."""


class Panel(Records):
    """Records of people who have several each; row i belongs to ``ids[i]``."""

    def __init__(self, x: FloatArray, y: FloatArray | IntArray, ids: IntArray) -> None:
        super().__init__(x, y)
        self.ids = ids

    def counted(self, rows: int) -> Records:
        """The records that count."""
        mine = first_rows(self.ids, len(self.ids), rows)
        return Records(self.x[mine], self.y[mine])


def audit_person(
    case: Case, runs: int = 1_000, confidence: float = 0.99, *, name: str = "fit", seed: int = 0
) -> FitAudit:
    """The attack of `audit_fit` where neighbours differ in all rows of one person.

    The estimator of the case says how many rows of a person count. The person under attack has two more than that, and
    the others have fewer and more, in mixed order.

    Examples
    --------
    >>> from sfumato import Bounds, PrivateSIR
    >>> sir = PrivateSIR(epsilon=3.0, bounds=Bounds(-1, 1), n_directions=1, method="one-shot", rows_per_person=2)
    >>> found = audit_person(Case(sir, n_features=2), runs=100)
    >>> found.whole.passed, found.shown.passed
    (True, True)
    """
    rows, with_ids = int(case.estimator.rows_per_person), grouped(case)
    d, d_prime = worst_person(with_ids, rows, seed + 1)
    counted = d.counted(rows), d_prime.counted(rows)
    return attack(with_ids, (d, d_prime), counted, runs, confidence, name=name, seed=seed)


def grouped(case: Case) -> Case:
    """The same case, its estimator told whose row is whose."""
    return replace(case, fit=lambda estimator, panel: case.fit(estimator, panel, groups=panel.ids))


def worst_person(case: Case, rows: int, seed: int, tries: int = 200) -> tuple[Panel, Panel]:
    """Neighbours on which a fit's releases move much: the best of random extreme persons, judged by one transcript."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(1, case.n_records), rng.integers(1, rows + 3, case.n_records - 1)))
    others = ordinary(rng, replace(case, n_records=len(ids)))
    base = Panel(others.x, others.y, ids)
    transcript = case.listened(base, SeededNoise(seed))[1]
    pairs = [_neighbours(rng, base, case, rows) for _ in range(tries)]
    return max(pairs, key=lambda pair: realised(transcript, *(panel.counted(rows) for panel in pair)))


def _neighbours(rng: np.random.Generator, base: Panel, case: Case, rows: int) -> tuple[Panel, Panel]:
    """The base with two extreme persons in turn; or with and without one."""
    one, other = _person(rng, case, rows), _person(rng, case, rows)
    if rng.random() < 0.5:
        other = Records(rng.choice([-1.0, 1.0]) * one.x, other.y[: len(one)])
    return _joined(rng, base, one), base if case.relation == "add-remove" else _joined(rng, base, other)


def _person(rng: np.random.Generator, case: Case, rows: int) -> Records:
    """All rows alike where they count, which moves most, or each for itself."""
    shape = (rows + _HIDDEN, case.n_features)
    x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2, (shape[0], 1))
    y = rng.choice(case.responses, shape[0])
    if rng.random() < 0.7:
        x[:rows], y[:rows] = x[0], y[0]
    return Records(x, y)


def _joined(rng: np.random.Generator, base: Panel, person: Records) -> Panel:
    """The person's rows among the others', in their own order."""
    places = np.sort(rng.integers(0, len(base) + 1, len(person)))
    x = np.insert(base.x, places, person.x, axis=0)
    y: FloatArray = np.insert(np.asarray(base.y, dtype=np.float64), places, person.y)
    return Panel(x, y, np.insert(base.ids, places, 0))
