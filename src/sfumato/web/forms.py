"""Forms: what an analyst fills in, read into a declaration; every mistake is one sentence beside its field."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from sfumato.errors import InputError
from sfumato.hints import Hint, hint_of
from sfumato.sources.table import Kind, Table
from sfumato.study import find_member
from sfumato.web.declaration import Declaration

Fields = dict[str, str]
"""What is in a form: names of fields and their text. A box that is not ticked is not there."""
T = TypeVar("T")
P = ParamSpec("P")

MOST_ROWS = 200
"""Tables with more columns than this are declared by patterns, not column by column."""
ROLES = {
    "feature": "feature",
    "response": "response, to be explained",
    "second": "second set (cca), or one of several responses",
    "person": "says whose row it is",
    "out": "leave out",
}
METHODS = {
    "sir": "directions that explain the response (SIR)",
    "sparse-sir": "the same, of very many columns (sparse SIR)",
    "multi-sir": "directions that explain several responses together (projective resampling)",
    "censored-sir": "directions that explain a time that may be cut short; second set: time, then status",
    "save": "even, curved relations (SAVE)",
    "dr": "even and odd relations (directional regression)",
    "phd": "curved relations, by second derivatives (principal Hessian directions)",
    "lda": "directions that separate classes (LDA)",
    "pca": "principal components (PCA)",
    "sparse-pca": "principal components of few columns (sparse PCA)",
    "cca": "two sets of columns that go together (CCA)",
}
KINDS: dict[Kind, str] = {"number": "numbers", "truth": "true or false", "text": "text", "other": "other"}


@dataclass(frozen=True)
class Column:
    """What is public of a column: its name and type, and what the name suggests."""

    name: str
    kind: Kind
    hint: Hint

    @property
    def type(self) -> str:
        """The type, in words."""
        return KINDS[self.kind]

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers, so that bounds make sense."""
        return self.kind in ("number", "truth")


@dataclass(frozen=True)
class Terms:
    """What the account has settled for every fit: the relation, and whom it protects."""

    relation: str
    protects: str


class FormError(InputError):
    """What must be mended in a form: for each field one sentence."""

    def __init__(self, found: Sequence[tuple[str, str]]) -> None:
        super().__init__(found[0][1])
        self.found = tuple(found)


def columns_of(table: Table) -> tuple[Column, ...]:
    """The columns of a table: names and types, never a cell."""
    return tuple(Column(name, table.kind(name), hint_of(name)) for name in table.names)


def first_fields(columns: Sequence[Column]) -> Fields:
    """The form before anything was filled in: what types and names suggest."""
    fields: Fields = {"estimator": "sir"}
    for i, column in enumerate(columns):
        odd = column.hint.sort in ("identifier", "date", "code")
        fields[f"role-{i}"] = "feature" if column.is_number and not odd else "out"
        if column.kind == "number" and column.hint.lower is not None and column.hint.upper is not None:
            fields[f"lower-{i}"], fields[f"upper-{i}"] = f"{column.hint.lower:g}", f"{column.hint.upper:g}"
    return fields


def fields_of(said: Declaration, columns: Sequence[Column]) -> Fields:
    """The form as it must have been filled in for a declaration."""
    fields: Fields = {"estimator": said.estimator, "features": "\n".join(said.features)}
    fields |= {"response": said.response or "", "person": said.person or ""}
    fields["response-kind"] = said.response_kind or ""
    fields["classes"] = " | ".join(said.classes)
    fields["rows-per-person"] = "" if said.rows_per_person is None else str(said.rows_per_person)
    fields |= {"drop-missing": "on"} if said.drop_missing else {}
    fields |= {"search": "on"} if said.search else {}
    roles = dict.fromkeys(said.features, "feature") | dict.fromkeys(said.second, "second")
    for name, role in ((said.response, "response"), (said.person, "person")):
        roles |= {} if name is None else {name: role}
    for i, column in enumerate(columns):
        fields[f"role-{i}"] = roles.get(column.name, "out")
        for end, value in zip(("lower", "upper"), said.bounds.get(column.name, ()), strict=False):
            fields[f"{end}-{i}"] = f"{value:.12g}"
        if column.name in said.categorical:
            fields[f"categories-{i}"] = " | ".join(said.categorical[column.name])
        if column.name == said.response:
            fields[f"categories-{i}"] = " | ".join(said.classes)
    return fields


