"""Options shared by commands: their help, and how their text is read."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.failures import as_usage
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.bounds import Bounds
    from sfumato.estimators.sir import PrivateSIR

EPSILON, DELTA = 1.0, 1e-6
BUDGET, STUDY = "Privacy", "Study"


def _words(*words: str) -> Any:
    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_column(incomplete: str) -> list[str]:
    """Columns of the table named in the command, for the shell: the first word of its line that names a file."""
    from sfumato.files import open_tables

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    paths = [Path(word) for word in line.split() if Path(word).is_file()]
    try:
        return [name for table in open_tables(paths[:1]) for name in table.names if name.startswith(incomplete)]
    except InputError:
        return []


Epsilon = Annotated[
    float | None, typer.Option(help="Privacy budget of the whole run (1 if not given).", rich_help_panel=BUDGET)
]
Delta = Annotated[
    float | None, typer.Option(help="Its delta, far below 1 / records (1e-6 if not given).", rich_help_panel=BUDGET)
]
Rho = Annotated[float | None, typer.Option(help="A zCDP budget instead of epsilon and delta.", rich_help_panel=BUDGET)]
Relation = Annotated[
    str | None,
    typer.Option(
        help="Neighbouring tables differ by one record: 'replace' (how many there are is public; the default) or "
        "'add-remove' (it is private; the default with --drop-missing).",
        autocompletion=_words("replace", "add-remove"),
        rich_help_panel=BUDGET,
    ),
]
Directions = Annotated[
    str,
    typer.Option(help="How many directions; 'auto' counts those that stand out of the noise.", rich_help_panel=STUDY),
]
Method = Annotated[
    str,
    typer.Option(
        help="auto, descent or one-shot.",
        autocompletion=_words("auto", "descent", "one-shot"),
        rich_help_panel=STUDY,
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(help="Public categories of the response, as a,b,c; others share one.", rich_help_panel=STUDY),
]
Picture = Annotated[
    bool, typer.Option(help="Spend 5 % of the budget on a picture of the response.", rich_help_panel=STUDY)
]


@dataclass(frozen=True)
class Wishes:
    """What the user asks of the estimator, still as text."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    directions: str = "auto"
    method: str = "auto"
    relation: str = "replace"
    classes: Sequence[str] | None = None
    picture: bool = True
    seed: int | None = None

    def estimator(self, bounds: "Bounds | None" = None) -> "PrivateSIR":
        """The estimator, its parameters checked."""
        from sfumato.estimators.parameters import budget_of, noise_of, one_of, relation_of
        from sfumato.estimators.sir import METHODS, PrivateSIR

        if self.rho is not None and (self.epsilon is not None or self.delta is not None):
            raise InputError("rho: give either --rho, or --epsilon and --delta, not both.")
        epsilon = EPSILON if self.epsilon is None else self.epsilon
        delta = DELTA if self.delta is None else self.delta
        with as_usage():
            budget_of(epsilon, delta, self.rho)
        return PrivateSIR(
            epsilon,
            delta,
            how_many(self.directions),
            bounds,
            one_of("method", self.method, METHODS),
            relation=relation_of(self.relation),
            rho=self.rho,
            classes=self.classes,
            picture=self.picture,
            random_state=self.seed if noise_of(self.seed) else None,
        )


def how_many(text: str) -> int | str:
    """A number of directions, or "auto"."""
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"directions: {text!r} is neither 'auto' nor a whole number from 1 on.")
    return int(text)


def names(given: Sequence[str] | None) -> list[str] | None:
    """Names separated by commas, in one option or several; quote one that has a comma itself.

    >>> names(["age, sex", '"los, days"'])
    ['age', 'sex', 'los, days']
    """
    if not given:
        return None
    return [name.strip() for row in csv.reader(given, skipinitialspace=True) for name in row if name.strip()]


def categories(given: Sequence[str] | None) -> dict[str, list[str]]:
    """Declared categories, from ``column=a|b|c``.

    >>> categories(["ward=north|south"])
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
