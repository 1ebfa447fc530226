"""The notebooks of the site: run when it is built, so that what they show is what the code does.

A notebook is a Python file with cells (``# %%``), as Jupytext reads it. It becomes a page with its outputs, and a
notebook file to download.
"""

import asyncio
import tempfile
from html import escape
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

SOURCES = Path(__file__).parents[1] / "notebooks"
KERNEL = ("--InlineBackend.figure_formats=svg", "--IPKernelApp.log_level=40")


def run_all() -> dict[str, NotebookNode]:
    """Every notebook with its outputs, by name; one that fails fails the build."""
    sources = sorted(SOURCES.glob("*.py"))
    done = asyncio.run(_together([_read(path) for path in sources]))
    return {path.stem: notebook for path, notebook in zip(sources, done, strict=True)}


def write(notebooks: dict[str, NotebookNode], folder: Path) -> None:
    """Page, drawings and notebook file of each."""
    for name, notebook in notebooks.items():
        nbformat.write(notebook, folder / f"{name}.ipynb")
        (folder / f"{name}.md").write_text(_page(name, notebook, folder), encoding="utf-8")


def _read(path: Path) -> NotebookNode:
    notebook = jupytext.read(path)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return notebook


async def _together(notebooks: list[NotebookNode]) -> list[NotebookNode]:
    return list(await asyncio.gather(*map(_run, notebooks)))


async def _run(notebook: NotebookNode) -> NotebookNode:
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=300, startup_timeout=120, resources=place, extra_arguments=KERNEL)
        return await client.async_execute()


def _page(name: str, notebook: NotebookNode, folder: Path) -> str:
    parts = []
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [_shown(output, folder / f"{name}-{i}-{j}.svg") for j, output in enumerate(cell.outputs)]
    heading, *rest = "\n\n".join(parts).split("\n", 1)
    return "\n".join([heading, "", f"[Download the notebook]({name}.ipynb){{ download }}", *rest])


def _shown(output: NotebookNode, drawing: Path) -> str:
    data = output.get("data", {})
    if "image/svg+xml" in data:
        drawing.write_text(data["image/svg+xml"], encoding="utf-8")
        return f"![What the cell draws]({drawing.name})"
    if "text/html" in data:
        return f'<div class="output">\n{data["text/html"]}\n</div><!-- end of output -->'
    text = output.get("text", data.get("text/plain", ""))
    return f'<div class="output"><pre>{escape(text)}</pre></div><!-- end of output -->'
