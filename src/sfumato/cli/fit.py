"""`sfumato fit`: from a file to directions, a report and a model; `sfumato explain`: its plan, without any data.

`sfumato bounds`: the file that tells a fit what is known about each feature without looking at the data.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options as cli
from sfumato.cli.ledger import say_what_is_left
from sfumato.cli.output import Draft, default_directory, new_directory, new_file
from sfumato.cli.results import RESULTS, write_model, write_report
from sfumato.cli.terminal import Bar, command, command_group, note, show_progress, stdout
from sfumato.errors import InputError, PrivacyWarning, SfumatoError
from sfumato.hints import cautions, hint_of
from sfumato.signals import patient
from sfumato.study import (
    EstimatorOptions,
    TableOptions,
    check_options,
    count_features,
    explain_fit,
    prepare,
    quote_key,
    read_categories,
    read_kind,
    split_names,
    taken,
)

if TYPE_CHECKING:
    from sfumato.methods.reporting import Origin
    from sfumato.privacy.ledger import FileLedger
    from sfumato.sources.files import FileSource
    from sfumato.sources.table import Table

bounds_app = command_group("Bounds of the features: what is known without the data.")
ODD = {"identifier": "an identifier", "date": "a date", "code": "a code"}


@cli.asks_for_estimator
def fit(
    data: Annotated[
        str, typer.Argument(help="CSV, Parquet, Arrow or Feather file, or a pattern such as 'data/*.parquet'.")
    ],
    *,
    response: cli.AnyResponse = None,
    features: cli.Features = None,
    exclude: cli.Exclude = None,
    second: cli.Second = None,
    out: cli.OutDirectory = None,
    dry_run: cli.DryRun = False,
    asked: EstimatorOptions,
    rho: cli.Rho = None,
    relation: cli.Relation = None,
    person: cli.Person = None,
    rows_per_person: cli.RowsPerPerson = None,
    cap_ledger: cli.CapLedger = None,
    seed: cli.Seed = None,
    bounds: cli.BoundsFile = "none",
    response_kind: cli.ResponseKind = None,
    categorical: cli.Categorical = None,
    drop_missing: cli.DropMissing = False,
    decimal: cli.Decimal = ".",
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask where epsilon, delta or the number of records is unusual.")
    ] = False,
    memory: Annotated[
        str | None, typer.Option(help="How much memory to use, as 2GB; what does not fit is read again.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Address of the scheduler of a Dask cluster that adds, as tls://scheduler:8786.")
    ] = None,
) -> None:
    """Find the few directions of a table that matter, privately.

    The whole run costs exactly the budget, whatever it has to find out on the way. Examples:

    sfumato fit patients.parquet -y los --bounds bounds.toml --epsilon 1 --out los

    sfumato fit patients.parquet --estimator pca --features 'lab_*' --directions 3 --out labs
    """
    table = TableOptions(
        data,
        response,
        second=split_names(second),
        features=split_names(features),
        categorical=read_categories(categorical),
        bounds=bounds,
        drop_missing=drop_missing,
        response_kind=read_kind(response_kind),
        person=person,
        memory=memory,
        cluster=cluster,
        exclude=split_names(exclude),
        decimal=decimal,
    )
    options = table.options(replace(asked, rho=rho, seed=seed), relation, rows_per_person)
    if dry_run:
        _rehearse(table, options)
    else:
        _run(table, options, out, cap_ledger, yes)


@cli.asks_for_estimator
def explain(
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Number of records.")],
    p: Annotated[int, typer.Option("--p", "-p", min=1, help="Number of features.")],
    *,
    q: Annotated[
        int | None, typer.Option("--q", "-q", min=1, help="Number of columns of the second set (cca, multi-sir).")
    ] = None,
    asked: EstimatorOptions,
    rho: cli.Rho = None,
    bounds: Annotated[
        bool, typer.Option("--bounds/--no-bounds", help="Whether bounds will be given, or must be found privately.")
    ] = False,
    relation: cli.Relation = None,
    rows_per_person: cli.RowsPerPerson = None,
) -> None:
    """Print every release a fit would make, with its noise and its cost; no data needed."""
    options = replace(asked, rho=rho, relation=relation or "replace", rows_per_person=rows_per_person)
    check_options(options.member, options.special() | {"q": q}, needed=("q",))
    with show_progress("loading the library"):
        from sfumato.bounds import Bounds
        from sfumato.cli.show import show_plan

        estimator = options.build()
        if bounds:
            estimator.set_params(**taken(estimator, dict.fromkeys(("bounds", "y_bounds"), Bounds(-1.0, 1.0))))
        plan = estimator.explain(n, p, q) if q else estimator.explain(n, p)
    features = f"{p:,} features" if q is None else f"{p:,} and {q:,} features"
    show_plan(stdout(), plan, f"Plan for {n:,} records of {features}")


def _rehearse(table: TableOptions, options: EstimatorOptions) -> None:
    with show_progress("loading the library"):
        estimator, source = prepare(table, options)
        plan = explain_fit(estimator, source)
        from sfumato.cli.show import show_plan
        from sfumato.privacy.unit import is_count_public
    size = f"{plan.n_samples:,} records" if is_count_public(plan.relation, plan.rows_per_person) else "records"
    features = " and ".join(map(str, count_features(source)))
    show_plan(stdout(), plan, f"Plan for {size} of {features} features; nothing was spent")


def _doubts(estimator: Any, source: "FileSource") -> list[str]:
    """What names and public numbers make one stop at; of a rehearsal only the names."""
    from sfumato.privacy.unit import is_count_public

    public = is_count_public(estimator.relation, estimator.rows_per_person)
    odd = {name: hint_of(name).sort for name in source.columns.features if name not in source.columns.categorical}
    found = [
        f"the name of the feature {name!r} looks like that of {ODD[sort]}; leave it out with --exclude if it is one."
        for name, sort in odd.items()
        if sort in ODD
    ]
    if estimator.rho is not None or estimator.random_state is not None:
        return found
    return [*found, *cautions(estimator.epsilon, estimator.delta, source.count() if public else None)]


def _confirm(doubts: list[str]) -> list[str]:
    """Ask whoever sits before a terminal; what nobody could be asked about is told when the fit is done."""
    if not doubts or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return doubts
    for sentence in doubts:
        note(sentence)
    if not typer.confirm("Go on?", err=True):
        raise InputError("fit: it was not confirmed, so nothing was spent.")
    return []


def _run(
    table: TableOptions, options: EstimatorOptions, given: Path | None, cap_ledger: Path | None, sure: bool
) -> None:
    out = given or default_directory(options.estimator)
    again = (out / "model.json").exists()
    ledger: FileLedger | None = None
    with new_directory(out) as draft, _notes() as told:
        try:
            with show_progress("loading the library"):
                prepared = prepare(table, options)
                doubts = _doubts(*prepared)
            told.extend(doubts)
            doubts = doubts if sure else _confirm(doubts)
            with show_progress("loading the library") as bar:
                from sfumato.cli.show import show_document, show_files
                from sfumato.methods.reporting import Origin
                from sfumato.privacy import ledger as accounts
                from sfumato.report.words import meanings

                purpose = f"fit {table.title}" + (f" by {options.estimator}" if options.estimator != "sir" else "")
                ledger = None if cap_ledger is None else accounts.FileLedger(cap_ledger, purpose=purpose)
                origin = Origin(table.data, table.response or "", command())
                fitted, shown = _fit(prepared, origin, ledger, draft, bar)
                unseen, rare = (getattr(prepared[0], name, ()) for name in ("unseen_classes_", "rare_features_"))
        except (KeyboardInterrupt, SystemExit):  # Ctrl-C, or SIGTERM (see terminal.py): it may have cost something
            _say_what_it_cost(draft, ledger)
            raise
    show_document(stdout(), shown, table.title, meanings(fitted))
    if ledger is not None:
        say_what_is_left(ledger)
    for sentence in doubts:
        note(sentence)
    for name in unseen:
        note(f"class {name!r} was declared, but hardly a record has it, by the noisy counts; is it spelled like that?")
    for name in rare:
        note(f"at most one record in 25 has {name!r}, by the noisy mean; is it spelled like that?")
    if again:
        note(f"{out} held an earlier fit, now replaced; what it spent is still spent.")
    show_files(stdout(), [(str(out / name), purpose) for name, purpose in RESULTS.items()])


def _fit(prepared: "tuple[Any, FileSource]", origin: "Origin", ledger: Any, draft: Draft, bar: Bar) -> tuple[Any, Any]:
    """The fitted estimator without what others wrote to the ledger, and its document, both kept.

    The model first, at once: it is what was paid for, and the report can be made from it. Once a ledger is charged, an
    interruption waits for it.
    """
    from sfumato.model import check_parameters, standalone
    from sfumato.report.build import build_document

    estimator, source = prepared
    check_parameters(estimator)
    bar.say("reading and checking the records")
    with patient(_say_it_waits) as begin:
        if ledger is not None:
            bar.before_release = begin
        fitted = standalone(estimator.set_params(ledger=ledger).fit(source))
        fitted.origin_ = replace(origin, account=_left(ledger))
        response = origin.response or None
        draft.keep(lambda folder: write_model(fitted, source, response, folder), instead_of="report.html")
    bar.say("writing the report")
    shown = build_document(fitted)
    draft.keep(lambda folder: write_report(shown, folder))
    return fitted, shown


def _left(ledger: "FileLedger | None") -> str:
    """What a ledger has left; nothing is said where it cannot be read: the result was paid for, and comes first."""
    from sfumato.privacy.budget import describe_remaining

    with suppress(SfumatoError, OSError):
        return "" if ledger is None else describe_remaining(ledger.remaining())
    return ""


def _say_it_waits() -> None:
    with suppress(Exception):  # in the middle of anything, also of another line; the fit must go on
        note("the budget is being spent, so the fit is finished and its result kept; interrupt again to give it up.")


def _say_what_it_cost(draft: Draft, ledger: "FileLedger | None") -> None:
    """After an interruption: what is on the disk, or what was spent for nothing."""
    if draft.unplaced:
        return  # its place is told when the draft is left
    if draft.kept:
        note(f"the model was paid for and is {draft.target / 'model.json'}; 'sfumato report' makes its report.")
    elif ledger is None:
        note("no result was made and none has left this process, so nothing was spent.")
    else:
        from sfumato.privacy.ledger.admin import spent_here

        note(f"no result was made; {spent_here(ledger)}.")


@contextmanager
def _notes() -> Iterator[list[str]]:
    """Warnings about privacy as notes, but for those in the list, told otherwise; others are for developers."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrivacyWarning)
        yield told
    for warning in caught:
        if str(warning.message) not in told:
            note(str(warning.message))


