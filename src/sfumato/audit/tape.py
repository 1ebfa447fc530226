"""Replay: fit a neighbour with every release forced to be the same. Then nothing at all may differ.

Differential privacy of a whole fit follows from three facts: each question depends on earlier *releases* alone, each
exact answer moves by no more than its stated sensitivity, and what is published depends on releases alone. A replay
tests all three, with certainty rather than confidence, on one pair of data sets: it fits D and tapes every release,
then fits a neighbour D' and plays the tape to it. The questions must be the same bit for bit, the exact sums within
the sensitivity, and every attribute, warning, error and message of progress the same to the bit.

One run says more than a thousand runs of a black-box audit, as no noise hides a difference. What it cannot see is
the noise itself: whether that has the law it should is for `sfumato.audit.audit`.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato import progress
from sfumato.errors import SfumatoError
from sfumato.privacy.door import Asked, Behind, Door, Watch, Watched, watching
from sfumato.privacy.events import Gaussian, Laplace, Selection
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

Data = TypeVar("Data")
SLACK = 1e-9
"""Rounding of the lengths computed here; the sums themselves are exact integers."""


class Forge:
    """What is told in the place of honest releases; this one tells them as they are.

    Noise has no bound, so a fit must keep its promise whatever it is told. `name` is for the reader.
    """

    name = "honest"

    def release(self, honest: Release) -> FloatArray:
        """The value to tell; the noise stated stays."""
        return honest.value

    def picks(self, honest: IntArray, n_scores: int) -> IntArray:
        """The picks to tell."""
        return honest

    def answers(self, honest: NDArray[Any]) -> NDArray[Any]:
        """The answers of devices to tell: slices or numbers, a row for each person."""
        return honest


@dataclass(frozen=True, slots=True)
class Step:
    """One question as it reached the records, the exact answer to it, and what was told instead.

    `told` is a `Release`, the picks of a selection or the answers of devices; `noise` is what the release stated.
    """

    label: str
    question: bytes
    exact: IntArray
    told: Any
    noise: bytes = b""


@dataclass(slots=True)
class Tape:
    """Everything that a fit asked and was told, in order."""

    forge: Forge = field(default_factory=Forge)
    steps: list[Step] = field(default_factory=list)

    def watch(self, door: Door, behind: Behind) -> Door:
        return _Recorder(door, behind, self)

    def devices(self, asked: Asked, answers: NDArray[Any]) -> NDArray[Any]:
        told = self.forge.answers(answers)
        self.steps.append(Step("devices", fingerprint(asked.question), asked.exact, told))
        return told


@dataclass(frozen=True, slots=True, eq=False)
class _Recorder(Watched):
    tape: Tape

    def answer(self, query: BoundedSum, name: str) -> Release:
        honest = self.door.answer(query, name)
        told = Release(self.tape.forge.release(honest), honest.noise_std)
        self._keep(query, name, told, fingerprint(honest.noise_std))
        return told

    def select(self, query: BoundedSum, name: str) -> IntArray:
        honest = self.door.select(query, name)
        told = self.tape.forge.picks(honest, len(_scores(query, np.zeros(query.shape, dtype=np.int64))))
        self._keep(query, name, told, b"")
        return told

    def _keep(self, query: BoundedSum, name: str, told: Any, noise: bytes) -> None:
        asked = self.behind.bounded(query)
        exact = _exact(self.behind, asked)
        self.tape.steps.append(Step(_label(self.behind, name), fingerprint(asked), exact, told, noise))


class DivergedError(Exception):
    """The neighbour's fit took another course; it is stopped, as the tape has no release for it."""


