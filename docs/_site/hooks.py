"""What the site has beyond the pages under docs: measured results, project pages and the command line.

Links between files of the repository are written so that they work in the repository; here they are turned to the
pages of the site. A link to a file that exists but has no page becomes plain text; one to nothing stays, and fails
the build.
"""

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from command_line import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from public_names import pages

ROOT = Path(__file__).parents[2]
RESULTS = "benchmarks/results"
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$|`[^`\n]+`(?!\]))", re.M | re.S)


def borrowed() -> dict[str, str]:
    """Pages and pictures of the site that live elsewhere in the repository: address on the site, path in it."""
    results = sorted(path for path in (ROOT / RESULTS).iterdir() if path.suffix in (".md", ".svg", ".png"))
    pages = {f"results/{path.name}": f"{RESULTS}/{path.name}" for path in results}
    return pages | {f"project/{name}": name for name in PROJECT if (ROOT / name).exists()}


@cache
def made() -> dict[str, str]:
    """Pages made from the code: address on the site, text."""
    titles = {address: _title(ROOT / path) for address, path in borrowed().items() if path.startswith(RESULTS)}
    rows = [f"* [{title}]({posixpath.basename(at)})" for at, title in titles.items() if at.endswith(".md")]
    intro = (
        "# Measured results\n\nEvery number in these pages comes from a study here, with the command that made it.\n"
    )
    return pages() | {"reference/cli.md": reference(), "results/index.md": "\n".join([intro, *rows, ""])}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the patterns of the navigation."""
    docs = Path(config.docs_dir)
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} | set(borrowed()) | set(made())
    named = set(_leaves(config.nav))
    config.nav = _filled(config.nav, sorted(page for page in pages if page.endswith(".md") and page not in named))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lives elsewhere or is made here."""
    for address, path in borrowed().items():
        files.append(File.generated(config, address, abs_src_path=str(ROOT / path)))
    for address, text in made().items():
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository to pages of the site."""
    here = page.file.src_uri
    if here in made():
        return markdown
    source = posixpath.dirname(borrowed().get(here, f"docs/{here}"))
    parts = FENCE.split(markdown)  # links in code stay as they are
    parts[::2] = [LINK.sub(lambda match: _turned(match, source, here), part) for part in parts[::2]]
    return "".join(parts)


def _turned(match: re.Match[str], source: str, here: str) -> str:
    mark, label, target, anchor = match.groups()
    path = posixpath.normpath(posixpath.join(source, target))
    if ":" in target or not (ROOT / path).exists():
        return match[0]
    address = _address(path)
    if address is None:
        return label
    return f"{mark}[{label}]({posixpath.relpath(address, posixpath.dirname(here) or '.')}{anchor or ''})"


def _address(path: str) -> str | None:
    """Where a file of the repository is on the site."""
    if path in ("README.md", "."):
        return "index.md"
    if path == RESULTS:
        return "results/index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return next((address for address, origin in borrowed().items() if origin == path), None)


def _leaves(nav: Any) -> Iterator[str]:
    for item in nav:
        for value in item.values() if isinstance(item, dict) else [item]:
            yield from [value] if isinstance(value, str) else _leaves(value)


def _filled(nav: Any, rest: list[str]) -> list[Any]:
    filled: list[Any] = []
    for item in nav:
        if isinstance(item, str) and "*" in item:
            filled += [page for page in rest if fnmatch(page, item)]
        elif isinstance(item, dict):
            (title, value), *_ = item.items()
            if isinstance(value, str) and "*" in value:
                found = [page for page in rest if fnmatch(page, value)]
                filled += [{title: sorted(found, key=lambda page: not page.endswith("index.md"))}] if found else []
            else:
                filled.append({title: value if isinstance(value, str) else _filled(value, rest)})
        else:
            filled.append(item)
    return filled


def _title(path: Path) -> str:
    if path.suffix != ".md":
        return path.name
    return next((line[2:] for line in path.read_text("utf-8").splitlines() if line.startswith("# ")), path.stem)
