"""What an estimator says of itself, in its own file, to everyone who asks: command line, report, model files, audit.

`About` is a class attribute of every estimator of the family (`sfumato.methods.FAMILY`); a test fails where a member
lacks a page, an attack, a report, a round trip through a model file or a fit at the command line.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import numpy as np

from sfumato.bounds import Bounds
from sfumato.forecast.assessment import Level, Verdict
from sfumato.methods.inputs import directions_of
from sfumato.privacy.unit import MOST_ROWS
from sfumato.schema import (
    HUGE,
    Node,
    Reader,
    Sizes,
    array,
    bounds,
    given,
    known_number,
    labels,
    length_of,
    number,
    optional,
    places,
    record,
    relation,
    said_of_bounds,
    series,
    some_places,
    truth,
    whole,
    word,
)
from sfumato.steps.dimension import Choice
from sfumato.typing import FloatArray

BOX = Bounds(-1.0, 1.0)
CODES, NAMES = (0.0, 1.0, 2.0), ("a", "b", "c")
"""Public bounds and classes of attacked tables."""
NUMBERS = (-10.0, -0.5, -0.3, 0.0, 0.3, 0.5, 10.0)
"""Of several sizes: their responses otherwise."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A fit that an audit attacks: an estimator, its name in the audit's tables, and the kind of table it is given.

    Attributes
    ----------
    n_features : int
        Of the table; with `two_tables` half of them are those of the second.
    responses : tuple, optional
        What y may be where it is no number: classes or names.
    declared : {"numeric", "categorical"}, optional
        The kind of y that ``fit`` is told.
    replay_only : bool
        For the replay of releases alone, where many variants are cheap.
    """

    name: str
    estimator: Any
    n_features: int = 3
    responses: tuple[Any, ...] | None = None
    two_tables: bool = False
    declared: str | None = None
    replay_only: bool = False


def call_by_name(estimator: Any) -> str:
    """How the directions were found, where the parameter says it."""
    chosen = getattr(estimator, "method", None)
    return "" if chosen in (None, "auto") else str(chosen).replace("-", " ")


@dataclass(frozen=True)
class About:
    """Everything others need to know of an estimator.

    Attributes
    ----------
    title : str
        Of its report.
    page : str
        Of the documentation, below ``docs/``.
    options : tuple of str
        Those of the command line that only some estimators take; what all take (budget, bounds, directions) is not
        listed.
    unit, meaning : str
        What one direction is called, and the words for its number.
    method : callable
        From a fitted estimator to words for how the directions were found.
    home : str
        The module that its users import it from.
    federated : bool
        Whether sites that may not pool their records can fit it.
    own_units : bool
        Whether its directions compare features in the units of the table, as principal components do.
    parameters, released : mapping of str to Reader
        What a model file holds: parameters, and releases (one called "mean" is kept as ``mean_``).
    finish : callable
        What follows from the releases, set once they are read.
    attacks : callable
        From budget, relation, bounds and number of directions to the fits that are attacked.
    """

    title: str
    page: str
    options: tuple[str, ...] = ()
    unit: str = "direction"
    meaning: str = "explains {:.1%}"
    method: Callable[[Any], str] = call_by_name
    home: str = "sfumato"
    federated: bool = True
    own_units: bool = False
    parameters: Mapping[str, Reader] = field(default_factory=dict)
    released: Mapping[str, Reader] = field(default_factory=dict)
    finish: Callable[[Any, Node], None] = lambda estimator, node: None
    attacks: Callable[[dict[str, Any]], Iterable[Attack]] = lambda known: ()


EXPLAINING_OPTIONS = ("response", "classes", "response_kind")
"""Of estimators that explain a response."""


def searching(known: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an attacked fit that finds its bounds, however few records there are."""
    return known | {"bounds": "search"}


def finding(known: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an attacked fit that finds its bounds and the number of directions."""
    return searching(known) | {"n_directions": "auto"}


def orthonormal(rows: FloatArray) -> bool:
    """Whether rows have length one and right angles."""
    return np.allclose(rows @ rows.T, np.eye(len(rows)), rtol=0.0, atol=1e-6)


def check_support(estimator: Any, node: Node) -> None:
    """Weight outside of the features kept would not be in the report."""
    if np.delete(estimator.directions_, estimator.support_, axis=1).any():
        node.refuse("zero in directions outside of support")


def number_or(*words: str) -> Reader:
    """A number of features, or one of a few words."""
    return lambda node, sizes: node.one_of(words) if isinstance(node.value, str) else node.whole(1)


def method_among(methods: tuple[str, ...]) -> dict[str, Reader]:
    """The parameter `method`."""
    return {"method": word(methods)}


PARAMETERS: dict[str, Reader] = {
    "epsilon": number,
    "delta": number,
    "rho": optional(number),
    "relation": relation,
    "rows_per_person": optional(whole(1, MOST_ROWS)),
    "n_directions": given(lambda value, sizes: directions_of(value, sizes["most"])),
    "bounds": said_of_bounds("p"),
    "random_state": optional(whole()),
}
CLASSES: dict[str, Reader] = {"classes": optional(labels)}
CHOICE = record(
    Choice,
    n_directions=length_of("k"),
    singular_values=series(least="k"),
    edge=known_number,
    given=truth,
    p_values=series(),
)


def verdict_of(node: Node, sizes: Sizes) -> Verdict:
    """A verdict. One that was written before directions were judged one by one has no levels of them."""
    each = ("levels",) if "levels" in dict(node.items()) else ()
    fields = node.fields("level", "sentence", *each)
    levels = tuple(cast(Level, one.one_of(get_args(Level))) for name in each for one in fields[name].elements())
    if len(levels) not in (0, sizes["k"]):
        fields["levels"].refuse(f"a list of {sizes['k']}")
    return Verdict(cast(Level, fields["level"].one_of(get_args(Level))), fields["sentence"].text(), levels)


DIRECTIONS: dict[str, Reader] = {
    "directions": array("k", "p", must="orthonormal rows", holds=orthonormal),
    "standard_errors": array("k", "p", gaps=True, most=HUGE),
    "eigenvalues": series(most="k"),
}
PLACE: dict[str, Reader] = {
    "mean": array("p", most=HUGE),
    "bounds": bounds("p"),
    "unseen": optional(some_places("p")),
}
JUDGED: dict[str, Reader] = {
    "privacy_errors": optional(array("k", "p", gaps=True, most=HUGE)),
    "verdict": optional(verdict_of),
}
"""What is said about the directions of a fit."""
EXPLAINING = DIRECTIONS | PLACE | {"box": optional(bounds("p")), "choice": CHOICE}
COMPONENTS = DIRECTIONS | PLACE | {"explained_variance_ratio": series(most="k")}
SCALE: dict[str, Reader] = {
    "scale": array("p", most=HUGE, must="positive", holds=lambda values: bool((values > 0).all())),
}
SUPPORT: dict[str, Reader] = {"support": places("s", "p", ordered=True)}
