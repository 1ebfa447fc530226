"""Whole fits under attack: every estimator, what it shows, and the sharpest statistic of all that it released.

The attacker may change one record, or all rows of one person. A `Transcript` is everything a fit asked and was told:
what its guarantee covers, and what it says about two data sets.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from sfumato.audit.blackbox import AuditResult, Claim, judge, run_many
from sfumato.audit.releases import Attacked
from sfumato.bounds import Bounds
from sfumato.errors import PrivacyWarning
from sfumato.federated import simulate
from sfumato.methods import FAMILY, PREPARING, added, load
from sfumato.methods.about import BOX, NUMBERS, Attack
from sfumato.methods.label_iht import LabelPrivateIHT
from sfumato.methods.label_sir import LabelPrivateSIR
from sfumato.methods.local_sir import LocalSIR
from sfumato.methods.sir import PrivateSIR
from sfumato.methods.sparse_sir import PrivateSparseSIR
from sfumato.people import first_rows
from sfumato.privacy.accounting import gdp_mu
from sfumato.privacy.door import Watched, watching
from sfumato.privacy.events import Selection
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.mechanisms import gumbel_scale
from sfumato.privacy.noise import Noise, SeededNoise
from sfumato.privacy.parameters import budget_of
from sfumato.records import Records
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation


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


def _usual(estimator: Any, records: Records, **also: Any) -> Any:
    return estimator.fit(records.x, records.y, **also)


@dataclass(frozen=True, slots=True)
class Case:
    """An estimator with its relation and budget, small enough data, and how they are handed to it.

    `responses` are what the attacker may put in the place of y.
    """

    estimator: Any
    n_features: int = 3
    n_records: int = 40
    responses: tuple[float, ...] = NUMBERS
    fit: Callable[..., Any] = _usual

    @property
    def relation(self) -> Relation:
        """Neighbouring relation of the claim."""
        relation: Relation = getattr(self.estimator, "relation", "replace")
        return relation

    def run(self, records: Records, noise: Noise) -> Any:
        """A fitted copy, all its noise drawn from `noise`."""
        copy = clone(self.estimator).set_params(random_state=int(noise.words(1)[0] >> np.uint64(1)))
        with warnings.catch_warnings(action="ignore", category=PrivacyWarning):  # seeded noise is what an audit wants
            return self.fit(copy, records)

    def listened(self, records: Records, noise: Noise) -> tuple[Any, Transcript]:
        """The same, with all its questions and answers."""
        with overheard() as transcript:
            fitted = self.run(records, noise)
        return fitted, transcript

    def claim(self, transcript: Transcript) -> Claim:
        """mu if all releases are Gaussian, else (epsilon, delta)."""
        budget = budget_of(self.estimator.epsilon, self.estimator.delta, getattr(self.estimator, "rho", None))
        gaussian = all(hasattr(one, "release") for one in transcript)
        return budget.mu() if gaussian else (float(self.estimator.epsilon), float(self.estimator.delta))


@dataclass(frozen=True, slots=True)
class FitAudit:
    """Both attacks on a fit, and how far the neighbours moved its releases along a few courses, in mu."""

    whole: AuditResult
    shown: AuditResult
    moved: tuple[float, ...]


def audit_fit(case: Case, runs: int, name: str = "fit") -> FitAudit:
    """Fit two neighbouring data sets many times; attack all releases at once, and the fitted attributes.

    Examples
    --------
    >>> from sfumato import Bounds, PrivateSIR
    >>> case = Case(PrivateSIR(epsilon=3.0, bounds=Bounds(-1, 1), n_directions=1), n_features=2)
    >>> found = audit_fit(case, runs=100)
    >>> found.whole.passed, found.shown.passed
    (True, True)
    """
    pair = worst_fit_pair(case, seed=1)
    return attack(case, pair, pair, runs, name)


def attack(
    case: Case, pair: tuple[Records, Records], counted: tuple[Records, Records], runs: int, name: str = "fit"
) -> FitAudit:
    """Attack a fit on a pair of neighbours; `counted` are the records of each that its sums are taken over."""
    d, d_prime = pair
    courses = [case.listened(d, SeededNoise(s))[1] for s in range(20)]
    claimed = case.claim(courses[0])

    def observed(records: Records, noise: Noise) -> FloatArray:
        fitted, transcript = case.listened(records, noise)
        return np.append(log_ratio(transcript, *counted), shown(fitted, case.n_features))

    a, b = run_many(observed, d, runs, 0), run_many(observed, d_prime, runs, 1)
    whole = judge(a[:, :1], b[:, :1], claimed, name=f"{name}, all releases")
    attributes = judge(a[:, 1:], b[:, 1:], claimed, name=f"{name}, what is published")
    return FitAudit(whole, attributes, tuple(realised(course, *counted) for course in courses))


_WIDTH = 12
"""Numbers shown of one attribute; the rest is left out, shorter ones are filled up."""


def shown(fitted: Any, n_features: int) -> FloatArray:
    """Every number among the fitted attributes, on a scale that tames heavy tails; signs of directions fixed."""
    public = {name: value for name, value in sorted(vars(fitted).items()) if name.endswith("_") and name[0] != "_"}
    parts = [_numbers(name, value, n_features) for name, value in public.items()]
    return np.arcsinh(np.nan_to_num(np.concatenate(parts)))


def _numbers(name: str, value: Any, p: int) -> FloatArray:
    if isinstance(value, Bounds):
        return np.concatenate([_filled(value.lower), _filled(value.upper)])
    if isinstance(value, Ledger) or value is None:
        return np.empty(0)
    if is_dataclass(value):
        return np.concatenate([_numbers("", getattr(value, f.name), p) for f in fields(value)])
    array = np.asarray(value)
    if array.dtype.kind == "i" and array.ndim == 1:  # which features
        return np.bincount(array, minlength=p)[:p].astype(np.float64)
    if array.dtype.kind not in "fib":
        return np.empty(0)
    return _filled(_signed(array) if "directions" in name or "weights" in name else array)


def _filled(values: Any) -> FloatArray:
    found = np.zeros(_WIDTH)
    flat = np.ravel(np.asarray(values, dtype=np.float64))[:_WIDTH]
    found[: len(flat)] = flat
    return found


def _signed(rows: FloatArray) -> FloatArray:
    """Each row with its largest entry positive: a direction has no sign."""
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return np.asarray(rows * np.where(largest < 0, -1.0, 1.0))


def worst_fit_pair(case: Case, seed: int, tries: int = 200) -> tuple[Records, Records]:
    """Neighbours on which a fit's releases move much: the best of random extreme pairs, judged by one transcript."""
    rng = np.random.default_rng(seed)
    base = ordinary(rng, case)
    transcript = case.listened(base, SeededNoise(seed))[1]
    pairs = [_neighbours(rng, base, case) for _ in range(tries)]
    return max(pairs, key=lambda pair: realised(transcript, *pair))