def read_declaration(table: str, columns: Sequence[Column], fields: Mapping[str, str], terms: Terms) -> Declaration:
    """What the form declares; `FormError` names every field that must be mended."""
    reader = _Reader(fields)
    chosen = reader.by_column(columns) if len(columns) <= MOST_ROWS else reader.by_pattern(columns)
    estimator = reader.one_of("estimator", METHODS, "method")
    declared = replace(
        chosen,
        table=table,
        estimator=estimator,
        response_kind=reader.one_of("response-kind", ("", "numeric", "categorical"), "kind of the response") or None,
        drop_missing="drop-missing" in fields,
        search="search" in fields,
        relation=terms.relation,
        rows_per_person=reader.rows(terms, chosen.person),
    )
    reader.check_method(declared)
    reader.check_terms(declared, terms)
    reader.finish()
    return declared


def read_settings(said: Declaration, fields: Mapping[str, str]) -> Declaration:
    """The declaration with another budget; `FormError` names every field that must be mended."""
    reader = _Reader(fields)
    settled = replace(
        said,
        epsilon=reader.number("epsilon", "epsilon", said.epsilon),
        delta=reader.number("delta", "delta", said.delta, below=1.0),
        directions=reader.count("directions", "the number of directions"),
        max_features=reader.count("max-features", "the most columns to keep"),
        picture="picture" in fields or said.has_picture is None,
        again=0,
    )
    if settled == replace(said, again=0):
        settled = said
    reader.finish()
    return settled


def read_number(fields: Mapping[str, str], field: str, what: str, *, below: float = math.inf) -> float:
    """One positive number of a small form."""
    reader = _Reader(fields)
    value = reader.number(field, what, math.nan, below=below)
    reader.finish()
    if math.isnan(value):
        raise FormError([(field, f"{what}: fill it in.")])
    return value


