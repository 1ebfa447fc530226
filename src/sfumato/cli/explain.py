"""`sfumato explain`: the plan of a fit, before there is any data."""

from typing import Annotated

import typer

from sfumato.cli.options import (
    Classes,
    Delta,
    Directions,
    Epsilon,
    Method,
    Picture,
    Relation,
    Rho,
    Wishes,
    names,
)
from sfumato.cli.progress import working
from sfumato.cli.terminal import stdout


def explain(
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Number of records.")],
    p: Annotated[int, typer.Option("--p", "-p", min=1, help="Number of features.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    directions: Directions = "auto",
    bounds: Annotated[
        bool, typer.Option("--bounds/--no-bounds", help="Whether bounds will be given, or must be found privately.")
    ] = False,
    method: Method = "auto",
    relation: Relation = None,
    classes: Classes = None,
    picture: Picture = True,
) -> None:
    """Print every release a fit would make, with its noise and its cost; no data needed."""
    with working("loading the library"):
        from sfumato.bounds import Bounds
        from sfumato.cli.show import show_plan

        wishes = Wishes(epsilon, delta, rho, directions, method, relation or "replace", names(classes), picture)
        plan = wishes.estimator(Bounds(-1.0, 1.0) if bounds else None).explain(n, p)
    show_plan(stdout(), plan, f"Plan for {n:,} records of {p:,} features")