def ordinary(rng: np.random.Generator, case: Case) -> Records:
    """Records like any others."""
    x = rng.uniform(-0.4, 0.4, (case.n_records, case.n_features))
    y = x[:, 0] + 0.1 * rng.standard_normal(case.n_records)
    wanted = np.array(case.responses)
    # y between the responses an attacker may use, or one of them where only those are possible (classes)
    return Records(x, y if wanted.min() < 0 else wanted[np.searchsorted([-0.1, 0.1], y) % len(wanted)])


def _neighbours(rng: np.random.Generator, base: Records, case: Case) -> tuple[Records, Records]:
    """The base with its last record replaced by two extreme ones; or with and without one."""
    x = rng.standard_normal((2, case.n_features)) * 10.0 ** rng.uniform(-2, 2, (2, 1))
    if rng.random() < 0.5:
        x[1] = rng.choice([-1.0, 1.0]) * x[0] * rng.choice([1.0, 0.3])
    y = rng.choice(case.responses, 2)
    if case.relation == "add-remove":
        return Records(np.vstack([base.x, x[:1]]), np.append(base.y, y[0])), base
    swapped = [Records(np.vstack([base.x[:-1], x[i : i + 1]]), np.append(base.y[:-1], y[i])) for i in (0, 1)]
    return swapped[0], swapped[1]


def list_attacks(epsilon: float, delta: float, relation: Relation) -> Iterator[Attack]:
    """What every member of the family has attacked, with one direction and public bounds unless it says otherwise; and
    what prepares features for it.
    """
    known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": relation, "n_directions": 1, "bounds": BOX}
    for home in (*FAMILY.values(), *added().values()):
        yield from load(home).about.attacks(known)
    for home in PREPARING:
        yield from load(home).attacks(known)