class _Reader:
    """Reads fields and notes what is wrong with them, so that all mistakes are told at once."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields
        self.mistakes: list[tuple[str, str]] = []

    def finish(self) -> None:
        """Refuse the form if anything must be mended."""
        if self.mistakes:
            raise FormError(self.mistakes)

    def by_column(self, columns: Sequence[Column]) -> Declaration:
        """Roles, bounds and categories, column by column."""
        roles: dict[str, list[int]] = {role: [] for role in ROLES}
        for i in range(len(columns)):
            roles[self.one_of(f"role-{i}", ROLES, f"role of {columns[i].name!r}")].append(i)
        used = [*roles["feature"], *roles["second"]]
        bounds: dict[str, tuple[float, float]] = {}
        categorical: dict[str, tuple[str, ...]] = {}
        for i in used:
            self._sayable(f"role-{i}", columns[i].name)
            if categories := self._categories(i, columns[i].name, 2):
                categorical[columns[i].name] = categories
            elif not columns[i].is_number:
                self._note(
                    f"categories-{i}",
                    f"{columns[i].name!r} is not numeric: list its categories, as north | south, or leave it out.",
                )
            elif (ends := self._try(f"lower-{i}", self._ends, i, columns[i].name)) is not None:
                bounds[columns[i].name] = ends
        response, person = self._only(roles["response"], columns), self._only(roles["person"], columns)
        classes = () if response is None else self._categories(roles["response"][0], response, 1)
        if not used:
            self._note("role-0", "Choose at least one column as a feature.")
        return Declaration(
            "",
            response,
            tuple(columns[i].name for i in roles["feature"]),
            tuple(columns[i].name for i in roles["second"]),
            person,
            categorical,
            bounds,
            classes,
        )

    def by_pattern(self, columns: Sequence[Column]) -> Declaration:
        """Columns by name or pattern, one a line; nothing is known of their ranges."""
        from sfumato.sources.names import expand, suggest

        names = [column.name for column in columns]
        response, person = self._text("response") or None, self._text("person") or None
        for field, name in (("response", response), ("person", person)):
            if name is not None:
                self._try(field, suggest, name, names, field)
        patterns = tuple(line.strip() for line in self._text("features").splitlines() if line.strip())
        self._try("features", expand, patterns, names, "features")
        return Declaration("", response, patterns, (), person, classes=self._split("classes"))

    def rows(self, terms: Terms, person: str | None) -> int | None:
        """How many rows of a person count; None where records are protected."""
        given = self._text("rows-per-person")
        if terms.protects == "record":
            return None
        if not given and person is not None:
            return 1
        if not re.fullmatch(r"[1-9]\d{0,5}", given):
            self._note("rows-per-person", "Rows of a person: write a whole number from 1 on.")
            return None
        return int(given)

    def check_method(self, said: Declaration) -> None:
        """What the method needs, in words of the form."""
        paired = "second" in find_member(said.estimator).takes
        explains = not paired and said.estimator not in ("pca", "sparse-pca")
        if explains and said.response is None:
            self._note("estimator", "Choose the column to explain: give one column the role of the response.")
        if not explains and said.response is not None:
            what = "has its responses in the second set" if paired and said.estimator != "cca" else "explains no column"
            self._note("estimator", f"This method {what}: give none the role of the response.")
        if paired and not said.second:
            self._note("estimator", "There are two sets: give the columns of the second the role 'second set'.")
        if not paired and said.second:
            self._note("estimator", "This method has no second set of columns; give them another role.")
        if said.classes and said.response_kind == "numeric":
            self._note("response-kind", "A response with listed classes is no number; choose another kind.")

    def check_terms(self, said: Declaration, terms: Terms) -> None:
        """What the account has settled."""
        if said.drop_missing and terms.relation == "replace":
            self._note(
                "drop-missing",
                "Leaving out rows makes their number private, which this account takes as public; impute the missing "
                "values, or open an account that keeps the number private.",
            )
        if said.person is not None and terms.protects == "record":
            self._note(
                "estimator",
                f"The account protects single records, so no column can say whose row it is; leave {said.person!r} "
                "out, or open an account that protects persons.",
            )

    def number(self, field: str, what: str, usual: float, *, below: float = math.inf) -> float:
        """A positive number below another; the usual one if nothing was written."""
        text = self._text(field)
        if not text:
            return usual
        value = self._try(field, _number, text, what)
        if value is None:
            return usual
        if not 0.0 < value < below:
            upper = "" if math.isinf(below) else f" and below {below:g}"
            self._note(field, f"{what}: write a number above 0{upper}.")
            return usual
        return value

    def count(self, field: str, what: str) -> str | None:
        """A whole number, or nothing."""
        text = self._text(field)
        if text in ("", "auto"):
            return text or None
        if not re.fullmatch(r"[1-9]\d{0,5}", text):
            self._note(field, f"{what}: write a whole number from 1 on, or nothing.")
            return None
        return text

    def one_of(self, field: str, known: Iterable[str], what: str) -> str:
        """One of the values that the form offers; others were not made by the form."""
        choices = list(known)
        value = self._fields.get(field, choices[0])
        if value not in choices:
            self._note(field, f"{what}: choose one of those offered.")
            return choices[0]
        return value

    def _only(self, places: list[int], columns: Sequence[Column]) -> str | None:
        for i in places[1:]:
            role = ROLES[self._fields[f"role-{i}"]]
            self._note(f"role-{i}", f"{columns[i].name!r}: only one column can have the role '{role}'.")
        if not places:
            return None
        self._sayable(f"role-{places[0]}", columns[places[0]].name)
        return columns[places[0]].name

    def _ends(self, i: int, name: str) -> tuple[float, float] | None:
        low, high = self._text(f"lower-{i}"), self._text(f"upper-{i}")
        if not low and not high:
            return None
        if not low or not high:
            raise InputError(f"{name!r}: fill in both bounds, or neither to have them found privately.")
        lower, upper = _number(low, f"lower bound of {name!r}"), _number(high, f"upper bound of {name!r}")
        if not lower < upper:
            raise InputError(f"{name!r}: the lower bound must be below the upper one; swap or widen them.")
        return lower, upper

    def _categories(self, i: int, name: str, least: int) -> tuple[str, ...]:
        found = self._split(f"categories-{i}")
        if found and (len(found) < least or len(set(found)) < len(found)):
            self._note(f"categories-{i}", f"{name!r}: list {least} or more different categories, as north | south.")
            return ()
        if any("=" in category for category in found):
            self._note(f"categories-{i}", f"{name!r}: a category with '=' cannot be declared; rename it.")
            return ()
        return found

    def _split(self, field: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in self._text(field).split("|") if part.strip())

    def _sayable(self, field: str, name: str) -> None:
        if name != name.strip() or not name or "\0" in name or "\n" in name or "\r" in name:
            self._note(field, f"{name!r}: a name with blanks at its ends or line breaks cannot be used; rename it.")

    def _text(self, field: str) -> str:
        return self._fields.get(field, "").strip()

    def _note(self, field: str, sentence: str) -> None:
        self.mistakes.append((field, sentence))

    def _try(self, field: str, read: Callable[P, T], *given: P.args, **named: P.kwargs) -> T | None:
        try:
            return read(*given, **named)
        except InputError as error:
            self._note(field, str(error))
            return None


def _number(text: str, what: str) -> float:
    """A number as people write it.

    >>> _number("1,5", "dose")
    Traceback (most recent call last):
    sfumato.errors.InputError: dose: write '1,5' with a point, as 1.5.
    """
    if re.fullmatch(r"[-+]?\d+,\d+", text):
        raise InputError(f"{what}: write {text!r} with a point, as {text.replace(',', '.')}.")
    try:
        value = float(text) if re.fullmatch(r"[-+.\deE]+", text) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e150:
        raise InputError(f"{what}: {text[:40]!r} is no number; write one such as 0.5 or 1e-6.")
    return value