@dataclass(slots=True)
class Playback:
    """Plays a tape to the fit of a neighbour and writes down every difference.

    `moved` is how far the exact answers to each line moved over how far they may: never above one. Of a line that is
    asked in disjoint parts, or of several sites, all answers together may move no further (squares of lengths add up
    for Gaussian noise). Of the answers of devices, no more may move than one person gives: `rows`.
    """

    tape: Tape
    rows: int = 1
    findings: list[str] = field(default_factory=list)
    moved: dict[str, float] = field(default_factory=dict)
    answers: set[tuple[int, int]] = field(default_factory=set)
    place: int = 0

    def watch(self, door: Door, behind: Behind) -> Door:
        return _Player(door, behind, self)

    def next(self, label: str, question: bytes, noise: bytes) -> Step:
        """The step of the tape for this question, if it is the same."""
        if self.place >= len(self.tape.steps):
            self.stop(f"{label}: asked although the tape ends there")
        step = self.tape.steps[self.place]
        self.place += 1
        if step.label != label:
            self.stop(f"{step.label}: {label} was asked in its place")
        if step.question != question:
            self.stop(f"{label}: the question differs")
        if step.noise != noise:
            self.findings.append(f"{label}: the noise differs")
        return step

    def stop(self, why: str) -> None:
        self.findings.append(why)
        raise DivergedError(why)

    def devices(self, asked: Asked, answers: NDArray[Any]) -> NDArray[Any]:
        step = self.next("devices", fingerprint(asked.question), b"")
        if step.exact.shape != asked.exact.shape:
            self.stop("devices: another number of answers was asked for")
        moved = ((asked.exact - step.exact) * asked.weights).reshape(len(step.exact), -1)
        for row in np.flatnonzero(moved.any(axis=1)).tolist():
            self.answers.add((self.place, row))
            self.moved["devices"] = max(self.moved.get("devices", 0.0), float(np.linalg.norm(moved[row])) / asked.reach)
        return np.asarray(step.told)

    def judged(self) -> list[str]:
        """All findings, with the lines that moved too far."""
        far = [
            f"{line}: the sum moved {ratio:.3f} times as far as stated"
            for line, ratio in self.moved.items()
            if ratio > 1.0 + SLACK
        ]
        others = ["devices: more answers moved than one person gives"] if len(self.answers) > self.rows else []
        unasked = self.tape.steps[self.place :]
        missing = [f"{unasked[0].label}: was not asked any more"] if unasked and not self.findings else []
        return [*self.findings, *far, *others, *missing]


