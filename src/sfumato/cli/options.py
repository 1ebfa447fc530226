"""Options shared by commands: their help, and how their text is read."""

import os
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.errors import InputError
from sfumato.methods import FAMILY
from sfumato.study import EstimatorOptions, split_names

BUDGET, STUDY = "Privacy", "Study"


def _option(panel: str, words: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=words, rich_help_panel=panel, **more)


def _words(*words: str) -> Any:
    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_column(incomplete: str) -> list[str]:
    """Columns of the table named in the command, for the shell: the first word of its line that names a file."""
    from sfumato.sources.formats import open_tables

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    paths = [Path(word) for word in line.split() if Path(word).is_file()]
    try:
        return [name for table in open_tables(paths[:1]) for name in table.names if name.startswith(incomplete)]
    except InputError:
        return []


Decimal = Annotated[
    str,
    typer.Option(
        help="What stands before the fractions of numbers in text files: '.' or ','.", autocompletion=_words(".", ",")
    ),
]
Rho = Annotated[float | None, _option(BUDGET, "A zCDP budget instead of epsilon and delta.")]
Relation = Annotated[
    str | None,
    _option(
        BUDGET,
        "Neighbouring tables differ by one record: 'replace' (how many there are is public; the default) or "
        "'add-remove' (it is private; the default with --drop-missing).",
        autocompletion=_words("replace", "add-remove"),
    ),
]
Person = Annotated[
    str | None,
    _option(
        BUDGET,
        "Column that says whose row it is: persons are protected, with all their rows.",
        autocompletion=complete_column,
    ),
]
RowsPerPerson = Annotated[
    int | None,
    _option(
        BUDGET,
        "How many rows of a person count, the first ones (1 if not given); without --person you vouch that nobody "
        "has more.",
        min=1,
    ),
]
Classes = Annotated[list[str] | None, _option(STUDY, "Public categories of the response, as a,b,c; others share one.")]
ResponseKind = Annotated[
    str | None,
    _option(
        STUDY,
        "What the response is, 'numeric' or 'categorical', whatever its cells look like (what its column is).",
        autocompletion=_words("numeric", "categorical"),
    ),
]
AnyResponse = Annotated[
    str | None, _option(STUDY, "Column to explain.", "--response", "-y", autocompletion=complete_column)
]
Features = Annotated[
    list[str] | None,
    _option(STUDY, "Columns to use, as a,b,c; a pattern such as 'lab_*' will do (all others if not given)."),
]
Exclude = Annotated[list[str] | None, _option(STUDY, "Columns to leave out, as a,b,c or a pattern.")]
Second = Annotated[
    list[str] | None,
    _option(
        STUDY,
        "Columns of the second set (cca), or responses (multi-sir; censored-sir: time,status), as a,b,c or a pattern.",
    ),
]
OutDirectory = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Directory for report.html, model.json and directions.csv; sfumato-ESTIMATOR-TIME if not given.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and spend nothing.")]
CapLedger = Annotated[
    Path | None, _option(BUDGET, "A ledger file shared by all runs on the same records; it refuses to pass its cap.")
]
Seed = Annotated[int | None, _option(BUDGET, "Seeded noise, for a rehearsal: NOT private.", min=0, max=2**63 - 1)]
BoundsFile = Annotated[
    str,
    _option(
        STUDY,
        "TOML file with the range of features; others, or with 'none' all, are found privately. 'search': "
        "even if there are few records.",
    ),
]
Categorical = Annotated[
    list[str] | None, _option(STUDY, "Public categories of a feature, as ward=north|south; the first is the reference.")
]
DropMissing = Annotated[
    bool,
    _option(
        STUDY,
        "Leave out incomplete rows. How many there are is private: neighbours then differ by add-remove.",
        "--drop-missing",
    ),
]


_SHARED: dict[str, Any] = {
    "estimator": Annotated[
        str,
        _option(
            STUDY,
            "What to look for. Directions that explain a response: sir, sparse-sir (very many columns), save, dr, phd "
            "(even, curved relations), lda (classes), multi-sir (several responses), censored-sir (times cut short). "
            "Without a response: pca, sparse-pca. Two sets of columns: cca. "
            "For comparison, the papers' own: dp-sir and others.",
            autocompletion=_words(*FAMILY),
        ),
    ],
    "epsilon": Annotated[float | None, _option(BUDGET, "Privacy budget of the whole run (1 if not given).")],
    "delta": Annotated[float | None, _option(BUDGET, "Its delta, far below 1 / records (1e-6 if not given).")],
    "directions": Annotated[
        str | None,
        _option(
            STUDY,
            "How many directions; 'auto' counts those that stand out of the noise (the default; 1 with pca, which has "
            "no 'auto').",
        ),
    ],
    "method": Annotated[
        str | None,
        _option(
            STUDY,
            "How they are found: auto (the default), or a method of the estimator, such as descent or one-shot (sir).",
            autocompletion=_words("auto", "descent", "one-shot", "screen", "blocks", "refined"),
        ),
    ],
    "classes": Classes,
    "max_features": Annotated[str | None, _option(STUDY, "Columns to pick at most (sparse-sir, sparse-pca).")],
    "slices": Annotated[int | None, _option(STUDY, "Slices of a numeric response (save, dr; 5 if not given).")],
    "picture": Annotated[
        bool | None,
        _option(
            STUDY,
            "Spend 5 % of the budget on a picture of the response (sir and sparse-sir, unless --no-picture).",
            "--picture/--no-picture",
        ),
    ],
}
"""The options that choose an estimator, all of them of `EstimatorOptions`, which says what they are if not given."""


def asks_for_estimator(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose an estimator, in place of its parameter `asked`.

    What only some commands take (a zCDP budget, the relation, rows of a person, a seed) they declare themselves.
    """
    whole = signature(command)
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=option, default=getattr(EstimatorOptions, name))
        for name, option in _SHARED.items()
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in _SHARED}
        command(asked=EstimatorOptions(**chosen | {"classes": split_names(chosen["classes"])}), **given)

    parameters: list[Parameter] = []
    for parameter in whole.parameters.values():
        parameters += shared if parameter.name == "asked" else [parameter]
    signed: Any = run  # Typer reads the signature
    signed.__signature__ = whole.replace(parameters=parameters)
    signed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
