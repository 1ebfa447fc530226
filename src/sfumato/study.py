"""A study as its user declares it, still as text: the estimator and its options, the table and its columns, bounds.

The command line and the web app make the same objects of it; nothing is read from the records before a fit.
"""

import csv
import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import InputError, as_usage
from sfumato.methods import FAMILY, added, load

if TYPE_CHECKING:
    from sfumato.bounds import Bounds, GivenBounds
    from sfumato.methods.explanation import Explanation
    from sfumato.sources import ResponseKind
    from sfumato.sources.columns import Columns
    from sfumato.sources.files import FileSource


@dataclass(frozen=True)
class Member:
    """One estimator, by the name it has at the command line."""

    name: str

    @property
    def make(self) -> Any:
        """The class."""
        return load(FAMILY[self.name] if self.name in FAMILY else added()[self.name])

    @property
    def takes(self) -> tuple[str, ...]:
        """Its options besides those that all take: budget, bounds, directions."""
        return tuple(self.make.about.options)

    @property
    def methods(self) -> tuple[str, ...]:
        """Ways to find the directions."""
        return tuple(getattr(import_module(self.make.__module__), "METHODS", ()))

    def check_method(self, method: str) -> None:
        """Refuse a method that the estimator does not have; of one that is an estimator now, say which."""
        from sfumato.methods.inputs import MOVED, one_of

        moved = MOVED.get(self.make.__name__, {}).get(method)
        if moved is not None:
            name = next(name for name, home in added().items() if home.endswith(f".{moved}"))
            raise InputError(f"method: {method!r} is an estimator of its own now; use --estimator {name}.")
        one_of("method", method, self.methods)


NEEDS = {
    "response": "the column to explain",
    "second": "the columns of the second set, as a,b,c or 'lab_*'",
    "q": "the number of columns of the second set",
}