@dataclass(frozen=True, slots=True, eq=False)
class _Player(Watched):
    playback: Playback

    def answer(self, query: BoundedSum, name: str) -> Release:
        honest = self.door.answer(query, name)  # the real door is used up as on D: plan, ledger, sum, noise
        query = self.behind.bounded(query)
        step = self._next(query, name, fingerprint(honest.noise_std))
        difference = np.asarray(_exact(self.behind, query) - step.exact, dtype=np.float64)
        moved, event = self.playback.moved, self.behind.plan.line(name).event
        match event:
            case Gaussian():
                ratio = float(np.linalg.norm(difference * query.weights)) / query.sensitivity(self.behind.relation)
                moved[name] = float(np.hypot(moved.get(name, 0.0), ratio))
            case Laplace():
                ratio = float(np.abs(difference).sum()) / query.l1_sensitivity(self.behind.relation)
                moved[name] = moved.get(name, 0.0) + ratio
        told: Release = step.told
        return told

    def select(self, query: BoundedSum, name: str) -> IntArray:
        self.door.select(query, name)
        query = self.behind.bounded(query)
        step = self._next(query, name, b"")
        assert isinstance(self.behind.plan.line(name).event, Selection)
        exact = _exact(self.behind, query)
        difference = _scores(query, exact) - _scores(query, step.exact)
        ratio = float(np.ptp(difference)) / query.spread(self.behind.relation)
        self.playback.moved[name] = self.playback.moved.get(name, 0.0) + ratio
        return np.asarray(step.told)

    def _next(self, query: BoundedSum, name: str, noise: bytes) -> Step:
        return self.playback.next(_label(self.behind, name), fingerprint(query), noise)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay found: nothing, if the fit keeps its promise on this pair.

    Attributes
    ----------
    findings : tuple of str
        Every difference, in a few words each.
    questions : int
        Questions that were asked on D.
    moved : float
        How far the exact sums moved at most, over what their sensitivity allows: one if the bound is attained.
    raised : str
        The error that both fits ended with, if they did.
    refused : bool
        One of the two was refused before anything was asked or spent: values outside the declared domain, of which
        nothing is promised but that.
    """

    findings: tuple[str, ...]
    questions: int
    moved: float
    raised: str = ""
    refused: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


Around = Callable[[Watch], Watch]


def replay(
    fit: Callable[[Data], Any], d: Data, d_prime: Data, forge: Forge | None = None, rows_per_person: int = 1
) -> Replayed:
    """Fit D, then its neighbour D' with the releases of D, and say what differs.

    Parameters
    ----------
    fit : callable
        ``fit(data)`` returns a fitted estimator. Its noise must be seeded where devices are drawn (``random_state``).
    d, d_prime : object
        Neighbouring data sets, as `fit` takes them: they differ in one record, or in all rows of one person if that is
        what `fit` promises to protect.
    forge : Forge, optional
        Other releases than the honest ones to tell both fits.
    rows_per_person : int
        How many answers of devices are one person's at most. Sums have the bounds of a person's rows with them.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import Bounds, PrivatePCA
    >>> x = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    >>> other = np.vstack([x[:-1], [[1.7e308, -1.7e308, 0.0]]])
    >>> pca = PrivatePCA(n_directions=1, bounds=Bounds(-1, 1), method="refined", random_state=0)
    >>> found = replay(pca.fit, x, other)
    >>> found.passed, found.questions
    (True, 3)
    """
    return record(fit, d, forge, rows_per_person).play(d_prime)


def record(
    fit: Callable[[Data], Any],
    d: Data,
    forge: Forge | None = None,
    rows_per_person: int = 1,
    around: Around = lambda watch: watch,
) -> "Recording[Data]":
    """The first half of a replay: fit D and keep everything, to be played to any number of neighbours.

    `around` puts a door before those of the replay, to test the replay itself.
    """
    tape = Tape() if forge is None else Tape(forge)
    course = _course(fit, d, around(tape.watch), tape.devices)
    if not tape.steps and course.failure is not None and not course.refused:
        raise course.failure  # it was never asked anything: a mistake in the call, which proves nothing
    return Recording(fit, tape, course, rows_per_person, around)


@dataclass(frozen=True, slots=True)
class Recording(Generic[Data]):
    """A fit on D, and all that it asked, was told and showed."""

    fit: Callable[[Data], Any]
    tape: Tape
    course: "Course"
    rows_per_person: int
    around: Around

    def play(self, d_prime: Data) -> Replayed:
        """Fit a neighbour of D with the same releases, and say what differs."""
        before, asked, playback = self.course, len(self.tape.steps), Playback(self.tape, self.rows_per_person)
        after = _course(self.fit, d_prime, self.around(playback.watch), playback.devices)
        if (before.refused and asked == 0) or (after.refused and playback.place == 0):
            return Replayed((), asked, 0.0, before.error or after.error, refused=True)
        findings = playback.judged()
        if playback.place == asked and not playback.findings:  # else the rest differs for a reason that was said
            findings += before.differences(after)
        return Replayed(tuple(findings), asked, max(playback.moved.values(), default=0.0), before.error)


@dataclass(slots=True)
class Course:
    """All that the world sees of a fit: attributes, warnings, the error it ended with, progress."""

    attributes: dict[str, bytes] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: str = ""
    failure: Exception | None = None
    announced: list[str] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """Whether it ended with one of our own sentences."""
        return isinstance(self.failure, SfumatoError)

    def planned(self, purposes: Sequence[str]) -> None:
        self.announced += purposes

    def started(self, purpose: str) -> None:
        self.announced.append(purpose)

    def advanced(self, fraction: float) -> None:
        """How fast records are read is no part of it."""

    def differences(self, other: "Course") -> list[str]:
        """What differs, each in a few words."""
        names = sorted({*self.attributes, *other.attributes})
        found = [
            f"attribute {name} differs" for name in names if self.attributes.get(name) != other.attributes.get(name)
        ]
        for what in ("warnings", "error", "announced"):
            if getattr(self, what) != getattr(other, what):
                found.append(f"{what} differ{'s' if what == 'error' else ''}")
        return found


def _course(fit: Callable[[Data], Any], data: Data, doors: Watch, devices: Callable[..., Any]) -> Course:
    course, fitted = Course(), None
    with warnings.catch_warnings(record=True) as heard, watching(doors, devices), progress.listening(course):
        warnings.simplefilter("always")
        try:
            fitted = fit(data)
        except DivergedError:
            pass
        except Exception as error:  # whatever it is: it must be the same on the neighbour
            course.error, course.failure = f"{type(error).__name__}: {error}", error
    course.warnings = [f"{each.category.__name__}: {each.message}" for each in heard]
    if fitted is not None:
        course.attributes = {name: fingerprint(value) for name, value in vars(fitted).items()}
    return course


def _exact(behind: Behind, query: BoundedSum) -> IntArray:
    """The exact sum; what adding it up once more warns of is not the fit's."""
    with warnings.catch_warnings(action="ignore"):
        return behind.setting.sum(query)


