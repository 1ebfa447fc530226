"""Answers: randomised labels, the only thing that passes from the devices to the analyst."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.errors import InputError
from sfumato.privacy.accounting import total_epsilon
from sfumato.privacy.events import Event
from sfumato.privacy.ledger.memory import SEEDED, Entry
from sfumato.privacy.noise import Noise
from sfumato.privacy.unit import RECORD, Unit
from sfumato.records import is_finite
from sfumato.typing import FloatArray, IntArray

MISSING = "y has missing or infinite values (NaN or inf); a device must not answer without a value."
LABEL_ONLY = "the features x are public and not protected"


class Randomiser(ABC):
    """A public form: the question, the mechanism and its epsilon. It holds no answer and no randomness.

    Whoever runs ``randomize`` on their own value has the stated guarantee whatever everybody else does: it holds
    against the analyst, the network and all other people together (local differential privacy, replace-one for the
    one value).
    """

    __slots__: tuple[str, ...] = ()
    kind: ClassVar[str]

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one answer costs the person who gives it."""

    @property
    @abstractmethod
    def noise_std(self) -> float:
        """Standard deviation that the mechanism adds to an answer, in the units of the estimate made from it."""

    @property
    def delta(self) -> float:
        """Delta of the guarantee; 0, as it is pure unless a form says otherwise."""
        return 0.0

    @property
    @abstractmethod
    def question(self) -> str:
        """What is asked, in words."""

    def form(self) -> dict[str, Any]:
        """The form as plain values, for a file."""
        values = ((name, getattr(self, name)) for name in self.__slots__)
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values}
        return {"kind": self.kind} | plain

    @abstractmethod
    def randomize(self, y: Any, noise: Noise | None = None) -> "Answers":
        """The randomised answers to values `y`, each drawn on its own. The values themselves go nowhere else."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What the devices sent: one randomised value each, and the form they filled in.

    An estimator that is given these instead of y has nothing left to protect: it never sees a true label.
    """

    values: FloatArray | IntArray
    form: Randomiser
    rehearsal: bool = False

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class LocalLedger:
    """What each person has paid, on their own device. Not a curator's account: there is no curator.

    Attributes
    ----------
    entries : tuple of Entry
        One per kind of answer. A person gives exactly one of them a row, so a row costs the largest, not the sum.
    delta : float
        Delta of the guarantee; 0 if it is pure.
    protects : str
        What is protected, and what is not.
    rehearsal : bool
        True if the noise was seeded.
    unit : Unit
        How many rows a person answers for at most, each with noise of its own.

    Notes
    -----
    All answers of a person together are private by composition: epsilons of pure answers add up, and so do the squared
    mus of Gaussian ones. Two neighbours differ in the values of one person; how many answers each person sends is seen
    by everybody, and not protected.
    """

    entries: tuple[Entry, ...]
    delta: float
    protects: str
    rehearsal: bool = False
    unit: Unit = RECORD

    def total(self, delta: float | None = None) -> float:
        """Epsilon that any one person has spent."""
        return float("inf") if self.rehearsal else self.spent(delta)

    def spent(self, delta: float | None = None) -> float:
        """Like `total`, but what the same answers cost with unseeded noise."""
        chosen = self.delta if delta is None else delta
        return max(total_epsilon((entry.event,) * self.unit.factor, chosen) for entry in self.entries)

    @property
    def cost(self) -> str:
        """What any one person has spent (with unseeded noise), in words."""
        return f"epsilon = {self.spent():.10g}" + (f", delta = {self.delta:.3g}" if self.delta else " (pure)")

    @property
    def answers(self) -> str:
        """How many answers of a person the guarantee is for, in words."""
        rows = self.unit.rows
        if rows is None:
            return ""
        whole = "one answer" if rows == 1 else f"up to {rows} answers together"
        return f", for {whole} of each person{' (declared, not checked)' if self.unit.declared else ''}"

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence, or why there is none."""
        if self.rehearsal:
            return SEEDED
        before = "Every answer was randomised on its owner's device before it left"
        return f"{before}: {self.cost}{self.answers}, for {self.protects}."


def entry_of(form: Randomiser, purpose: str) -> Entry:
    """The ledger's line for one kind of answer."""
    return Entry(purpose, form.question, form.event, 1.0, form.noise_std, 1.0, "replace")


def one_value_each(y: Any) -> FloatArray:
    """Finite numbers, one per person; a single number is a single person."""
    if getattr(y, "dtype", None) is not None and np.asarray(y).dtype.kind == "c":
        raise InputError("y must be real; give real and imaginary parts apart.")
    try:
        with np.errstate(all="ignore"):  # a number wider than a float64, too
            values = np.atleast_1d(np.asarray(y, dtype=np.float64))
    except OverflowError:
        raise InputError(MISSING) from None
    except (TypeError, ValueError):
        raise InputError("y must hold numbers; declare classes for a response of names.") from None
    if values.ndim != 1:
        raise InputError("y must be one number per person; give a single number or a 1-d array.")
    if not is_finite(values):
        raise InputError(MISSING)
    return values
