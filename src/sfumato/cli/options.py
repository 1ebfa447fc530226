"""Options shared by commands: their help, and how their text is read."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.errors import InputError
from sfumato.methods import FAMILY

BUDGET, STUDY = "Privacy", "Study"


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


Estimator = Annotated[
    str,
    typer.Option(
        help="What to look for. Directions that explain a response: sir, sparse-sir (very many columns), save or dr "
        "(even, curved relations), lda (classes). Without a response: pca, sparse-pca. Two sets of columns: cca. "
        "For comparison, the papers' own: dp-sir and others.",
        autocompletion=_words(*FAMILY),
        rich_help_panel=STUDY,
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        help="What stands before the fractions of numbers in text files: '.' or ','.", autocompletion=_words(".", ",")
    ),
]
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
Person = Annotated[
    str | None,
    typer.Option(
        help="Column that says whose row it is: persons are protected, with all their rows.",
        autocompletion=complete_column,
        rich_help_panel=BUDGET,
    ),
]
RowsPerPerson = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many rows of a person count, the first ones (1 if not given); without --person you vouch that nobody "
        "has more.",
        rich_help_panel=BUDGET,
    ),
]
AnyDirections = Annotated[
    str | None,
    typer.Option(
        help="How many directions; 'auto' counts those that stand out of the noise (the default; 1 with pca, which has "
        "no 'auto').",
        rich_help_panel=STUDY,
    ),
]
AnyMethod = Annotated[
    str | None,
    typer.Option(
        help="How they are found: auto (the default), or a method of the estimator, such as descent or one-shot (sir).",
        autocompletion=_words("auto", "descent", "one-shot", "screen", "refined"),
        rich_help_panel=STUDY,
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(help="Public categories of the response, as a,b,c; others share one.", rich_help_panel=STUDY),
]
ResponseKind = Annotated[
    str | None,
    typer.Option(
        help="What the response is, 'numeric' or 'categorical', whatever its cells look like (what its column is).",
        autocompletion=_words("numeric", "categorical"),
        rich_help_panel=STUDY,
    ),
]
Picture = Annotated[
    bool | None,
    typer.Option(
        "--picture/--no-picture",
        help="Spend 5 % of the budget on a picture of the response (sir and sparse-sir, unless --no-picture).",
        rich_help_panel=STUDY,
    ),
]
MaxFeatures = Annotated[
    str | None,
    typer.Option(help="Columns to pick at most (sparse-sir, sparse-pca).", rich_help_panel=STUDY),
]
Slices = Annotated[
    int | None, typer.Option(help="Slices of a numeric response (save, dr; 5 if not given).", rich_help_panel=STUDY)
]
AnyResponse = Annotated[
    str | None,
    typer.Option("--response", "-y", help="Column to explain.", autocompletion=complete_column, rich_help_panel=STUDY),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to use, as a,b,c; a pattern such as 'lab_*' will do (all others if not given).",
        rich_help_panel=STUDY,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="Columns to leave out, as a,b,c or a pattern.", rich_help_panel=STUDY),
]
Second = Annotated[
    list[str] | None,
    typer.Option(help="Columns of the second set (cca), as a,b,c or a pattern.", rich_help_panel=STUDY),
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
    Path | None,
    typer.Option(
        help="A ledger file shared by all runs on the same records; it refuses to pass its cap.",
        rich_help_panel=BUDGET,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, max=2**63 - 1, help="Seeded noise, for a rehearsal: NOT private.", rich_help_panel=BUDGET),
]
BoundsFile = Annotated[
    str,
    typer.Option(
        help="TOML file with the range of features; others, or with 'none' all, are found privately. 'search': "
        "even if there are few records.",
        rich_help_panel=STUDY,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        help="Public categories of a feature, as ward=north|south; the first is the reference.",
        rich_help_panel=STUDY,
    ),
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        help="Leave out incomplete rows. How many there are is private: neighbours then differ by add-remove.",
        rich_help_panel=STUDY,
    ),
]
