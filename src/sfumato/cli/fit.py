"""`sfumato fit`: from a file to directions, a report and a model."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.cap_ledger import open_cap_ledger, say_what_is_left
from sfumato.cli.family import check_options
from sfumato.cli.options import (
    BUDGET,
    STUDY,
    AnyDirections,
    AnyMethod,
    Classes,
    Delta,
    Epsilon,
    Estimator,
    MaxFeatures,
    Person,
    Picture,
    Relation,
    ResponseKind,
    Rho,
    RowsPerPerson,
    Slices,
    categories,
    complete_column,
    kind_of,
    names,
)
from sfumato.cli.output import Draft, default_directory, new_directory
from sfumato.cli.progress import Bar, working
from sfumato.cli.results import RESULTS, write_model, write_report
from sfumato.cli.study import Study, plan_of, prepare, sizes
from sfumato.cli.terminal import note, stdout
from sfumato.cli.wishes import Wishes
from sfumato.errors import PrivacyWarning

if TYPE_CHECKING:
    from sfumato.privacy.ledger import FileLedger


def fit(
    data: Annotated[
        str, typer.Argument(help="CSV, Parquet, Arrow or Feather file, or a pattern such as 'data/*.parquet'.")
    ],
    estimator: Estimator = "sir",
    response: Annotated[
        str | None,
        typer.Option(
            "--response", "-y", help="Column to explain.", autocompletion=complete_column, rich_help_panel=STUDY
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to use, as a,b,c; a pattern such as 'lab_*' will do (all others if not given).",
            rich_help_panel=STUDY,
        ),
    ] = None,
    second: Annotated[
        list[str] | None,
        typer.Option(help="Columns of the second set (cca), as a,b,c or a pattern.", rich_help_panel=STUDY),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Directory for report.html, model.json and directions.csv; sfumato-ESTIMATOR-TIME if not given.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and spend nothing.")] = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    relation: Relation = None,
    person: Person = None,
    rows_per_person: RowsPerPerson = None,
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
        typer.Option(
            help="TOML file with the range of features; others, or with 'none' all, are found privately. 'search': "
            "even if there are few records.",
            rich_help_panel=STUDY,
        ),
    ] = "none",
    directions: AnyDirections = None,
    method: AnyMethod = None,
    classes: Classes = None,
    response_kind: ResponseKind = None,
    max_features: MaxFeatures = None,
    slices: Slices = None,
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
    picture: Picture = None,
    memory: Annotated[
        str | None,
        typer.Option(help="How much memory to use, about, as 2GB; what does not fit is read again (1GiB)."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Address of the scheduler of a Dask cluster that adds, as tls://scheduler:8786."),
    ] = None,
) -> None:
    """Find the few directions of a table that matter, privately.

    The whole run costs exactly the budget, whatever it has to find out on the way. Examples:

    sfumato fit patients.parquet -y los --bounds bounds.toml --epsilon 1 --out los

    sfumato fit patients.parquet --estimator pca --features 'lab_*' --directions 3 --out labs
    """
    study = Study(
        data,
        response,
        names(second),
        names(features),
        categories(categorical),
        bounds,
        drop_missing,
        kind_of(response_kind),
        person,
        memory,
        cluster,
    )
    wishes = Wishes(
        estimator,
        epsilon,
        delta,
        rho,
        relation=study.relation(relation),
        seed=seed,
        directions=directions,
        method=method,
        classes=names(classes),
        picture=picture,
        max_features=max_features,
        slices=slices,
        rows_per_person=rows_per_person if rows_per_person or person is None else 1,
    )
    columns = {"response": study.response, "second": study.second, "response_kind": study.response_kind}
    check_options(wishes.member, wishes.options() | columns, needed=("response", "second"))
    if dry_run:
        _rehearse(study, wishes)
    else:
        _run(study, wishes, out, cap_ledger)


def _rehearse(study: Study, wishes: Wishes) -> None:
    with working("loading the library"):
        estimator, source = prepare(study, wishes)
        plan = plan_of(estimator, source)
        from sfumato.cli.show import show_plan
    private = wishes.relation == "add-remove" or wishes.rows_per_person is not None
    size = "records" if private else f"{plan.n_samples:,} records"
    features = " and ".join(map(str, sizes(source)))
    show_plan(stdout(), plan, f"Plan for {size} of {features} features; nothing was spent")


def _run(study: Study, wishes: Wishes, given: Path | None, cap_ledger: Path | None) -> None:
    out = given or default_directory(wishes.estimator)
    again = (out / "model.json").exists()
    ledger: FileLedger | None = None
    with new_directory(out) as draft, _notes():
        try:
            with working("loading the library") as bar:
                from sfumato.cli.show import show_document, show_files
                from sfumato.report.words import meanings

                purpose = f"fit {study.title}" + (f" by {wishes.estimator}" if wishes.estimator != "sir" else "")
                ledger = None if cap_ledger is None else open_cap_ledger(cap_ledger, purpose)
                fitted, shown = _fit(study, wishes, ledger, draft, bar)
        except (KeyboardInterrupt, SystemExit):
            _say_what_it_cost(draft, ledger)
            raise
    show_document(stdout(), shown, study.title, meanings(fitted))
    if ledger is not None:
        say_what_is_left(ledger)
    if again:
        note(f"{out} held an earlier fit, now replaced; what it spent is still spent.")
    show_files(stdout(), [(str(out / name), purpose) for name, purpose in RESULTS.items()])


def _fit(study: Study, wishes: Wishes, ledger: Any, draft: Draft, bar: Bar) -> tuple[Any, Any]:
    """The fitted estimator without what others wrote to the ledger, and its document, both kept.

    The model first, at once: it is what was paid for, and the report can be made from it.
    """
    from sfumato.model import standalone
    from sfumato.report.build import document

    estimator, source = prepare(study, wishes)
    bar.say("reading and checking the records")
    fitted = standalone(estimator.set_params(ledger=ledger).fit(source))
    draft.keep(lambda folder: write_model(fitted, source, study.response, folder), instead_of="report.html")
    bar.say("writing the report")
    shown = document(fitted)
    draft.keep(lambda folder: write_report(shown, folder))
    return fitted, shown


def _say_what_it_cost(draft: Draft, ledger: "FileLedger | None") -> None:
    """After an interruption: what is on the disk, or what was spent for nothing."""
    if draft.unplaced:
        return  # its place is told when the draft is left
    if draft.kept:
        note(f"the model was paid for and is {draft.target / 'model.json'}; 'sfumato report' makes its report.")
    elif ledger is None:
        note("no result was made and none has left this process, so nothing was spent.")
    else:
        note("no result was made; the releases made so far stay in the ledger, what they did not use is given back.")
        say_what_is_left(ledger)


@contextmanager
def _notes() -> Iterator[None]:
    """Warnings about privacy as notes; others are for developers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrivacyWarning)
        yield
    for warning in caught:
        note(str(warning.message))