TEMPLATE = """\
# Bounds of the features: fill in the smallest and largest value that each can sensibly take,
#
#     "age" = [0, 110]
#
# from what is known about the measurement: a law, a scale, a form, an earlier study. Never look them up in the
# data: the smallest and largest value of a column are the values of two people. What lies outside is moved to the
# nearest bound, so narrow bounds cost accuracy, never privacy. Lines of columns that are no features may stay; remove
# those of features of which nothing is known: their bounds are then bought from the budget.

[bounds]
"""


@bounds_app.command("init")
def write_template(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or Feather file, or a pattern.")],
    out: Annotated[Path, typer.Option(help="The file to write.", dir_okay=False)] = Path("bounds.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    decimal: cli.Decimal = ".",
) -> None:
    """Write a template with the names of the columns, to be filled in by hand.

    Only names are read: no value of the data is in the template.
    """
    if out.exists() and not force:
        raise InputError(f"out: {out} exists and may hold your numbers; name another file, or replace it with --force.")
    from sfumato.sources.formats import open_tables
    from sfumato.sources.names import find

    table = open_tables(find(data)[:1], decimal)[0]
    with new_file(out) as draft:
        draft.write_text(TEMPLATE + "".join(_bounds_line(table, name) for name in table.names), encoding="utf-8")
    stdout().print(f"[bold]{out}[/]: fill in the numbers, then fit with --bounds {out}", soft_wrap=True)


def _bounds_line(table: "Table", name: str) -> str:
    key = quote_key(name)
    if table.kind(name) in ("number", "truth"):
        return f"{key} = []\n"
    return f"# {key} is not numeric: leave it out, or declare its categories with --categorical\n"