def _scores(query: BoundedSum, total: IntArray) -> FloatArray:
    with warnings.catch_warnings(action="ignore"):
        return np.asarray(query.scores(total), dtype=np.float64)


def _label(behind: Behind, name: str) -> str:
    return f"{behind.site}: {name}" if behind.site else name


def fingerprint(value: Any) -> bytes:
    """All bits of a question or of a fitted attribute: numbers, arrays, tables of them, dataclasses, ledgers.

    A kind of value that is not known here is refused, so that no attribute passes unseen.

    >>> fingerprint(0.0) == fingerprint(-0.0), fingerprint(np.nan) == fingerprint(np.nan)
    (False, True)
    >>> fingerprint([1, 2]) == fingerprint(np.array([1, 2]))
    False
    """
    kind, parts = _parts(value)
    name = f"{kind.__module__}.{kind.__qualname__}".encode()
    return b"".join(len(part).to_bytes(8, "big") + part for part in (name, *parts))


def _parts(value: Any) -> tuple[type, list[bytes]]:
    kind = type(value)
    if kind is np.ndarray and value.dtype.kind != "O":  # the most frequent by far
        return kind, [value.dtype.str.encode(), repr(value.shape).encode(), value.tobytes()]
    match value:
        case None | bool() | int() | str() | bytes() | range():
            return kind, [repr(value).encode("utf-8", "surrogatepass")]
        case float():
            return kind, [np.float64(value).tobytes()]
        case np.ndarray() if value.dtype.kind == "O":
            return kind, [repr(value.shape).encode(), *map(fingerprint, value.ravel().tolist())]
        case np.ndarray() | np.generic():
            return kind, [value.dtype.str.encode(), repr(np.shape(value)).encode(), value.tobytes()]
        case list() | tuple():
            return kind, [fingerprint(item) for item in value]
        case set() | frozenset():
            return kind, sorted(fingerprint(item) for item in value)
        case Mapping():
            return kind, [fingerprint(item) for pair in value.items() for item in pair]
        case Ledger():
            entries = [replace(entry, at="") for entry in value.entries]  # all but the time of day
            return kind, [fingerprint((value.budget, value.relation, value.rehearsal, entries))]
        case type():
            return kind, [value.__qualname__.encode()]
    if is_dataclass(value):
        return kind, [fingerprint(getattr(value, each.name)) for each in fields(value)]
    raise TypeError(f"an attribute of type {kind.__qualname__} has no fingerprint yet; say here what its bits are.")
