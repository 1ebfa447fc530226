"""Forms and answers as text, for the one file that passes from devices to analyst."""

import json
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.local.answers import Answers, Randomiser
from sfumato.local.numbers import NumberRandomiser
from sfumato.local.slices import SliceRandomiser

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
    if isinstance(form, SliceRandomiser):
        codes = numbers.astype(np.int64)
        if (codes != numbers).any() or codes.min(initial=0) < 0 or codes.max(initial=0) >= form.n_slices:
            raise InputError(f"answers: slices must be numbered 0 to {form.n_slices - 1}; randomise the labels again.")
        return Answers(codes, form, rehearsal)
    return Answers(numbers, form, rehearsal)


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