def find_member(name: str) -> Member:
    """The estimator of this name.

    >>> find_member("pac")
    Traceback (most recent call last):
    sfumato.errors.InputError: estimator: there is no 'pac'; did you mean 'pca'?
    """
    if name not in FAMILY and name not in added():
        close = difflib.get_close_matches(name.lower().removeprefix("private"), [*FAMILY, *added()], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose among {', '.join(FAMILY)}."
        raise InputError(f"estimator: there is no {name!r}; {hint}")
    return Member(name)


def check_options(chosen: Member, options: Mapping[str, Any], needed: tuple[str, ...] = ()) -> None:
    """Refuse what the estimator does not take, and the lack of what it needs; None is what was not given."""
    for option, value in options.items():
        flag = f"--{option.replace('_', '-')}"
        if value is not None and option not in chosen.takes:
            raise InputError(f"{flag[2:]}: {chosen.name} takes no {flag}; {_instead(chosen, option)}.")
        if value is None and option in needed and option in chosen.takes:
            raise InputError(f"{flag[2:]}: {chosen.name} needs {flag}, {NEEDS[option]}.")


def _instead(chosen: Member, option: str) -> str:
    """What to do about an option that is not for the estimator."""
    if option == "response" and "second" in chosen.takes:
        return "it has two sets of columns: name the second with --second"
    if option == "response":
        return "it explains no column: leave it out, and choose columns with --features"
    others = ", ".join(name for name in FAMILY if option in Member(name).takes)
    return f"leave it out (it is for {others})"


def read_bounds(path: Path, columns: "Columns", table_names: Sequence[str]) -> "Bounds | dict[str, Any]":
    """The bounds of the features, from a file: of all, or of those that have a line; 0 and 1 for categories."""
    from sfumato.bounds import Bounds
    from sfumato.sources.names import suggest

    given = _given(path)
    for name in given:
        suggest(name, table_names, f"bounds: {path}")
    numeric = [name for name in columns.features if name not in columns.categorical]
    known: dict[str, Any] = {name: _range(name, given[name]) for name in numeric if name in given}
    if any(name not in known for name in numeric):
        return known
    return Bounds(*zip(*(known.get(name, (0.0, 1.0)) for name in columns.names), strict=True))


def quote_key(name: str) -> str:
    """The name of a feature as a key of the file."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def _given(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"bounds: {path} cannot be read ({error.strerror}); write a template with 'sfumato bounds init DATA'."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"bounds: {path} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"bounds: {path} is not valid TOML ({error}).") from None
    bounds = content.get("bounds")
    if not isinstance(bounds, dict):
        raise InputError(f'bounds: {path} has no [bounds] section; it needs one with lines such as "age" = [0, 110].')
    return bounds


def _range(name: str, value: Any) -> tuple[float, float]:
    if value == []:
        raise InputError(f"bounds: {name!r} is not filled in yet; write [lower, upper], or remove the line to buy it.")
    is_pair = isinstance(value, list) and len(value) == 2
    if not is_pair or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value):
        raise InputError(f"bounds: {name!r} must be two numbers, [lower, upper].")
    lower, upper = map(float, value)
    if not lower < upper:
        raise InputError(f"bounds: {name!r} has a lower bound that is not below its upper bound; swap or widen them.")
    return lower, upper


EPSILON, DELTA = 1.0, 1e-6
MOST_DIGITS = 9
"""Of a number of directions or features."""
PARAMETERS = {"method": "method", "classes": "classes", "max_features": "max_features", "slices": "n_slices"}
"""Options that some estimators take, and what they call them."""


@dataclass(frozen=True)
class EstimatorOptions:
    """The options of a fit that are about the estimator; None is what was not given."""

    estimator: str = "sir"
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    relation: str = "replace"
    seed: int | None = None
    directions: str | None = None
    method: str | None = None
    classes: Sequence[str] | None = None
    picture: bool | None = None
    max_features: str | None = None
    slices: int | None = None
    rows_per_person: int | None = None

    @property
    def member(self) -> Member:
        """The estimator's place in the family."""
        return find_member(self.estimator)

    def special(self) -> dict[str, Any]:
        """The options that not every estimator takes."""
        return {name: getattr(self, name) for name in ("method", "classes", "picture", "max_features", "slices")}

    def build(self) -> Any:
        """The estimator, its parameters checked; it has no bounds yet."""
        from sfumato.privacy.parameters import budget_of, noise_of, relation_of
        from sfumato.privacy.unit import unit_of

        if self.rho is not None and (self.epsilon is not None or self.delta is not None):
            raise InputError("rho: give either --rho, or --epsilon and --delta, not both.")
        epsilon = EPSILON if self.epsilon is None else self.epsilon
        delta = DELTA if self.delta is None else self.delta
        with as_usage():
            budget_of(epsilon, delta, self.rho)
        if self.method is not None:
            self.member.check_method(self.method)
        seed = self.seed if noise_of(self.seed) else None  # noise_of refuses what is no seed
        budget = {"epsilon": epsilon, "delta": delta, "rho": self.rho, "relation": relation_of(self.relation)}
        unit_of(self.rows_per_person, has_ids=False)  # refuses what is no number of rows
        budget |= {"rows_per_person": self.rows_per_person}
        return self.member.make(**budget, random_state=seed, **self._own())

    def _own(self) -> dict[str, Any]:
        """Parameters besides the budget, as far as they were given; a picture is bought where one can be."""
        values = {name: getattr(self, option) for option, name in PARAMETERS.items()}
        if "picture" in self.member.takes:
            values["picture"] = self.picture is not False
        if self.directions is not None:
            values["n_directions"] = read_count(self.directions, "directions")
        if self.max_features is not None:
            values["max_features"] = read_count(self.max_features, "max-features")
        return {name: value for name, value in values.items() if value is not None}


def read_count(text: str, option: str) -> int | str:
    """A number of directions or features, or "auto"."""
    if text == "auto":
        return text
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) < 1:
        raise InputError(f"{option}: {text[:40]!r} is neither 'auto' nor a whole number from 1 on.")
    return int(text)


