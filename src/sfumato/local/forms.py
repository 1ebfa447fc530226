"""Forms and answers as text, for the files that pass between devices and analyst."""

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.local.answers import Answers, Randomiser
from sfumato.local.randomisers import NumberRandomiser, SliceRandomiser, ThresholdRandomiser
from sfumato.local.waves import Survey
from sfumato.typing import is_whole

VERSION = 1
_BROKEN = "form: this file does not hold answers of `sfumato local randomize`; randomise the labels first."


def to_text(answers: Answers, response: str) -> str:
    """Everything public about the answers: the form, the response's name, whether it was a rehearsal."""
    header = {"version": VERSION, "response": response, "rehearsal": answers.rehearsal, "form": answers.form.form()}
    return json.dumps(header)


def from_text(text: str | bytes | None) -> tuple[Randomiser, str, bool]:
    """Form, name of the response and rehearsal flag; whatever is wrong is refused in a sentence.

    >>> form = SliceRandomiser(1.0, edges=[0.0])
    >>> from_text(to_text(form.randomize([2.0]), "income"))[1:]
    ('income', False)
    """
    try:
        header = json.loads(text or "")
        response, rehearsal, form = header["response"], header["rehearsal"], header["form"]
        known = header["version"] == VERSION and isinstance(response, str) and isinstance(rehearsal, bool)
    except (ValueError, TypeError, KeyError):
        raise InputError(_BROKEN) from None
    if not known or not isinstance(form, dict):
        raise InputError(_BROKEN)
    return _form(form), response, rehearsal


def answers_from(values: Any, form: Randomiser, rehearsal: bool) -> Answers:
    """Answers as they came, checked against the form: nothing a device could not have sent is accepted."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("answers: some are missing; randomise the labels again.")
    if isinstance(form, SliceRandomiser | ThresholdRandomiser):
        codes, last = numbers.astype(np.int64), form.n_slices - 1 if isinstance(form, SliceRandomiser) else 1
        if (codes != numbers).any() or codes.min(initial=0) < 0 or codes.max(initial=0) > last:
            raise InputError(f"answers: slices must be numbered 0 to {last}; randomise the labels again.")
        return Answers(codes, form, rehearsal)
    return Answers(numbers, form, rehearsal)


_NO_SHEET = "answers: this file does not hold questions of `sfumato local ask` or answers to them; ask first."


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything public about a file of one wave: the survey, which wave, and what its columns are.

    Attributes
    ----------
    survey : Survey
    wave : int
        From 0.
    response, person, threshold : str
        Columns: the private number, or the answer in its place; the id; what is asked.
    n_people : int
        People in all waves.
    numbered : bool
        Whether ids are the numbers of rows, as the table of people has no column of ids.
    answered, rehearsal : bool
        Whether these are answers, and of seeded noise.
    """

    survey: Survey
    wave: int
    response: str
    person: str
    threshold: str
    n_people: int
    numbered: bool
    answered: bool = False
    rehearsal: bool = False

    def to_text(self) -> str:
        """For the header of the file."""
        return json.dumps({"version": VERSION, "sheet": asdict(self)})

    @classmethod
    def from_text(cls, text: str | bytes | None) -> "Sheet":
        """The sheet; whatever is wrong is refused in a sentence.

        >>> sheet = Sheet(Survey.plan(1.0, 50, 2, "k"), 0, "income", "id", "threshold", 50, False)
        >>> Sheet.from_text(sheet.to_text()) == sheet
        True
        """
        try:
            header = json.loads(text or "")
            fields = dict(header["sheet"])
            planned = dict(fields.pop("survey"))
            edges = planned.pop("edges")
            survey = Survey(**planned | {"shares": tuple(planned["shares"]), "edges": edges and tuple(edges)})
            sheet = cls(survey, **fields)
        except (ValueError, TypeError, KeyError):
            raise InputError(_NO_SHEET) from None
        if header.get("version") != VERSION or not sheet._is_sound():
            raise InputError(_NO_SHEET)
        return sheet

    def _is_sound(self) -> bool:
        flags = (self.numbered, self.answered, self.rehearsal)
        names = (self.response, self.person, self.threshold, self.survey.key)
        whole = is_whole(self.wave, 0) and is_whole(self.n_people, 1) and self.survey.is_sound()
        return (
            whole
            and self.wave < self.survey.n_waves
            and all(isinstance(flag, bool) for flag in flags)
            and all(isinstance(name, str) for name in names)
        )


def _form(fields: dict[str, Any]) -> Randomiser:
    try:
        match fields.get("kind"):
            case "slices":
                # forms that do not say so are older: anything that was not declared had an answer of its own
                others = fields.get("others", True) is not False
                return SliceRandomiser(fields["epsilon"], fields["edges"], fields["classes"], others=others)
            case "numbers":
                names = ("lower", "upper", "epsilon", "delta", "mechanism")
                return NumberRandomiser(*(fields[name] for name in names))
    except KeyError:
        pass
    raise InputError(_BROKEN)
