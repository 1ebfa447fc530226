"""One page of everything: each table and figure of the papers, what became of it, and how far its study has run."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from sfumato.research.catalogue import BEYOND, Item, by_paper
from sfumato.research.pages import document_of
from sfumato.research.run import LEGEND, STUDIES, SYMBOLS, Done, cells, complete, marks
from sfumato.research.study import Mark, Study


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a study has run: replications that every row has, and how its printed values compare."""

    replications: int
    compared: Mapping[Mark, int]

    @classmethod
    def of(cls, study: Study, done: Done) -> "Progress":
        """From what was measured."""
        return cls(complete(study, done), Counter(marks(study, cells(study, done)).values()))


def index(progress: Mapping[str, Progress], command: str) -> str:
    """The page; studies that have run are linked to the pages beside it."""
    parts = [f"<h2>{escape(paper)}</h2>{_table(items, progress)}" for paper, items in by_paper()]
    named = {item.study for _, items in by_paper() for item in items}
    others = [
        f"<li>{escape(study.title)}: {_link(name, progress)}</li>"
        for name, study in STUDIES.items()
        if name not in named
    ]
    return document_of(
        "The papers' tables and figures, printed and measured",
        f"<p>{LEGEND} A verdict is that of the committed pages; the last column, of this run.</p>{''.join(parts)}"
        f"<h2>{BEYOND}</h2><ul>{''.join(others)}</ul><p>Made by <code>{escape(command)}</code>.</p>",
    )


def _table(items: Iterable[Item], progress: Mapping[str, Progress]) -> str:
    rows = "".join(
        f"<tr><td>{escape(item.name)}</td><td>{item.verdict}</td><td>{escape(item.why)}</td>"
        f"<td>{_link(item.study, progress)}</td></tr>"
        for item in items
    )
    head = "".join(f"<th>{name}</th>" for name in ("", "verdict", "why", "this run"))
    return f"<table class='words'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _link(study: str, progress: Mapping[str, Progress]) -> str:
    if not study:
        return ""
    found = progress.get(study)
    if found is None:
        return f"{study}: needs its table" if STUDIES[study].data else f"{study}: not run"
    compared = " ".join(
        f"{symbol} {found.compared[mark]}" for mark, symbol in SYMBOLS.items() if found.compared.get(mark)
    )
    return f"<a href='{study}.html'>{study}</a>, {found.replications} replications {compared}".rstrip()
