"""Every code block of every page runs, as printed and in order."""

from pathlib import Path

import pytest
from tests.docs.blocks import PYTHON, SHELL, blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = [page for page in PAGES if any(block.language in PYTHON | SHELL for block in blocks(page))]
FORESEEN = {ROOT / "docs/gallery/small.md"}  # it says how much is lost, and how many records would do
OTHERS = {"text", "toml", "json", "nginx", "yaml", "csv", "r"}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.judged] if page in FORESEEN else []) for page in RUN], ids=name
)
def test_every_block_of_the_page_runs_in_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        block.run(namespace, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_names_its_language_and_every_exception_its_reason(page):
    text = page.read_text(encoding="utf-8")
    found = list(blocks(page))
    for block in found:
        assert block.language in PYTHON | SHELL | OTHERS, f"{name(page)}:{block.line}"
    assert text.count("<!-- not run") == sum(block.reason is not None for block in found)
