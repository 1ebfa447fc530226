"""What the name of a column suggests, how it is shown, and what public numbers should make one stop.

A range that is read off the data publishes two records; one that is known from the name of a measurement publishes
nothing. The ranges below are those of the measurement (of adults and children alike), not of any table. No cell is ever
looked at here.
"""

import re
from dataclasses import dataclass
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
_RANGES: dict[str, tuple[float, float, str]] = {
    "age": (0, 120, "years"),
    "height": (20, 250, "cm"),
    "weight": (0, 400, "kg"),
    "bmi": (5, 100, "kg/m²"),
    "pulse": (0, 300, "per minute"),
    "heartrate": (0, 300, "per minute"),
    "respiratoryrate": (0, 100, "per minute"),
    "systolic": (0, 350, "mmHg"),
    "sbp": (0, 350, "mmHg"),
    "diastolic": (0, 250, "mmHg"),
    "dbp": (0, 250, "mmHg"),
    "spo2": (0, 100, "%"),
    "saturation": (0, 100, "%"),
    "hba1c": (2, 25, "%"),
    "ph": (0, 14, ""),
    "gcs": (3, 15, "points"),
    "apgar": (0, 10, "points"),
    "month": (1, 12, ""),
    "dayofyear": (1, 366, ""),
    "dayofweek": (0, 7, ""),
    "day": (1, 31, "of the month"),
    "weekday": (0, 7, ""),
    "hour": (0, 24, "h"),
    "minute": (0, 60, "min"),
    "year": (1900, 2100, ""),
    "percent": (0, 100, "%"),
    "percentage": (0, 100, "%"),
    "pct": (0, 100, "%"),
    "proportion": (0, 1, ""),
    "probability": (0, 1, ""),
    "latitude": (-90, 90, "degrees"),
    "lat": (-90, 90, "degrees"),
    "longitude": (-180, 180, "degrees"),
    "lon": (-180, 180, "degrees"),
    "los": (0, 365, "days"),
}
_OTHER_UNITS: dict[tuple[str, str], tuple[float, float, str]] = {
    ("age", "months"): (0, 1440, "months"),
    ("age", "days"): (0, 43_800, "days"),
    ("height", "m"): (0.2, 2.5, "m"),
    ("height", "mm"): (200, 2500, "mm"),
    ("height", "in"): (8, 100, "in"),
    ("height", "inches"): (8, 100, "in"),
    ("weight", "g"): (0, 400_000, "g"),
    ("weight", "lb"): (0, 900, "lb"),
    ("weight", "lbs"): (0, 900, "lb"),
    ("los", "hours"): (0, 8760, "hours"),
}
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

    Examples
    --------
    >>> hint_of("age_at_admission")
    Hint(sort='quantity', lower=0, upper=120, unit='years')
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

    Examples
    --------
    >>> cautions(1.0, 1e-6, 5_000)
    ()
    >>> for sentence in cautions(20.0, 0.02, 80):
    ...     print(sentence)
    epsilon = 20 is more than 10: it promises a person very little; around 1 is usual.
    delta = 0.02 is not below 1 / records: it allows a mechanism that publishes some records whole; take 1e-06 or less.
    There are fewer than 100 records: whatever is found will be mostly noise.
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
    if n_records is not None and n_records < FEW:
        found.append(f"There are fewer than {FEW} records: whatever is found will be mostly noise.")
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


def _range(words: list[str]) -> tuple[float, float, str] | None:
    joined = "".join(words)
    if "temperature" in words or "temp" in words:
        if "body" in words:
            return _BODY_TEMPERATURE
        return next((_TEMPERATURES[word] for word in words if word in _TEMPERATURES), None)
    for pair in permutations(words, 2):
        if pair in _OTHER_UNITS:
            return _OTHER_UNITS[pair]
    for known in (joined, *(a + b for a, b in pairwise(words)), *words):
        if known in _RANGES:
            return _RANGES[known]
    return _RANGES["percent"] if "%" in words else None
