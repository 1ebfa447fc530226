"""`sfumato fit`: from a file to directions, a report and a model."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.bounds import read_bounds
from sfumato.cli.cap_ledger import open_cap_ledger, say_what_is_left
from sfumato.cli.options import (
    BUDGET,
    STUDY,
    Classes,
    Delta,
    Directions,
    Epsilon,
    Method,
    Picture,
    Relation,
    Rho,
    Wishes,
    categories,
    complete_column,
    names,
)
from sfumato.cli.output import new_directory
from sfumato.cli.progress import working
from sfumato.cli.terminal import note, stdout
from sfumato.errors import InputError, PrivacyWarning

if TYPE_CHECKING:
    from sfumato.bounds import Bounds
    from sfumato.estimators.explanation import Explanation
    from sfumato.estimators.sir import PrivateSIR
    from sfumato.files import FileSource
    from sfumato.report import Document

RESULTS = {
    "report.html": "the report: open it in a browser",
    "model.json": "the model, for sfumato transform",
    "directions.csv": "the directions, in the units of the table",
}


@dataclass(frozen=True)
class Study:
    """What is fitted: a table, its columns, and what is known about them."""

    data: str
    response: str
    features: list[str] | None
    categorical: dict[str, list[str]]
    bounds: str
    drop_missing: bool

    @property
    def title(self) -> str:
        """What is explained."""
        return f"{self.response} in {self.data}"

    def source(self, classes: Sequence[str] | None) -> "FileSource":
        """The records; nothing but the names and kinds of the columns has been read yet."""
        from sfumato.files import open_source
        from sfumato.files.names import find

        return open_source(
            find(self.data), self.response, self.features, classes, self.categorical, drop_missing=self.drop_missing
        )

    def public_bounds(self, source: "FileSource") -> "Bounds | None":
        """The bounds that were given."""
        return None if self.bounds == "none" else read_bounds(Path(self.bounds), source.columns, source.table_names)


def fit(
    data: Annotated[
        str, typer.Argument(help="CSV, Parquet, Arrow or Feather file, or a pattern such as 'data/*.parquet'.")
    ],
    response: Annotated[
        str,
        typer.Option(
            "--response", "-y", help="Column to explain.", autocompletion=complete_column, rich_help_panel=STUDY
        ),
    ],
    features: Annotated[
        list[str] | None,
        typer.Option(help="Columns to explain it with, as a,b,c (all others if not given).", rich_help_panel=STUDY),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Directory for report.html, model.json and directions.csv.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and spend nothing.")] = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    relation: Relation = None,
    cap_ledger: Annotated[
        Path | None,
        typer.Option(
            help="A ledger file shared by all runs on the same records; it refuses to pass its cap.",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seeded noise, for a rehearsal: NOT private.", rich_help_panel=BUDGET),
    ] = None,
    bounds: Annotated[
        str,
        typer.Option(help="TOML file with the range of each feature; 'none': found privately.", rich_help_panel=STUDY),
    ] = "none",
    directions: Directions = "auto",
    method: Method = "auto",
    classes: Classes = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="Public categories of a feature, as ward=north|south; the first is the reference.",
            rich_help_panel=STUDY,
        ),
    ] = None,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="Leave out incomplete rows. How many there are is private: neighbours then differ by add-remove.",
            rich_help_panel=STUDY,
        ),
    ] = False,
    picture: Picture = True,
) -> None:
    """Find the directions of the features that explain the response, privately.

    The whole run costs exactly the budget, whatever it has to find out on the way. Example:

    sfumato fit patients.parquet -y los --bounds bounds.toml --epsilon 1 --out los
    """
    study = Study(data, response, names(features), categories(categorical), bounds, drop_missing)
    wishes = Wishes(
        epsilon, delta, rho, directions, method, _relation(relation, drop_missing), names(classes), picture, seed
    )
    if dry_run:
        _rehearse(study, wishes)
    else:
        _run(study, wishes, out, cap_ledger)


def _relation(relation: str | None, drop_missing: bool) -> str:
    """The neighbouring relation. Under 'replace' the number of records is public; of complete ones it is not."""
    if drop_missing and relation == "replace":
        raise InputError(
            "relation: --drop-missing makes the number of records private; use --relation add-remove, or impute."
        )
    return relation or ("add-remove" if drop_missing else "replace")


def _rehearse(study: Study, wishes: Wishes) -> None:
    with working("loading the library"):
        estimator = wishes.estimator()
        source = study.source(wishes.classes)
        plan = _plan(estimator.set_params(bounds=study.public_bounds(source)), source)
        from sfumato.cli.show import show_plan
    size = "records" if wishes.relation == "add-remove" else f"{plan.n_samples:,} records"
    show_plan(stdout(), plan, f"Plan for {size} of {source.n_features} features; nothing was spent")


def _plan(estimator: "PrivateSIR", source: "FileSource") -> "Explanation":
    from sklearn.base import clone

    # Any classes make the same plan: those of a text response need not be known for it.
    asked = clone(estimator).set_params(classes=("",)) if source.response.categories is not None else estimator
    return asked.explain(source.count() if estimator.relation == "replace" else 1, source.n_features)


def _run(study: Study, wishes: Wishes, out: Path | None, cap_ledger: Path | None) -> None:
    again = out is not None and (out / "model.json").exists()
    output = nullcontext() if out is None else new_directory(out)
    with output as draft, _notes(), working("loading the library") as bar:
        from sfumato.cli.show import show_document
        from sfumato.model import standalone
        from sfumato.report.build import document

        estimator = wishes.estimator()
        source = study.source(wishes.classes)
        ledger = None if cap_ledger is None else open_cap_ledger(cap_ledger, f"fit {study.title}")
        estimator.set_params(bounds=study.public_bounds(source), ledger=ledger)
        bar.say("reading and checking the records")
        estimator.fit(bar.watch(source))
        fitted = standalone(estimator)
        bar.say("writing the report")
        shown = document(fitted, forecasts=draft is not None)
        if draft is not None:
            _write(fitted, shown, source, study.response, draft)
    show_document(stdout(), shown, study.title, fitted.eigenvalues_.tolist())
    if ledger is not None:
        say_what_is_left(ledger)
    if out is None:
        note("no report and no model were written; add --out DIR to keep them.")
        return
    if again:
        note(f"{out} held an earlier fit, now replaced; what it spent is still spent.")
    from sfumato.cli.show import show_files

    show_files(stdout(), [(str(out / name), purpose) for name, purpose in RESULTS.items()])


def _write(estimator: "PrivateSIR", shown: "Document", source: "FileSource", response: str, draft: Path) -> None:
    import csv

    from sfumato.model import save_model
    from sfumato.report.html import render

    (draft / "report.html").write_text(render(shown), encoding="utf-8")
    save_model(estimator, draft / "model.json", response=response, columns=source.columns)
    k = range(1, len(estimator.directions_) + 1)
    header = [text for i in k for text in (f"direction_{i}", f"standard_error_{i}")]
    pairs = [row for pair in zip(estimator.directions_, estimator.standard_errors_, strict=True) for row in pair]
    with (draft / "directions.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["feature", *header])
        for j, name in enumerate(source.columns.names):
            writer.writerow([name, *(repr(float(row[j])) for row in pairs)])


@contextmanager
def _notes() -> Iterator[None]:
    """Warnings about privacy as notes; others are for developers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrivacyWarning)
        yield
    for warning in caught:
        note(str(warning.message))
