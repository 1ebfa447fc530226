"""`sfumato audit`: attack our own claims."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from sfumato.cli.output import new_file
from sfumato.cli.terminal import command_group, make_table, show_progress, stdout
from sfumato.errors import BudgetError, InputError, as_usage

if TYPE_CHECKING:
    from sfumato.audit import AuditResult
    from sfumato.audit.replays import Row
    from sfumato.typing import FloatArray

app = command_group("Attack our own claims: what can an attacker prove?")

Runs = Annotated[int, typer.Option(min=100, help="Runs on each of two neighbouring data sets.")]
Delta = Annotated[float, typer.Option(help="Its delta.")]


@app.command()
def releases(
    epsilon: Annotated[float, typer.Option(help="What a release claims to cost.")] = 3.0,
    delta: Delta = 1e-6,
    runs: Runs = 2_000,
    only: Annotated[str, typer.Option(help="Only releases whose name contains this.")] = "",
) -> None:
    """Every kind of release on its worst pair of data sets: claimed, audited, tightness."""
    with show_progress("loading the library") as bar, as_usage():
        from sfumato.audit.releases import audit_table, queries
        from sfumato.privacy.budget import Budget
        from sfumato.research.sums import example_queries

        budget = Budget.approximate(epsilon, delta)
        found = audit_table([budget], runs, known=queries() | example_queries(), only=only, progress=bar.say)
    if not found:
        raise InputError(f"only: no release has {only!r} in its name; leave it out to see all.")
    _show(found, delta)
    if not all(result.passed for result in found):
        raise BudgetError("an attacker proved more than was claimed; please report it.")


@app.command()
def controls(runs: Runs = 3_000) -> None:
    """Broken mechanisms from papers and libraries: the audit must catch every one of them."""
    with show_progress("loading the library") as bar:
        from sfumato.audit import audit
        from sfumato.audit.controls import controls as broken

        found = []
        for control in broken():
            bar.say(control.name)
            found.append(audit(control.mechanism, control.d, control.d_prime, control.claimed, runs, name=control.name))
    _show(found, 1e-6)
    if any(result.passed for result in found):
        raise InputError("runs: not every broken mechanism was caught; give the audit more runs.")


@app.command()
def replay(
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of neighbours for each fit and kind of source.")] = 8,
    only: Annotated[str, typer.Option(help="Only fits whose name, relation or source contains this.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Of tables, records and noise.")] = 0,
) -> None:
    """Fit a neighbour with every release forced to be the same: nothing at all may differ.

    Every private estimator, method, relation, setting and kind of source, on hostile records and with forged releases;
    and fits that break their promise, which must be caught.
    """
    with show_progress("loading the library") as bar:
        from sfumato.audit.controls import broken_fits
        from sfumato.audit.replays import replay_all

        found = replay_all(pairs, only=only, seed=seed, progress=bar.say)
        if not found:
            raise InputError(f"only: no fit has {only!r} in its name; leave it out to see all.")
        bar.say("fits that break their promise")
        missed = [control.name for control in broken_fits() if not control.caught()]
    if missed:
        raise InputError(f"not caught: {missed[0]}; the replay is broken, please report it.")
    _show_replays(found)
    if not all(row.passed for row in found):
        raise BudgetError("a fit showed more than its releases; please report it.")


@app.command()
def trace(
    data: Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or Feather file; its records are attacked.")],
    response: Annotated[str, typer.Option("--response", "-y", help="Column to explain, cut at its median.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture to write (SVG).")] = Path("tracing.svg"),
    epsilon: Annotated[float, typer.Option(help="Budget of the private direction.")] = 1.0,
    delta: Delta = 1e-6,
    splits: Annotated[int, typer.Option(min=1, help="Random splits into members and outsiders.")] = 50,
) -> None:
    """Who was in the data? Trace people in a raw and in a private direction (ROC curves).

    For the curator's own eyes: the picture shows how well people of this very data set can be found.
    """
    with new_file(out) as draft, show_progress("loading the library") as bar:
        from sfumato.audit.tracing import private_direction, raw_direction, roc_svg
        from sfumato.audit.tracing import trace as attack
        from sfumato.privacy.budget import Budget

        with as_usage():
            private = private_direction(Budget.approximate(epsilon, delta))
        x, y = _table(data, response)
        bar.say("tracing")
        curves = attack(x, y, {"raw": raw_direction, f"epsilon = {epsilon:g}": private}, splits=splits)
        draft.write_text(roc_svg(curves), encoding="utf-8")
    for curve in curves:
        stdout().print(f"{curve.label}: area under the curve {curve.area:.3f}", markup=False)
    stdout().print(f"[bold]{out}[/]", soft_wrap=True)


def _table(data: str, response: str) -> "tuple[FloatArray, FloatArray]":
    from sfumato.sources.files import open_source
    from sfumato.sources.names import find

    source = open_source(find(data), response, None, None, {})
    source.check()
    records = source.pooled()
    return records.x, records.y.astype(float)


def _show(found: "list[AuditResult]", delta: float) -> None:
    rows = []
    for result in found:
        at = delta if result.delta is None else result.delta
        numbers = (f"{result.claimed_epsilon(at):.3g}", f"{result.audited_epsilon(at):.3g}", f"{result.tightness:.2f}")
        rows.append((Text(result.name), *numbers, "holds" if result.passed else "[bold red]false[/]"))
    stdout().print(make_table(("attacked", ">claimed epsilon", ">proved", ">tightness", "claim"), rows))
    stdout().print(f"{found[0].runs} runs on each data set, {100 * found[0].confidence:.4g} % confidence.")


def _show_replays(found: "list[Row]") -> None:
    rows = []
    for row in found:
        numbers = (str(row.pairs), str(row.questions), f"{row.moved:.3f}")
        differs = Text("; ".join(row.findings) or "nothing", style="" if row.passed else "bold red")
        rows.append((Text(row.name), row.relation, row.way, *numbers, differs))
    headings = ("fit", "relation", "source", ">pairs", ">questions", ">moved", "differs")
    stdout().print(make_table(headings, rows))
    total = sum(row.pairs for row in found)
    stdout().print(f"{total} pairs of neighbours; moved: the largest part of its sensitivity that any sum moved.")
    stdout().print("Fits that break their promise were replayed, too: all were caught.")
