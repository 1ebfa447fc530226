"""`sfumato explain`: the plan of a fit, before there is any data."""

from typing import Annotated

import typer

from sfumato.cli.family import check_options
from sfumato.cli.options import (
    AnyDirections,
    AnyMethod,
    Classes,
    Delta,
    Epsilon,
    Estimator,
    MaxFeatures,
    Picture,
    Relation,
    Rho,
    RowsPerPerson,
    Slices,
    names,
)
from sfumato.cli.progress import working
from sfumato.cli.terminal import stdout
from sfumato.cli.wishes import Wishes


def explain(
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Number of records.")],
    p: Annotated[int, typer.Option("--p", "-p", min=1, help="Number of features.")],
    q: Annotated[
        int | None, typer.Option("--q", "-q", min=1, help="Number of columns of the second set (cca).")
    ] = None,
    estimator: Estimator = "sir",
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    directions: AnyDirections = None,
    bounds: Annotated[
        bool, typer.Option("--bounds/--no-bounds", help="Whether bounds will be given, or must be found privately.")
    ] = False,
    method: AnyMethod = None,
    relation: Relation = None,
    rows_per_person: RowsPerPerson = None,
    classes: Classes = None,
    max_features: MaxFeatures = None,
    slices: Slices = None,
    picture: Picture = None,
) -> None:
    """Print every release a fit would make, with its noise and its cost; no data needed."""
    wishes = Wishes(
        estimator,
        epsilon,
        delta,
        rho,
        relation=relation or "replace",
        directions=directions,
        method=method,
        classes=names(classes),
        picture=picture,
        max_features=max_features,
        slices=slices,
        rows_per_person=rows_per_person,
    )
    check_options(wishes.member, wishes.options() | {"q": q}, needed=("q",))
    with working("loading the library"):
        from sfumato.bounds import Bounds
        from sfumato.cli.show import show_plan

        asked = wishes.build()
        if bounds:
            tables = ("bounds", "y_bounds") if q else ("bounds",)
            asked.set_params(**dict.fromkeys(tables, Bounds(-1.0, 1.0)))
        plan = asked.explain(n, p, q) if q else asked.explain(n, p)
    features = f"{p:,} features" if q is None else f"{p:,} and {q:,} features"
    show_plan(stdout(), plan, f"Plan for {n:,} records of {features}")