def cases(epsilon: float, delta: float, relation: Relation) -> dict[str, Case]:
    """One fit of every kind that claims a guarantee."""
    return {attack.name: _case(attack) for attack in list_attacks(epsilon, delta, relation) if not attack.replay_only}


def _case(attack: Attack) -> Case:
    fit = _fit_two_tables if attack.two_tables else _usual
    return Case(attack.estimator, attack.n_features, responses=attack.responses or NUMBERS, fit=fit)


def _fit_two_tables(estimator: Any, records: Records, **also: Any) -> Any:
    half = records.x.shape[1] // 2
    return estimator.fit(records.x[:, :half], records.x[:, half:], **also)


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


def audit_person(case: Case, runs: int) -> FitAudit:
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
    d, d_prime = worst_person(with_ids, rows, seed=1)
    return attack(with_ids, (d, d_prime), (d.counted(rows), d_prime.counted(rows)), runs)


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
    pairs = [_neighbouring_panels(rng, base, case, rows) for _ in range(tries)]
    return max(pairs, key=lambda pair: realised(transcript, *(panel.counted(rows) for panel in pair)))


def _neighbouring_panels(rng: np.random.Generator, base: Panel, case: Case, rows: int) -> tuple[Panel, Panel]:
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


def published_fits(epsilon: float, delta: float) -> dict[str, Attacked]:
    """What fits show that have no curator, or several: one person's value changed, everybody else the same."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (12, 2))
    y = x[:, 0] + 0.1 * rng.standard_normal(12)
    low, high = (Records(x, np.append(y[:-1], end)) for end in (-1e9, 1e9))
    ends = [np.vstack([x[:-1], corner]) for corner in ([[1.0, 0.0]], [[0.0, 1.0]])]
    one, other = (Records(table, np.append(y[:-1], end)) for table, end in zip(ends, (-1.0, 1.0), strict=True))
    label = LabelPrivateSIR(epsilon, 1)
    edges = LabelPrivateSIR(epsilon, 1, edges=[0.0], refine=False)
    waves = LabelPrivateSIR(epsilon, 1, edges=[-1.0, 1.0], waves=2)
    regression = LabelPrivateIHT(epsilon, n_active=1)
    local = LocalSIR(epsilon, delta, bounds=BOX, radius=1.0)
    central = PrivateSIR(epsilon, delta, 1, BOX, method="one-shot")
    votes = PrivateSparseSIR(epsilon, delta, 1, BOX)
    mu = gdp_mu(epsilon, delta)
    return {
        "LabelPrivateSIR, edges found": Attacked(_fitted(label), low, high, (epsilon, 0.0)),
        "LabelPrivateSIR, edges given": Attacked(_fitted(edges), low, high, (epsilon, 0.0)),
        "LabelPrivateSIR, in waves": Attacked(_fitted(waves), low, high, (epsilon, 0.0)),
        "LabelPrivateIHT": Attacked(_fitted(regression), low, high, (epsilon, 0.0)),
        "LocalSIR": Attacked(_fitted(local), one, other, mu),
        "federated, two sites": Attacked(_fitted(central, _two_sites), one, other, mu),
        "federated votes, two sites": Attacked(_fitted(votes, _two_sites), *_wide(rng, x, y), (epsilon, delta)),
    }


def _wide(rng: np.random.Generator, x: FloatArray, y: FloatArray) -> tuple[Records, Records]:
    """Six features; the last record, at the upper end of y, has all its signs turned: every score moves by two."""
    wide, ends = np.hstack([x, rng.uniform(-1.0, 1.0, (len(x), 4))]), np.append(y[:-1], 1.0)
    low, high = (Records(np.vstack([wide[:-1], sign * np.ones(6)]), ends) for sign in (-1.0, 1.0))
    return low, high


def _fitted(estimator: Any, fit: Callable[..., Any] = _usual) -> Callable[[Records, Noise], FloatArray]:
    case = Case(estimator, fit=fit)
    return lambda records, noise: shown(case.run(records, noise), records.x.shape[1])


def _two_sites(estimator: Any, records: Records) -> Any:
    """The attacked record is at the second site; the first could not protect it."""
    return simulate(estimator, [(records.x[:6], records.y[:6]), (records.x[6:], records.y[6:])])
