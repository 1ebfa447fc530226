"""What the name of a column suggests, how it is shown, and what public numbers should make one stop.

A range that is read off the data publishes two records; one that is known from the name of a measurement publishes
nothing. The ranges (``data/ranges.csv``) are those of the measurement (of adults and children alike), not of any table.
No cell is ever looked at here.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise, permutations
from typing import Literal

Sort = Literal["quantity", "identifier", "date", "code", "class"]
FEW, LARGE = 100, 10.0
"""Below so few records, or above so large an epsilon, a fit should be confirmed."""

_SORTS: dict[Sort, str] = {
    "date": "date dob datetime timestamp birthdate birthday",
    "code": "zip zipcode postcode postal plz icd ndc cpt fips",
    "identifier": "id ids uuid guid mrn ssn nhs nr key pid email mail phone telephone address surname firstname "
    "lastname fullname forename username patientname",
    "class": "sex gender ward site centre center group arm region country state carrier species",
}
"""Words of a name that tell its sort; the first sort that has one of them."""
_PEOPLE = "patient person subject participant user customer client member donor respondent no number"
_YES_NO = "is has had flag indicator smoker diabetic deceased died readmitted pregnant"
_TEMPERATURES = {"c": (-60.0, 60.0, "°C"), "celsius": (-60.0, 60.0, "°C"), "f": (-80.0, 140.0, "°F")}
_BODY_TEMPERATURE = (25.0, 45.0, "°C")


@dataclass(frozen=True, slots=True)
class Hint:
    """What a name suggests.

    Attributes
    ----------
    sort : {"quantity", "identifier", "date", "code", "class"}
    lower, upper : float or None
        A range in which every sensible value lies, if the name tells one.
    unit : str
        The unit that the range is in.
    """

    sort: Sort = "quantity"
    lower: float | None = None
    upper: float | None = None
    unit: str = ""

    @property
    def note(self) -> str:
        """One sentence where the column is hardly a feature; empty otherwise."""
        return _NOTES.get(self.sort, "")


_NOTES = {
    "identifier": "Looks like an identifier, which explains nothing and points at people.",
    "date": "Looks like a date; an age or a duration says more.",
    "code": "Looks like a code, whose size means nothing: declare categories, or leave it out.",
    "class": "Looks like a class: declare its categories.",
}


def hint_of(name: str) -> Hint:
    """What the name of a column suggests.

    >>> hint_of("age_at_admission")
    Hint(sort='quantity', lower=0.0, upper=120.0, unit='years')
    >>> hint_of("patientID").sort, hint_of("zip_code").sort, hint_of("admission_date").sort
    ('identifier', 'code', 'date')
    >>> hint_of("dose")
    Hint(sort='quantity', lower=None, upper=None, unit='')
    """
    words = _words(name)
    if words and set(words) <= set(_PEOPLE.split()):
        return Hint("identifier")
    if not set(words).isdisjoint(_YES_NO.split()):
        return Hint(lower=0, upper=1, unit="no or yes")
    for sort, telling in _SORTS.items():
        if not set(words).isdisjoint(telling.split()):
            return Hint(sort)
    found = _range(words)
    return Hint() if found is None else Hint("quantity", *found)


def visible(text: object) -> str:
    """Text that came with a table, with everything that does not print spelled out: it may go to a terminal or a page.

    >>> visible("age\\x1b[31m\\u202e")
    'age\\\\x1b[31m\\\\u202e'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def cautions(epsilon: float, delta: float, n_records: int | None) -> tuple[str, ...]:
    """What should be confirmed before a fit, from public numbers alone; nothing where all is usual.

    `n_records` is None where the number of records is private: then nothing is said of it.

    >>> cautions(1.0, 1e-6, 5_000)
    ()
    >>> for sentence in cautions(20.0, 0.02, 80):
    ...     print(sentence)
    epsilon = 20 is more than 10: it promises a person very little; around 1 is usual.
    delta = 0.02 is not below 1 / records: it allows a mechanism that publishes some records whole; take 1e-06 or less.
    There are fewer than 100 records: whatever is found will be mostly noise.
    """
    few = n_records is not None and n_records < FEW
    noisy = (f"There are fewer than {FEW} records: whatever is found will be mostly noise.",) if few else ()
    return (*unusual_budget(epsilon, delta, n_records), *noisy)


def unusual_budget(epsilon: float, delta: float, n_records: int | None) -> tuple[str, ...]:
    """Why a budget hardly protects anybody, from public numbers alone.

    >>> unusual_budget(1.0, 1e-6, 5_000), len(unusual_budget(20.0, 0.02, 80)), unusual_budget(1.0, 0.02, None)
    ((), 2, ())
    """
    found = []
    if epsilon > LARGE:
        found.append(
            f"epsilon = {epsilon:g} is more than {LARGE:g}: it promises a person very little; around 1 is usual."
        )
    if n_records is not None and delta * n_records >= 1.0:
        found.append(
            f"delta = {delta:g} is not below 1 / records: it allows a mechanism that publishes some records whole; "
            "take 1e-06 or less."
        )
    return tuple(found)


def _words(name: str) -> list[str]:
    """The words of a name, in lower case.

    >>> _words("heartRate_max"), _words("PatientID"), _words("SpO2 (%)")
    (['heart', 'rate', 'max'], ['patient', 'id'], ['spo2', '%'])
    """
    for chemical in ("SpO2", "HbA1c", "pH"):
        name = re.sub(rf"(?<![A-Za-z]){chemical}(?![A-Za-z])", chemical.lower(), name)
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*[a-z]*|[A-Z]+\d*|%|\d+", name)
    return [part.lower() for part in parts]


@cache
def _ranges() -> dict[tuple[str, str], tuple[float, float, str]]:
    """Sensible values and their unit, by the measurement and, where its name has one, another unit."""
    text = resources.files("sfumato").joinpath("data", "ranges.csv").read_text(encoding="utf-8")
    return {
        (row["measurement"], row["unit_in_name"]): (float(row["lower"]), float(row["upper"]), row["unit"])
        for row in csv.DictReader(text.splitlines())
    }


def _range(words: list[str]) -> tuple[float, float, str] | None:
    joined, ranges = "".join(words), _ranges()
    if "temperature" in words or "temp" in words:
        if "body" in words:
            return _BODY_TEMPERATURE
        return next((_TEMPERATURES[word] for word in words if word in _TEMPERATURES), None)
    alone = ((known, "") for known in (joined, *(a + b for a, b in pairwise(words)), *words))
    for known in (*permutations(words, 2), *alone):
        if known in ranges:
            return ranges[known]
    return ranges["percent", ""] if "%" in words else None
