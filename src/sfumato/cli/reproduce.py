"""`sfumato reproduce`: the published tables and figures, printed values beside measured ones."""

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.output import new_file
from sfumato.cli.terminal import note, stderr, stdout
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.research.run import Results
    from sfumato.research.study import Study

COLOURS = {"same": "green", "lower": "cyan", "higher": "red"}


def reproduce(
    study: Annotated[str | None, typer.Argument(help="Name of the table or figure; see --list.")] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Name every table and figure, what became of it, and stop.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Run every study, in rounds of 1, 2, 4, ... replications, with one index.")
    ] = False,
    replications: Annotated[int, typer.Option(min=1, help="Replications per row.")] = 20,
    folder: Annotated[
        Path, typer.Option(help="Where --all keeps replications and pages; it goes on with what is there.")
    ] = Path("reproductions"),
    cache: Annotated[
        Path | None, typer.Option(help="File of finished replications; a run goes on where it stopped.", dir_okay=False)
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Parallel processes; all cores by default.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Table of a study of real data; with --all a folder with STUDY.csv or STUDY.parquet."),
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
    from sfumato.research import run

    if everything:
        if listing or any(given is not None for given in (study, cache, markdown, html)):
            raise InputError("--all runs every study and keeps its pages in --folder; leave out what is for one study.")
        _run_all(replications, folder, processes, data)
        return
    if listing or study is None:
        _list()
        return
    chosen = run.find(study)
    table = run.check_data(chosen, data)
    results = _run(chosen, replications, cache or Path(f"{chosen.name}.jsonl"), processes, data)
    remarks = _show(results)
    command = _command(study, replications, data)
    if markdown is not None:
        from sfumato.research.pages import drawing

        picture = markdown.with_suffix(".svg")
        with new_file(picture) as draft:
            draft.write_text(drawing(results, table), "utf-8")
        with new_file(markdown) as draft:
            draft.write_text(run.markdown(results, command, picture.name, remarks), "utf-8")
    if html is not None:
        _write_page(results, command, table, html)


def _list() -> None:
    """Every table and figure by paper, with its verdict, then the studies and what they need."""
    from sfumato.research import run
    from sfumato.research.study import by_paper

    for paper, items in by_paper():
        stdout().print(paper, soft_wrap=True, markup=False, style="bold")
        for item in items:
            shown = f"  {item.name:12} {item.verdict:22} {item.study or '-':18} {item.why}"
            stdout().print(shown, soft_wrap=True, markup=False)
    stdout().print("Studies", style="bold")
    for name, each in run.STUDIES.items():
        needs = f" (--data: {each.data})" if each.data else ""
        stdout().print(f"  {name:18} {each.title}{needs}", soft_wrap=True, markup=False)


def _show(results: "Results") -> list[str]:
    """The table at the terminal, printed values coloured; returns the remarks on it."""
    from rich.table import Table
    from rich.text import Text

    from sfumato.research.pages import mark_of, verdict

    header, rows = results.table()
    shown = Table(*header, title=results.study.title)
    for row in rows:
        shown.add_row(*(Text(cell, style=COLOURS[mark] if (mark := mark_of(cell)) else "") for cell in row))
    stdout().print(shown)
    note(results.study.note)
    remarks = verdict(results)
    for remark in remarks:
        note(remark)
    return remarks


def _command(study: str, replications: int, data: Path | None) -> str:
    given = f" --data {data.name}" if data is not None else ""
    return f"sfumato reproduce {study} --replications {replications}{given}"


def _write_page(results: "Results", command: str, table: str | None, target: Path) -> None:
    from sfumato.research.pages import page

    with new_file(target) as draft:
        draft.write_text(page(results, command, table), "utf-8")


def _run_all(replications: int, folder: Path, processes: int | None, data: Path | None) -> None:
    """Every study in rounds; after each its page and the index are written anew, so both are there at any time."""
    from sfumato.research import run
    from sfumato.research.pages import Progress, index

    if data is not None and not data.is_dir():
        raise InputError(f"data must be a folder with --all, with STUDY.csv or STUDY.parquet in it; got {data}.")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"folder must be a directory, and {folder} is a file; name another.")
    folder.mkdir(parents=True, exist_ok=True)
    progress: dict[str, Progress] = {}
    for wanted in run.rounds(replications):
        for name, chosen in run.STUDIES.items():
            table = run.table_in(data, chosen)
            if chosen.data and table is None:
                continue
            kept = folder / f"{name}.jsonl"
            enough = min(replications, max(wanted, run.Results(chosen, run.load(kept, chosen)).complete))
            results = _run(chosen, enough, kept, processes, table)
            progress[name] = Progress.of(results)
            place = None if table is None else str(table)
            _write_page(results, _command(name, enough, table), place, folder / f"{name}.html")
            with new_file(folder / "index.html") as draft:
                draft.write_text(index(progress, f"sfumato reproduce --all --replications {replications}"), "utf-8")
    note(f"index: {folder / 'index.html'}")


def _run(chosen: "Study", replications: int, cache: Path, processes: int | None, data: Path | None) -> "Results":
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
    return run.Results(chosen, {key: done[key] for key in wanted})