@dataclass(frozen=True)
class TableOptions:
    """A table, and which of its columns are what; None is what was not given."""

    data: str
    response: str | None
    second: list[str] | None
    features: list[str] | None
    categorical: dict[str, list[str]]
    bounds: str
    drop_missing: bool
    response_kind: "ResponseKind | None" = None
    person: str | None = None
    memory: str | None = None
    cluster: str | None = None
    exclude: list[str] | None = None
    decimal: str = "."

    @property
    def title(self) -> str:
        """What is explained, and where."""
        return self.data if self.response is None else f"{self.response} in {self.data}"

    def source(self, classes: Sequence[str] | None) -> "FileSource":
        """The records; nothing but the names and kinds of the columns has been read yet."""
        from sfumato.sources.base import bytes_of
        from sfumato.sources.files import open_source
        from sfumato.sources.names import find

        source = open_source(
            find(self.data),
            self.response,
            self.features if self.exclude is None else self._remaining(self.exclude),
            classes,
            self.categorical,
            drop_missing=self.drop_missing,
            second=self.second or (),
            response_kind=self.response_kind,
            person=self.person,
            memory=bytes_of(self.memory),
            decimal=self.decimal,
        )
        source.cluster = self.cluster
        return source

    def _remaining(self, exclude: list[str]) -> list[str]:
        """The features without those that are left out."""
        from sfumato.sources.formats import open_tables
        from sfumato.sources.names import expand, find

        names = open_tables(find(self.data)[:1], self.decimal)[0].names
        others = (self.response, self.person, *expand(self.second or (), names, "second"))
        rest = [name for name in names if name not in others]
        chosen = rest if self.features is None else expand(self.features, names, "features")
        out = expand(exclude, names, "exclude")
        return [name for name in chosen if name not in out]

    def public_bounds(self, source: "FileSource") -> "dict[str, GivenBounds]":
        """The bounds that were given, of each table."""
        tables = {"bounds": source.columns} | ({} if source.second is None else {"y_bounds": source.second})
        if self.bounds in ("none", "search"):
            return dict.fromkeys(tables, None if self.bounds == "none" else "search")
        path = Path(self.bounds)
        return {name: read_bounds(path, columns, source.table_names) for name, columns in tables.items()}

    def options(self, asked: EstimatorOptions, relation: str | None, rows_per_person: int | None) -> EstimatorOptions:
        """The options of a fit of this table, whole and checked: what the estimator takes of columns, and needs."""
        rows = rows_per_person if rows_per_person or self.person is None else 1
        options = replace(asked, relation=self.relation(relation), rows_per_person=rows)
        columns = {"response": self.response, "second": self.second, "response_kind": self.response_kind}
        check_options(options.member, options.special() | columns, needed=("response", "second"))
        return options

    def relation(self, asked: str | None) -> str:
        """The neighbouring relation. Under 'replace' the number of records is public; of complete ones it is not."""
        if self.drop_missing and asked == "replace":
            raise InputError(
                "relation: --drop-missing makes the number of records private; use --relation add-remove, or impute."
            )
        return asked or ("add-remove" if self.drop_missing else "replace")


def prepare(table: TableOptions, options: EstimatorOptions) -> "tuple[Any, FileSource]":
    """The estimator with its public bounds, and the records that it is for; nothing has been read yet."""
    estimator = options.build()
    source = table.source(options.classes)
    if options.estimator == "lda" and source.response.categories is None:
        raise InputError(
            f"classes: column {table.response!r} holds numbers; list its classes, as --classes 0,1, "
            "or say --response-kind categorical."
        )
    return estimator.set_params(**taken(estimator, table.public_bounds(source))), source


def taken(estimator: Any, parameters: "dict[str, GivenBounds]") -> "dict[str, GivenBounds]":
    """Those parameters that the estimator has: of responses that enter by their ranks no bounds are needed."""
    return {name: value for name, value in parameters.items() if name in estimator.get_params()}


def explain_fit(estimator: Any, source: "FileSource", n_records: int | None = None) -> "Explanation":
    """What a fit would do; the records are counted where their number is public, and not looked at.

    `n_records` are a number of records to suppose instead.
    """
    from sklearn.base import clone

    from sfumato.privacy.unit import is_count_public

    # Any classes make the same plan: those of a text response need not be known for it.
    asked = clone(estimator).set_params(classes=("",)) if source.response.categories is not None else estimator
    public = is_count_public(estimator.relation, estimator.rows_per_person)
    n = n_records or (source.count() if public else 1)
    return asked.explain(n, *count_features(source))  # type: ignore[no-any-return]


def count_features(source: "FileSource") -> tuple[int, ...]:
    """Number of features of each table."""
    first = len(source.columns.names)
    return (first,) if source.second is None else (first, len(source.second.names))


def split_names(given: Sequence[str] | None) -> list[str] | None:
    """Names separated by commas, in one option or several; quote one that has a comma itself.

    >>> split_names(["age, sex", '"los, days"'])
    ['age', 'sex', 'los, days']
    """
    if not given:
        return None
    return [name.strip() for row in csv.reader(given, skipinitialspace=True) for name in row if name.strip()]


def read_kind(given: str | None) -> Literal["numeric", "categorical"] | None:
    """The declared kind of a response."""
    if given is None:
        return None
    from sfumato.sources import response_kind_of

    return response_kind_of(given)


def read_categories(given: Sequence[str] | None) -> dict[str, list[str]]:
    """Declared categories, from ``column=a|b|c``.

    >>> read_categories(["ward=north|south"])
    {'ward': ['north', 'south']}
    """
    declared: dict[str, list[str]] = {}
    for text in given or ():
        name, sign, values = text.rpartition("=")
        if not sign or not name:
            raise InputError(f"categorical: write {text!r} as column=a|b|c.")
        if name in declared:
            raise InputError(f"categorical: column {name!r} is declared twice; declare it once.")
        declared[name] = [value.strip() for value in values.split("|") if value.strip()]
    return declared
