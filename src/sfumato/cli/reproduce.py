"""`sfumato reproduce`: a published table, printed values beside measured ones."""

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.output import new_file
from sfumato.cli.terminal import note, stderr, stdout

if TYPE_CHECKING:
    from sfumato.research.run import Done
    from sfumato.research.study import Study


def reproduce(
    study: Annotated[str | None, typer.Argument(help="Name of the table or figure; see --list.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Name every table and figure, and stop.")] = False,
    replications: Annotated[int, typer.Option(min=1, help="Replications per row.")] = 20,
    cache: Annotated[
        Path | None, typer.Option(help="File of finished replications; a run goes on where it stopped.", dir_okay=False)
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Parallel processes; all cores by default.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Table of a study of real data; --list says which need one.", dir_okay=False)
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a Markdown page as well, its picture beside it.", dir_okay=False)
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with a picture as well.", dir_okay=False)] = None,
) -> None:
    """Repeat a published simulation and show printed and measured values side by side.

    Finished replications are kept (in STUDY.jsonl unless --cache says otherwise): run the same command again to go on
    after an interruption, or with more replications to add to them.
    """
    from rich.table import Table

    from sfumato.research import run
    from sfumato.research.pages import verdict

    if listing or study is None:
        for name, each in run.STUDIES.items():
            needs = f" (--data: {each.data})" if each.data else ""
            stdout().print(f"{name:20} {each.title}{needs}", soft_wrap=True, markup=False)
            stdout().print(f"{'':20} {each.outcome}", soft_wrap=True, markup=False, style="bright_black")
        for what, why in run.ELSEWHERE.items():
            stdout().print(f"{'-':20} {what}: {why}", soft_wrap=True, markup=False)
        return
    chosen = run.find(study)
    table = run.check_data(chosen, data)
    done = _run(chosen, replications, cache or Path(f"{chosen.name}.jsonl"), processes, data)
    header, rows = run.table(chosen, done)
    shown = Table(*header, title=chosen.title)
    for row in rows:
        shown.add_row(*row)
    stdout().print(shown)
    note(chosen.note)
    remarks = verdict(chosen, done)
    for remark in remarks:
        note(remark)
    given = f" --data {data.name}" if data is not None else ""
    command = f"sfumato reproduce {study} --replications {replications}{given}"
    if markdown is not None:
        from sfumato.research.pages import drawing

        picture = markdown.with_suffix(".svg")
        with new_file(picture) as draft:
            draft.write_text(drawing(chosen, done, table), "utf-8")
        with new_file(markdown) as draft:
            draft.write_text(run.markdown(chosen, done, command, picture.name, remarks), "utf-8")
    if html is not None:
        from sfumato.research.pages import page

        with new_file(html) as draft:
            draft.write_text(page(chosen, done, command, table), "utf-8")


def _run(chosen: "Study", replications: int, cache: Path, processes: int | None, data: Path | None) -> "Done":
    """All replications, with a bar."""
    from rich.progress import track

    from sfumato.research import run

    console = stderr()
    known = run.load(cache, chosen)
    wanted = [(row.label, seed) for row in chosen.rows for seed in range(replications)]
    steps = run.execute(chosen, replications, cache, processes, data)
    total = sum(key not in known for key in wanted) + 1
    shown = track(steps, chosen.name, total, console=console, transient=True, disable=not console.is_terminal)
    done = deque(shown, maxlen=1).pop()
    return {key: done[key] for key in wanted}
